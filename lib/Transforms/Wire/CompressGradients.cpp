//===- CompressGradients.cpp - momenta as signs between ranks -------------===//
//
// Behind the freeze (1-bit Adam: Tang et al., 2021, Algorithm 1) each rank adds its own
// gradient to the momentum, and ranks exchange signs of what that gives (SignExchange.h).
//
//===----------------------------------------------------------------------===//

#include "LocalSteps.h"
#include "ScaledMomentum.h"
#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Wire/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_COMPRESSGRADIENTS
#include "dsopt/Transforms/Wire/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// All that a reference to this rank's part is of.
static RefAttr wholeOf(RefAttr part) {
  return RefAttr::get(part.getContext(), part.getBuffer(), part.getSlot(), part.getOffset(), {});
}

/// Writes the exchange of a bucket's momentum in front of its update.
static void exchangeMomentum(UpdateOp update, dist::BucketOp bucket, ProgramBuilder &out,
                             CompressionKernels &kernels, SignExchange &signs) {
  out.insertBefore(update);
  RefAttr own = updateState(update, bucket, 0), momentum = wholeOf(own),
          variance = updateState(update, bucket, 1);
  RefAttr gradient = wholeOf(cast<RefAttr>(update.getBuffers()[kUpdateGradient]));
  Type type = getElementTypeOrSelf(out.bufferOf(gradient).getType());
  RefAttr apply = signs.scalar(DSOPT_APPLY);
  bool isFirst = out.program.getKind() == ProgramKind::FirstFrozenStep;
  signs.begin(variance, update.getStream(), isFirst);
  if (isFirst)
    signs.gather(own, momentum, bucket.getSlice() * sizeof(float));
  signs.compensate(kernels.compensate(type),
                   {momentum, gradient, signs.workerError(), signs.takes(), signs.scalar(DSOPT_FACTOR), apply,
                    signs.scalar(DSOPT_BETA1), signs.scalar(DSOPT_ONE_MINUS_BETA1)});
  signs.exchange();
  signs.unpack(kernels.unpack(), {momentum}, {apply});
}

/// The same of what 0/1 Adam exchanges.
static void exchangeLocal(UpdateOp update, ProgramKind kind, dist::BucketOp bucket, ProgramBuilder &out,
                          CompressionKernels &kernels, SignExchange &signs) {
  out.insertBefore(update);
  LocalState state = {cast<RefAttr>(update.getBuffers()[kUpdateGradient]), updateState(update, bucket, 0),
                      updateState(update, bucket, 1), updateState(update, bucket, 2)};
  if (kind == ProgramKind::JoinStep)
    return exchangeWays(state, update.getStream(), kernels, signs);
  Type type = getElementTypeOrSelf(out.bufferOf(state.gradient).getType());
  exchangeGradients(state, type, update.getStream(), kernels, signs);
}

LogicalResult dsopt::compressGradients(ModuleOp module) {
  if (options::freeze_step(module).value_or(0) == 0)
    return success();
  AccessAnalysis analysis(module);
  CompressionKernels kernels(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    ProgramKind kind = program.getKind();
    if (!getSchedule(program) || (kind != ProgramKind::Step && !hasOwnGradients(kind)))
      continue;
    ProgramBuilder out(program);
    for (auto update : llvm::to_vector(getSchedule(program).getOps<UpdateOp>())) {
      // A rank's own step, before ranks join.
      if (kind == ProgramKind::JoinStep && update.getDirection())
        continue;
      if (update.getBuffers().size() < kFirstUpdateState + 2)
        return update.emitOpError("has no momentum and variance, expected those of a rule that freezes");
      dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
      BufferOp momentum = out.bufferOf(updateState(update, bucket, 0));
      StringRef memory = momentum.getMemory().value_or("");
      // Where parameters have coefficients of their own, directions go by momenta, and steps by these.
      if (update.getRecord() && !update.getDirection()) {
        update.setCoefficientsAttr(declareCoefficients(bucket, memory, out));
        continue;
      }
      // Steps before the freeze keep the errors' memory.
      SignExchange signs(out, kernels, bucket, memory, update.getSliced());
      RefAttr coefficients = update.getRecord() ? declareCoefficients(bucket, memory, out) : RefAttr();
      if (kind == ProgramKind::CompressedStep || kind == ProgramKind::JoinStep)
        exchangeLocal(update, kind, bucket, out, kernels, signs);
      else if (kind == ProgramKind::FrozenStep && coefficients)
        exchangeScaledMomentum(update, bucket, coefficients, out, kernels, signs);
      else if (kind == ProgramKind::FrozenStep || kind == ProgramKind::FirstFrozenStep)
        exchangeMomentum(update, bucket, out, kernels, signs);
    }
    renumberCollectives(getSchedule(program));
  }
  return success();
}

namespace {
struct CompressGradients : dsopt::impl::CompressGradientsBase<CompressGradients> {
  void runOnOperation() override {
    if (failed(compressGradients(getOperation())))
      signalPassFailure();
  }
};
} // namespace

//===- CompressGradients.cpp - momenta as signs between ranks -------------===//
//
// Behind the freeze (1-bit Adam: Tang et al., 2021, Algorithm 1) each rank adds its own
// gradient to the momentum, and ranks exchange signs of what that gives (SignExchange.h).
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "ScaledMomentum.h"
#include "Scheduling.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_COMPRESSGRADIENTS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Writes the exchange of a bucket's momentum in front of its update.
static void exchangeMomentum(UpdateOp update, dist::BucketOp bucket, ProgramBuilder &out,
                             CompressionKernels &kernels, SignExchange &signs) {
  out.insertBefore(update);
  RefAttr momentum = updateState(update, bucket, 0), variance = updateState(update, bucket, 1);
  auto gradient = cast<RefAttr>(update.getBuffers()[kUpdateGradient]);
  Type type = getElementTypeOrSelf(out.bufferNamed(gradient.getBuffer()).getType());
  RefAttr apply = signs.scalar(DSOPT_APPLY);
  signs.compensate(kernels.compensate(type),
                   {momentum, gradient, signs.workerError(), variance, signs.scalar(DSOPT_FACTOR), apply,
                    signs.scalar(DSOPT_BETA1), signs.scalar(DSOPT_ONE_MINUS_BETA1)},
                   update.getStream());
  signs.exchange(variance);
  signs.unpack(kernels.unpack(), {variance, momentum}, {apply});
}

LogicalResult dsopt::compressGradients(ModuleOp module) {
  if (getOption(module, "freeze_step", 0) == 0)
    return success();
  AccessAnalysis analysis(module);
  CompressionKernels kernels(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    ProgramKind kind = kindOf(program);
    if (!getSchedule(program) || (kind != ProgramKind::Step && kind != ProgramKind::FrozenStep))
      continue;
    ProgramBuilder out(program);
    for (auto update : llvm::to_vector(getSchedule(program).getOps<UpdateOp>())) {
      if (update.getBuffers().size() < kFirstUpdateState + 2)
        return update.emitOpError("has no momentum and variance, expected those of a rule that freezes");
      // Where parameters have coefficients of their own, directions go by momenta, and steps by these.
      if (update.getRecord() && !update.getDirection())
        continue;
      dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
      BufferOp momentum = out.bufferNamed(updateState(update, bucket, 0).getBuffer());
      StringRef memory = momentum.getMemory().value_or("");
      // Steps before the freeze keep the errors' memory.
      SignExchange signs(out, kernels, bucket, memory);
      RefAttr coefficients = update.getRecord() ? declareCoefficients(bucket, memory, out) : RefAttr();
      if (kind != ProgramKind::FrozenStep)
        continue;
      if (coefficients)
        exchangeScaledMomentum(update, bucket, coefficients, out, kernels, signs);
      else
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

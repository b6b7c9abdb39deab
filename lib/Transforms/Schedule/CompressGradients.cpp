//===- CompressGradients.cpp - momenta as signs between ranks -------------===//
//
// Behind the freeze (1-bit Adam: Tang et al., 2021, Algorithm 1) each rank adds its own
// gradient to the momentum, and ranks exchange signs of what that gives: each unit, a
// slice of a bucket, as a scale and 32 signs a word, to the unit's owner, which sends the
// mean as a scale and signs to all. What packing leaves out is kept and added the next
// time, at the workers of whole buckets and at the servers of their slices.
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "CompressionKernels.h"
#include "OneBit.h"
#include "ProgramBuilder.h"
#include "Scheduling.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Runtime/Scalars.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_COMPRESSGRADIENTS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Rows that a thread takes at least.
static constexpr int64_t kMappedRows = 64;

namespace {
/// Writes the exchange of one program's momenta.
class Exchanger {
public:
  Exchanger(ProgramOp program, AccessAnalysis &analysis, CompressionKernels &kernels)
      : analysis(analysis), kernels(kernels), out(program) {}
  /// Declares what a bucket's exchange keeps, in any program of the position.
  void declareErrors(UpdateOp update);
  /// Writes the exchange in front of the bucket's update.
  void exchange(UpdateOp update);

private:
  struct Unit {
    RefAttr values, mask; ///< a slice of the error buffer and of the variance
    RefAttr squares, counts;
    RefAttr record;
  };
  dist::BucketOp bucketOf(UpdateOp update) { return analysis.bucket(update.getBucketAttr().getAttr()); }
  BufferOp bufferOf(RefAttr ref) { return analysis.buffer(out.program, ref.getBuffer().getAttr()); }
  /// The momentum's or variance's place in a bucket: states behind the master.
  RefAttr state(UpdateOp update, unsigned number) {
    unsigned first = kFirstUpdateState + bucketOf(update).getMaster().has_value();
    return cast<RefAttr>(update.getBuffers()[first + number]);
  }
  RefAttr error(UpdateOp update, StringRef whose, int64_t elements);
  RefAttr declare(StringRef suffix, int64_t elements, Type type, bool crosses = false);
  RefAttr scalar(dsopt_scalar index) {
    BufferOp table = out.find(BufferRole::Scalars);
    return out.ref(FlatSymbolRefAttr::get(table.getSymNameAttr()), 0, index * sizeof(float));
  }
  void map(SymbolRefAttr kernel, ArrayRef<Attribute> refs, int64_t rows) {
    out.emit<MapOp>(kernel, ArrayAttr::get(out.context, refs), rows, kMappedRows, stream);
  }
  /// The unit's scale and signs; what they leave out of its values stays in these.
  void pack(const Unit &unit);
  /// What lies in the host's memory goes between ranks from the device's.
  RefAttr toDevice(RefAttr host, RefAttr device, int64_t bytes);
  void toHost(RefAttr device, RefAttr host, int64_t bytes);

  AccessAnalysis &analysis;
  CompressionKernels &kernels;
  ProgramBuilder out;
  std::string prefix, stream, memory; ///< of the bucket whose turn it is
  int64_t ranks = 1, slice = 0;
};
} // namespace

RefAttr Exchanger::error(UpdateOp update, StringRef whose, int64_t elements) {
  ProgramBuilder::BufferTraits traits;
  traits.persistent = true;
  traits.of = update.getBucket();
  BufferOp momentum = out.bufferNamed(state(update, 0).getBuffer());
  if (momentum && momentum.getMemory())
    traits.memory = *momentum.getMemory();
  return out.ref(out.buffer(update.getBucket() + "." + whose,
                            MemRefType::get({elements}, Float32Type::get(out.context)), BufferKind::Optimizer,
                            traits));
}

void Exchanger::declareErrors(UpdateOp update) {
  dist::BucketOp bucket = bucketOf(update);
  error(update, kWorkerError, bucket.getPadded());
  error(update, kServerError, bucket.getSlice());
}

RefAttr Exchanger::declare(StringRef suffix, int64_t elements, Type type, bool crosses) {
  ProgramBuilder::BufferTraits traits;
  if (!crosses)
    traits.memory = memory;
  return out.ref(out.buffer(prefix + suffix, MemRefType::get({elements}, type), BufferKind::Buffers, traits));
}

void Exchanger::pack(const Unit &unit) {
  map(kernels.scale(slice / kSummed), {unit.squares, unit.counts, unit.record}, 1);
  map(kernels.pack(),
      {unit.values, unit.mask, unit.record, scalar(DSOPT_APPLY), shifted(unit.record, sizeof(float))},
      slice / kWordBits);
}

RefAttr Exchanger::toDevice(RefAttr host, RefAttr device, int64_t bytes) {
  if (memory.empty())
    return host;
  out.emit<CopyOp>(host, device, bytes, kUploadStream);
  return device;
}

void Exchanger::toHost(RefAttr device, RefAttr host, int64_t bytes) {
  if (!memory.empty())
    out.emit<CopyOp>(device, host, bytes, kDownloadStream);
}

void Exchanger::exchange(UpdateOp update) {
  dist::BucketOp bucket = bucketOf(update);
  out.insertBefore(update);
  ranks = bucket.getRanks();
  slice = bucket.getSlice();
  stream = update.getStream().str();
  prefix = (update.getBucket() + ".signs.").str();
  BufferOp held = out.bufferNamed(state(update, 0).getBuffer());
  memory = held.getMemory() ? held.getMemory()->str() : "";
  int64_t padded = bucket.getPadded(), bytes = signBytes(slice), sliceBytes = slice * sizeof(float);
  Type f32 = Float32Type::get(out.context), f64 = Float64Type::get(out.context),
       word = IntegerType::get(out.context, kWordBits);
  RefAttr momentum = state(update, 0), variance = state(update, 1);
  auto gradient = cast<RefAttr>(update.getBuffers()[kUpdateGradient]);
  RefAttr workerError = error(update, kWorkerError, padded), serverError = error(update, kServerError, slice);

  // Each worker: its momentum with what it left out before, packed.
  RefAttr squares = declare("squares", padded / kSummed, f64),
          counts = declare("counts", padded / kSummed, f32);
  RefAttr sent = declare("sent", ranks * bytes / 4, word), received = sent;
  Type gradientType = getElementTypeOrSelf(out.bufferNamed(gradient.getBuffer()).getType());
  map(kernels.compensate(gradientType),
      {momentum, gradient, workerError, variance, scalar(DSOPT_FACTOR), scalar(DSOPT_APPLY),
       scalar(DSOPT_BETA1), scalar(DSOPT_ONE_MINUS_BETA1), squares, counts},
      padded / kSummed);
  int64_t part = slice / kSummed;
  for (int64_t unit = 0; unit < ranks; ++unit)
    pack({shifted(workerError, unit * sliceBytes), shifted(variance, unit * sliceBytes),
          shifted(squares, unit * part * sizeof(double)), shifted(counts, unit * part * sizeof(float)),
          shifted(sent, unit * bytes)});
  auto group = cast<StringAttr>(bucket.getAxes()[0]);
  if (ranks > 1) {
    received = declare("received", ranks * bytes / 4, word);
    RefAttr from = sent, to = received;
    if (!memory.empty()) {
      from = toDevice(sent, declare("device.sent", ranks * bytes / 4, word, /*crosses=*/true), ranks * bytes);
      to = declare("device.received", ranks * bytes / 4, word, /*crosses=*/true);
    }
    out.emit<AllToAllOp>(from, to, bytes, out.nextOrder(), group.getValue(), kCommStream);
    toHost(to, received, ranks * bytes);
  }

  // Each server: the mean of its unit with what it left out before, packed.
  RefAttr mean = declare("mean", ranks * bytes / 4, word);
  RefAttr ownSquares = declare("own.squares", slice / kSummed, f64),
          ownCounts = declare("own.counts", slice / kSummed, f32);
  SmallVector<Attribute> refs;
  for (int64_t worker = 0; worker < ranks; ++worker) {
    refs.push_back(shifted(received, worker * bytes + sizeof(float)));
    refs.push_back(shifted(received, worker * bytes));
  }
  RefAttr ownMask = shifted(variance, 0, ranks > 1 ? sliceBytes : 0);
  RefAttr ownRecord = shifted(mean, 0, ranks > 1 ? bytes : 0);
  refs.append({serverError, ownMask, scalar(DSOPT_APPLY), ownSquares, ownCounts});
  map(kernels.average(ranks), refs, slice / kSummed);
  pack({serverError, ownMask, ownSquares, ownCounts, ownRecord});
  if (ranks > 1) {
    RefAttr from = ownRecord, to = mean;
    if (!memory.empty()) {
      to = declare("device.mean", ranks * bytes / 4, word, /*crosses=*/true);
      from = toDevice(ownRecord, shifted(to, 0, bytes), bytes);
    }
    out.emit<GatherOp>(from, to, bytes, TypeAttr(), Traffic::AllGather, out.nextOrder(), group.getValue(),
                       kCommStream);
    toHost(to, mean, ranks * bytes);
  }

  // All: the new momentum.
  for (int64_t unit = 0; unit < ranks; ++unit)
    map(kernels.unpack(),
        {shifted(mean, unit * bytes + sizeof(float)), shifted(mean, unit * bytes),
         shifted(variance, unit * sliceBytes), shifted(momentum, unit * sliceBytes), scalar(DSOPT_APPLY)},
        slice / kWordBits);
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
    Exchanger exchanger(program, analysis, kernels);
    for (auto update : llvm::to_vector(getSchedule(program).getOps<UpdateOp>())) {
      if (update.getBuffers().size() < kFirstUpdateState + 2)
        return update.emitOpError("has no momentum and variance, expected those of a rule that freezes");
      exchanger.declareErrors(update);
      if (kind == ProgramKind::FrozenStep)
        exchanger.exchange(update);
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

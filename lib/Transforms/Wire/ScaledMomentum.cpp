//===- ScaledMomentum.cpp - momenta of unlike lengths as signs ------------===//

#include "ScaledMomentum.h"

#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Runtime/Coefficients.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

RefAttr dsopt::updateState(UpdateOp update, dist::BucketOp bucket, unsigned number) {
  unsigned first = kFirstUpdateState + bucket.getMaster().has_value();
  return cast<RefAttr>(update.getBuffers()[first + number]);
}

RefAttr dsopt::declareCoefficients(dist::BucketOp bucket, StringRef memory, ProgramBuilder &out) {
  ProgramBuilder::BufferTraits traits;
  traits.persistent = true;
  traits.role = BufferRole::Kept;
  traits.of = bucket.getSymName();
  traits.state = kCoefficients;
  traits.memory = memory;
  int64_t numbers = bucket.getRanges().size() * DSOPT_COEFFICIENTS;
  return out.ref(out.buffer(bucket.getSymName() + "." + kCoefficients,
                            MemRefType::get({numbers}, Float32Type::get(out.context)), BufferKind::Optimizer,
                            traits));
}

/// From a parameter's first element to the next one's, the last to the end: padding is zeroed with the last.
static SmallVector<BucketPart> partsOf(dist::BucketOp bucket) {
  SmallVector<BucketPart> parts;
  for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
    if (!parts.empty())
      parts.back().end = range.getOffset();
    parts.push_back({range.getOffset(), (int64_t)bucket.getPadded()});
  }
  return parts;
}

void dsopt::exchangeScaledMomentum(UpdateOp direction, dist::BucketOp bucket, RefAttr coefficients,
                                   ProgramBuilder &out, CompressionKernels &kernels, SignExchange &signs) {
  out.insertBefore(direction);
  RefAttr momentum = updateState(direction, bucket, 0), variance = updateState(direction, bucket, 1),
          fresh = updateState(direction, bucket, 2);
  auto gradient = cast<RefAttr>(direction.getBuffers()[kUpdateGradient]);
  Type type = getElementTypeOrSelf(out.bufferOf(gradient).getType());
  RefAttr apply = signs.scalar(DSOPT_APPLY), beta1 = signs.scalar(DSOPT_BETA1),
          rest1 = signs.scalar(DSOPT_ONE_MINUS_BETA1), beta2 = signs.scalar(DSOPT_BETA2),
          rest2 = signs.scalar(DSOPT_ONE_MINUS_BETA2);
  auto scaleOf = [&](size_t parameter) {
    return shifted(coefficients, (parameter * DSOPT_COEFFICIENTS + DSOPT_MOMENTUM_SCALE) * sizeof(float));
  };
  signs.begin(variance, direction.getStream());
  SmallVector<BucketPart> parts = partsOf(bucket);
  for (auto [parameter, part] : llvm::enumerate(parts)) {
    auto at = [begin = part.begin](RefAttr ref, int64_t width = sizeof(float)) {
      return shifted(ref, begin * width);
    };
    signs.compensate(kernels.compensate(type, /*scaled=*/true),
                     {at(momentum), at(gradient, bytesOf(1, type)), at(signs.workerError()),
                      shifted(signs.takes(), part.begin / 8), signs.scalar(DSOPT_FACTOR), apply, beta1, rest1,
                      scaleOf(parameter)},
                     part);
  }
  signs.exchange();
  for (auto [parameter, part] : llvm::enumerate(parts))
    signs.unpack(kernels.unpackScaled(), {momentum, fresh},
                 {scaleOf(parameter), apply, beta1, rest1, beta2, rest2}, part);
}

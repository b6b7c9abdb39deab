//===- CompressedReduction.cpp - gradients by a method --------------------===//

#include "CompressedReduction.h"

#include "OneBit.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

CompressedReduction::CompressedReduction(ReduceOp reduce, dist::BucketOp bucket,
                                         const Compression &compression)
    : reduce(reduce), bucket(bucket), whole(reduce.getWhole()), target(reduce.getTarget()),
      elements(reduce.getElements()), ranks(bucket.getRanks()), accumulate(reduce.getAccumulate()),
      compression(compression) {}

LogicalResult CompressedReduction::start(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels,
                                         Gaps gaps) {
  bytes = compression.method.recordBytes(elements, compression.options);
  if (bytes <= 0 || bytes % (int64_t)sizeof(int32_t))
    return reduce.emitOpError("has records of ")
           << bytes << " bytes for " << elements << " elements, expected a multiple of 4";
  ReductionWriter writer(out, kernels, whole.getBuffer().getValue());
  int64_t sliceBytes = elements * sizeof(float);
  out.insertBefore(reduce);
  error = writer.compensate(bucket, whole, wire, gaps);
  takes = writer.takes(ranks * elements, error, gaps);
  Type word = IntegerType::get(out.context, kWordBits);
  RefAttr sent = writer.scratch("packed", ranks * bytes / sizeof(int32_t), word);
  for (int64_t unit = 0; unit < ranks; ++unit)
    compression.method.pack(writer,
                            {shifted(error, unit * sliceBytes), shifted(takes, unit * elements / 8),
                             shifted(sent, unit * bytes), elements},
                            compression.options);
  received = writer.scratch("received", ranks * bytes / sizeof(int32_t), word);
  auto exchange =
      out.emit<AllToAllOp>(sent, received, bytes, /*order=*/0, reduce.getCommunicator(), reduce.getStream());
  exchange.setLogical(sliceBytes);
  for (int64_t unit = 0; unit < ranks; ++unit)
    compression.method.unpack(writer, shifted(sent, unit * bytes), shifted(error, unit * sliceBytes),
                              elements, Into::Subtract, compression.options);
  writer.clear(error, wire, gaps);
  reduce.getEvent().replaceAllUsesWith(exchange.getEvent());
  if (writer.failed)
    return reduce.emitOpError("travels by a method whose kernels do not parse");
  reduce.erase();
  return success();
}

LogicalResult CompressedReduction::finish(ProgramBuilder &out, WireKernels &, CompressionKernels &kernels) {
  ReductionWriter writer(out, kernels, whole.getBuffer().getValue());
  RefAttr sum = writer.scratch("sum", elements, Float32Type::get(out.context));
  for (int64_t rank = 0; rank < ranks; ++rank)
    compression.method.unpack(writer, shifted(received, rank * bytes), sum, elements,
                              rank ? Into::Add : Into::Replace, compression.options);
  writer.take(bucket, sum, takes, target, elements, accumulate);
  return failure(writer.failed);
}

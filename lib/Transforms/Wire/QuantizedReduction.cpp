//===- QuantizedReduction.cpp - gradients in int4, in two exchanges -------===//

#include "QuantizedReduction.h"

#include "dsopt/Transforms/Order/Communicators.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

static void map(ProgramBuilder &out, SymbolRefAttr kernel, ArrayRef<Attribute> refs, int64_t count,
                int64_t grain) {
  out.emit<MapOp>(kernel, ArrayAttr::get(out.context, refs), count, grain, kComputeStream);
}

QuantizedReduction::QuantizedReduction(ReduceOp reduce, int64_t ranks, int64_t nodeSize)
    : reduce(reduce), whole(reduce.getWhole()), target(reduce.getTarget()), stream(reduce.getStreamAttr()),
      elements(reduce.getElements()), part(pairBytes(elements)), nodeSize(nodeSize), nodes(ranks / nodeSize),
      accumulate(reduce.getAccumulate()) {}

RefAttr QuantizedReduction::onWire(ProgramBuilder &out, StringRef suffix, int64_t slices) const {
  auto type = MemRefType::get({slices * part}, IntegerType::get(out.context, 8));
  return out.ref(out.buffer(whole.getBuffer().getValue() + suffix, type, BufferKind::Buffers));
}

void QuantizedReduction::mapSlice(ProgramBuilder &out, WireKernels &kernels, RefAttr values, RefAttr wire,
                                  WireKernels::Pairs way) const {
  // Pairs of an element of the first half and one of the second, then the scales of either half's blocks.
  int64_t half = elements / 2, blocks = llvm::divideCeil(half, kPairBlock), whole = half / kPairBlock;
  RefAttr second = shifted(values, half * sizeof(float)), scales = shifted(wire, half),
          others = shifted(scales, blocks * sizeof(float));
  for (auto [first, count, row] :
       {std::tuple(int64_t(0), whole, kPairBlock), {whole, int64_t(1), half % kPairBlock}}) {
    if (!count || !row)
      continue;
    int64_t at = first * kPairBlock;
    Attribute x = shifted(values, at * sizeof(float)), y = shifted(second, at * sizeof(float)),
              pairs = shifted(wire, at), sx = shifted(scales, first * sizeof(float)),
              sy = shifted(others, first * sizeof(float));
    SmallVector<Attribute> refs;
    if (way == WireKernels::Pairs::Dequantize)
      refs = {pairs, sx, sy, x, y};
    else
      refs = {x, y, pairs, sx, sy};
    map(out, kernels.pairs(way, row), refs, count, /*grain=*/4);
  }
}

AllToAllOp QuantizedReduction::exchange(ProgramBuilder &out, RefAttr source, StringRef suffix, int64_t slices,
                                        StringRef communicator, int64_t members) const {
  auto op = out.emit<AllToAllOp>(source, onWire(out, suffix, slices), slices / members * part, /*order=*/0,
                                 communicator, stream.getValue());
  op.setLogical(slices / members * elements * (int64_t)sizeof(float));
  return op;
}

void QuantizedReduction::start(ProgramBuilder &out, WireKernels &kernels,
                               ArrayRef<std::pair<int64_t, int64_t>> gaps) {
  int64_t ranks = nodes * nodeSize;
  out.insertBefore(reduce);
  for (auto [begin, end] : gaps)
    map(out, kernels.clear(/*inPlace=*/true), {shifted(whole, begin * sizeof(float))}, end - begin,
        /*grain=*/4096);
  // By the place in their nodes that owners have, then by node: as they are sent.
  RefAttr wire = onWire(out, ".wire", ranks);
  for (int64_t place = 0; place < nodeSize; ++place)
    for (int64_t node = 0; node < nodes; ++node)
      mapSlice(out, kernels, shifted(whole, (node * nodeSize + place) * elements * sizeof(float)),
               shifted(wire, (place * nodes + node) * part), WireKernels::Pairs::Quantize);
  isBetween = nodes > 1 && nodeSize > 1;
  AllToAllOp first =
      exchange(out, wire, ".parts", ranks, isBetween ? kNode : kDataParallel, isBetween ? nodeSize : ranks);
  parts = first.getTarget();
  reduce.getEvent().replaceAllUsesWith(first.getEvent());
  reduce.erase();
}

void QuantizedReduction::add(ProgramBuilder &out, WireKernels &kernels, RefAttr target, RefAttr parts,
                             int64_t stride, int64_t count, bool accumulate) const {
  for (int64_t index = 0; index < count; ++index)
    mapSlice(out, kernels, target, shifted(parts, index * stride),
             accumulate || index ? WireKernels::Pairs::Accumulate : WireKernels::Pairs::Dequantize);
}

void QuantizedReduction::proceed(ProgramBuilder &out, WireKernels &kernels) {
  if (!isBetween)
    return;
  isBetween = false;
  auto type = MemRefType::get({nodes * elements}, Float32Type::get(out.context));
  RefAttr sums = out.ref(out.buffer(whole.getBuffer().getValue() + ".sums", type, BufferKind::Buffers)),
          wire = onWire(out, ".sums.wire", nodes);
  for (int64_t node = 0; node < nodes; ++node) {
    RefAttr sum = shifted(sums, node * elements * sizeof(float));
    add(out, kernels, sum, shifted(parts, node * part), nodes * part, nodeSize, /*accumulate=*/false);
    mapSlice(out, kernels, sum, shifted(wire, node * part), WireKernels::Pairs::Quantize);
  }
  parts = exchange(out, wire, ".sums.parts", nodes, kAcross, nodes).getTarget();
}

void QuantizedReduction::finish(ProgramBuilder &out, WireKernels &kernels) {
  proceed(out, kernels);
  int64_t count = nodes > 1 ? nodes : nodeSize;
  auto beside = [&](StringRef suffix) {
    auto type = MemRefType::get({elements}, Float32Type::get(out.context));
    return out.ref(out.buffer(whole.getBuffer().getValue() + suffix, type, BufferKind::Buffers));
  };
  if (accumulate) {
    RefAttr sum = beside(".sum");
    add(out, kernels, sum, parts, part, count, /*accumulate=*/false);
    out.emit<AddOp>(target, sum, elements, Float32Type::get(out.context), kComputeStream);
  } else if (!target.isUniform()) {
    // This rank's part of a whole buffer is written at once.
    RefAttr sum = beside(".sum"), last = beside(".last");
    Type f32 = Float32Type::get(out.context);
    add(out, kernels, sum, parts, part, count - 1, /*accumulate=*/false);
    add(out, kernels, last, shifted(parts, (count - 1) * part), part, 1, /*accumulate=*/false);
    map(out, kernels.sum(f32, f32), {sum, last, target}, elements, /*grain=*/4096);
  } else {
    add(out, kernels, target, parts, part, count, /*accumulate=*/false);
  }
}

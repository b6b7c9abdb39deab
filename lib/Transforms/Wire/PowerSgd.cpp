//===- PowerSgd.cpp - gradients as products of two narrow factors ---------===//

#include "PowerSgd.h"

#include "PowerSgdKernels.h"
#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

static constexpr int64_t kBytes = sizeof(float);

CompressionMethod dsopt::powerSgd() {
  CompressionMethod method;
  method.options = {{"rank", 2, 1, 32, /*multipleOf=*/1}};
  method.factorRank = [](CompressionMethod::Options options) { return (int64_t)options[0]; };
  return method;
}

FactoredReduction::FactoredReduction(ReduceOp reduce, dist::BucketOp bucket, const Compression &compression)
    : CompressedReduction(reduce, bucket, compression),
      rank(compression.method.factorRank(compression.options)), group(reduce.getCommunicator().str()),
      stream(reduce.getStream().str()) {
  auto module = bucket->getParentOfType<ModuleOp>();
  for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
    auto parameter = module.lookupSymbol<graph::ParameterOp>(range.getParameter().getAttr());
    ArrayRef<int64_t> shape =
        parameter ? cast<ShapedType>(parameter.getType()).getShape() : ArrayRef<int64_t>();
    Item item{range.getOffset(), range.getElements(), 0, lefts};
    // Of a tile, which is a part of a parameter, nothing is known.
    if (shape.size() >= 2 && ShapedType::getNumElements(shape) == range.getElements()) {
      int64_t columns = range.getElements() / shape[0];
      if (rank * (shape[0] + columns) < range.getElements()) {
        item = {range.getOffset(), shape[0], columns, lefts, rights};
        rights += rank * columns;
      }
    }
    lefts += item.columns ? rank * item.rows : item.rows;
    items.push_back(item);
  }
}

int64_t FactoredReduction::part(int64_t count) const {
  return llvm::alignTo(llvm::divideCeil(count, ranks), kSummedValues);
}

SmallVector<Attribute> FactoredReduction::columns(RefAttr first, int64_t size) const {
  SmallVector<Attribute> places;
  for (int64_t i = 0; i < rank; ++i)
    places.push_back(shifted(first, i * size * kBytes));
  return places;
}

AllToAllOp FactoredReduction::exchange(ProgramBuilder &out, ReductionWriter &writer, RefAttr sent,
                                       StringRef name, int64_t count) {
  int64_t size = part(count);
  if (int64_t rest = ranks * size - count)
    writer.fill(shifted(sent, count * kBytes), 0, rest, error);
  RefAttr received = writer.scratch((name + ".received").str(), ranks * size, Float32Type::get(out.context));
  return out.emit<AllToAllOp>(sent, received, size * kBytes, /*order=*/0, group, stream);
}

RefAttr FactoredReduction::total(ProgramBuilder &out, ReductionWriter &writer, AllToAllOp exchanged,
                                 StringRef name, int64_t count) {
  int64_t size = part(count), bytes = size * kBytes, rows = size / kSummedValues;
  Type f32 = Float32Type::get(out.context);
  RefAttr received = exchanged.getTarget(), whole = writer.scratch(name, ranks * size, f32);
  RefAttr own = Bucket(bucket).ownPart(whole, bytes), sum = received;
  for (int64_t other = 1; other < ranks; ++other) {
    RefAttr made = other + 1 == ranks ? own : writer.scratch((name + ".sum").str(), size, f32);
    if (other == 1 || other + 1 == ranks)
      writer.map("powersgd.sum", kFactorSum, {sum, shifted(received, other * bytes), made}, rows);
    else
      writer.map("powersgd.part", kFactorPart, {shifted(received, other * bytes), made}, rows, Into::Add);
    sum = made;
  }
  out.emit<GatherOp>(own, whole, bytes, TypeAttr(), Traffic::AllGather, /*order=*/0, group, stream);
  return whole;
}

LogicalResult FactoredReduction::start(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels,
                                       Gaps between) {
  gaps.assign(between.begin(), between.end());
  ReductionWriter writer(out, kernels, whole.getBuffer().getValue());
  out.insertBefore(reduce);
  error = writer.compensate(bucket, whole, wire, gaps);
  takes = writer.takes(ranks * elements, error, gaps);
  RefAttr sent = writer.scratch("left.sent", ranks * part(lefts), Float32Type::get(out.context));
  for (Item &item : items) {
    RefAttr values = shifted(error, item.offset * kBytes), place = shifted(sent, item.left * kBytes);
    if (!item.columns) {
      FactorKernel copy = factorCopy(item.rows);
      writer.map(copy.name, copy.text, {values, place}, 1);
      continue;
    }
    item.factor = writer.kept(bucket, kFactor + "." + Twine(item.offset), rank * item.columns);
    FactorKernel begin = factorBegin(item.columns), left = factorLeft(rank, item.columns);
    writer.map(begin.name, begin.text, {item.factor}, rank);
    SmallVector<Attribute> places{values};
    llvm::append_range(places, columns(item.factor, item.columns));
    llvm::append_range(places, columns(place, item.rows));
    writer.map(left.name, left.text, places, item.rows);
  }
  first = exchange(out, writer, sent, "left", lefts);
  first.setLogical(elements * kBytes);
  reduce.getEvent().replaceAllUsesWith(first.getEvent());
  reduce.erase();
  return success(!writer.failed);
}

LogicalResult FactoredReduction::finish(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels) {
  ReductionWriter writer(out, kernels, whole.getBuffer().getValue());
  Type f32 = Float32Type::get(out.context);
  RefAttr left = total(out, writer, first, "left", lefts), right;
  if (rights) {
    RefAttr sent = writer.scratch("right.sent", ranks * part(rights), f32);
    for (const Item &item : items) {
      if (!item.columns)
        continue;
      SmallVector<Attribute> p = columns(shifted(left, item.left * kBytes), item.rows);
      FactorKernel size = factorSize(item.rows), unit = factorUnit(item.rows), apart = factorApart(item.rows);
      RefAttr sizes = writer.scratch("sizes", rank, Float64Type::get(out.context));
      writer.map(size.name, size.text, {p[0], sizes}, rank);
      for (int64_t i = 0; i < rank; ++i) {
        writer.map(unit.name, unit.text, {p[i], shifted(sizes, i * sizeof(double))}, 1);
        if (i + 1 < rank)
          writer.map(apart.name, apart.text, {p[i], p[i + 1]}, rank - 1 - i);
      }
      FactorKernel product = factorRight(rank, item.rows, item.columns);
      SmallVector<Attribute> places{shifted(error, item.offset * kBytes)};
      llvm::append_range(places, p);
      llvm::append_range(places, columns(shifted(sent, item.right * kBytes), item.columns));
      writer.map(product.name, product.text, places, item.columns);
    }
    right = total(out, writer, exchange(out, writer, sent, "right", rights), "right", rights);
  }
  RefAttr made = writer.scratch("made", ranks * elements, f32);
  for (const Item &item : items) {
    RefAttr come = shifted(made, item.offset * kBytes), kept = shifted(error, item.offset * kBytes);
    if (!item.columns) {
      FactorKernel copy = factorCopy(item.rows);
      writer.map(copy.name, copy.text, {shifted(left, item.left * kBytes), come}, 1);
      writer.clear(error, wire, {{item.offset, item.offset + item.rows}});
      continue;
    }
    RefAttr factor = shifted(right, item.right * kBytes);
    FactorKernel copy = factorCopy(item.columns), product = factorProduct(rank, item.columns, 1),
                 share = factorProduct(rank, item.columns, ranks);
    writer.map(copy.name, copy.text, {factor, item.factor}, rank);
    SmallVector<Attribute> places = columns(shifted(left, item.left * kBytes), item.rows);
    llvm::append_range(places, columns(factor, item.columns));
    places.push_back(come);
    writer.map(product.name, product.text, places, item.rows);
    places.back() = kept;
    writer.map(share.name, share.text, places, item.rows, Into::Subtract);
  }
  for (auto [begin, end] : gaps)
    writer.fill(shifted(made, begin * kBytes), 0, end - begin, error);
  writer.take(bucket, Bucket(bucket).ownPart(made, elements * kBytes), takes, target, elements, accumulate);
  return success(!writer.failed);
}

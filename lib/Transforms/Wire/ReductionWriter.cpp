//===- ReductionWriter.cpp - what compressed reductions write -------------===//

#include "ReductionWriter.h"

#include "OneBit.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Rows that a thread takes at least.
static constexpr int64_t kMappedRows = 64;

/// What was left out before, and a gradient.
static constexpr const char *kCompensate = R"mlir(
  func.func @compress.gradient(%g: tensor<64x64xf32>) -> tensor<64x64xf32> {
    return %g : tensor<64x64xf32>
  })mlir";

/// Sums, but for padding.
static constexpr const char *kTaken = R"mlir(
  !r = tensor<64x2x32xf32>
  func.func @compress.taken(%sum: !r, %takes: tensor<64x2xi32>) -> !r {
    %zero = graph.constant dense<0.0> : tensor<1xf32>
    %bits = graph.unpack_bits %takes : (tensor<64x2xi32>) -> !r
    %takesPart = graph.greater %bits, %zero : (!r, tensor<1xf32>) -> tensor<64x2x32xi1>
    %taken = graph.where %takesPart, %sum, %zero : (tensor<64x2x32xi1>, !r, tensor<1xf32>) -> !r
    return %taken : !r
  })mlir";

/// Words of one value, whatever `%any` is.
static std::string wordsOf(const std::string &name, int32_t value) {
  return "!w = tensor<64xi32>\nfunc.func @" + name + "(%any: !w) -> !w {\n%value = graph.constant dense<" +
         std::to_string(value) +
         R"mlir(> : tensor<1xi32>
    %none = graph.sub %any, %any : (!w, !w) -> !w
    %words = graph.add %none, %value : (!w, tensor<1xi32>) -> !w
    return %words : !w
  })mlir";
}

RefAttr ReductionWriter::scratch(StringRef name, int64_t elements, Type type) {
  return out.ref(out.buffer(prefix + "." + name, MemRefType::get({elements}, type), BufferKind::Buffers));
}

void ReductionWriter::map(StringRef name, const std::string &text, ArrayRef<Attribute> places, int64_t rows,
                          Into into) {
  SymbolRefAttr kernel = kernels.get(name.str(), text, into);
  if (!kernel) {
    failed = true;
    return;
  }
  out.emit<MapOp>(kernel, ArrayAttr::get(context, places), rows, kMappedRows, kComputeStream);
}

RefAttr ReductionWriter::kept(dist::BucketOp bucket, const Twine &name, int64_t elements) {
  ProgramBuilder::BufferTraits traits;
  traits.persistent = true;
  std::string state = name.str();
  // A state has a value for each element.
  traits.role = elements == static_cast<int64_t>(bucket.getPadded()) ? BufferRole::State : BufferRole::Kept;
  traits.of = bucket.getSymName();
  traits.state = state;
  return out.ref(out.buffer(bucket.getSymName() + "." + state,
                            MemRefType::get({elements}, Float32Type::get(context)), BufferKind::Optimizer,
                            traits));
}

void ReductionWriter::clear(RefAttr values, WireKernels &wire, Gaps gaps) {
  for (auto [begin, end] : gaps)
    out.emit<MapOp>(wire.clear(/*inPlace=*/true),
                    ArrayAttr::get(context, {shifted(values, begin * sizeof(float))}), end - begin,
                    /*grain=*/4096, kComputeStream);
}

RefAttr ReductionWriter::compensate(dist::BucketOp bucket, RefAttr whole, WireKernels &wire, Gaps gaps) {
  RefAttr error = kept(bucket, kWorkerError, bucket.getPadded());
  clear(whole, wire, gaps);
  map("compress.gradient", kCompensate, {whole, error}, bucket.getPadded() / kSummed, Into::Add);
  return error;
}

void ReductionWriter::fill(RefAttr words, uint32_t value, int64_t count, RefAttr any) {
  std::string name = "compress.words." + std::to_string(value);
  map(name, wordsOf(name, static_cast<int32_t>(value)), {any, words}, count);
}

RefAttr ReductionWriter::takes(int64_t elements, RefAttr any, Gaps gaps) {
  int64_t count = elements / kWordBits;
  std::vector<uint32_t> words(count, ~0u);
  for (auto [begin, end] : gaps)
    for (int64_t i = begin; i < end; ++i)
      words[i / kWordBits] &= ~(1u << i % kWordBits);
  RefAttr bits = scratch("takes", count, IntegerType::get(context, kWordBits));
  for (int64_t begin = 0, end; begin < count; begin = end) {
    for (end = begin; end < count && words[end] == words[begin];)
      ++end;
    fill(shifted(bits, begin * kWordBits / 8), words[begin], end - begin, any);
  }
  return bits;
}

void ReductionWriter::take(dist::BucketOp bucket, RefAttr slice, RefAttr takes, RefAttr target,
                           int64_t elements, bool accumulate) {
  map("compress.taken", kTaken, {slice, Bucket(bucket).ownPart(takes, elements / 8), target},
      elements / kSummed, accumulate ? Into::Add : Into::Replace);
}

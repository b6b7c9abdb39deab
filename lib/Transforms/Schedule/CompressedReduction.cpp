//===- CompressedReduction.cpp - gradients by a method --------------------===//

#include "CompressedReduction.h"

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

namespace {
class Writer : public CompressionWriter {
public:
  Writer(ProgramBuilder &out, CompressionKernels &kernels, StringRef prefix)
      : out(out), kernels(kernels), prefix(prefix) {
    context = out.context;
  }
  RefAttr at(RefAttr place, int64_t bytes) override { return shifted(place, bytes); }
  RefAttr scratch(StringRef name, int64_t elements, Type type) override {
    return out.ref(out.buffer(prefix + "." + name, MemRefType::get({elements}, type), BufferKind::Buffers));
  }
  void map(StringRef name, const std::string &text, ArrayRef<Attribute> places, int64_t rows,
           Into into = Into::Replace) override {
    SymbolRefAttr kernel = kernels.get(name.str(), text, into);
    if (!kernel) {
      failed = true;
      return;
    }
    out.emit<MapOp>(kernel, ArrayAttr::get(context, places), rows, kMappedRows, kComputeStream);
  }

  bool failed = false; ///< some kernel's text is wrong

private:
  ProgramBuilder &out;
  CompressionKernels &kernels;
  StringRef prefix;
};
} // namespace

CompressedReduction::CompressedReduction(ReduceOp reduce, dist::BucketOp bucket,
                                         const Compression &compression)
    : reduce(reduce), bucket(bucket), compression(compression), whole(reduce.getWhole()),
      target(reduce.getTarget()), elements(reduce.getElements()), ranks(bucket.getRanks()),
      bytes(compression.method.recordBytes(elements, compression.options)),
      accumulate(reduce.getAccumulate()) {}

void CompressedReduction::writeTakes(CompressionWriter &writer, ArrayRef<std::pair<int64_t, int64_t>> gaps) {
  int64_t count = ranks * elements / kWordBits;
  std::vector<uint32_t> words(count, ~0u);
  for (auto [begin, end] : gaps)
    for (int64_t i = begin; i < end; ++i)
      words[i / kWordBits] &= ~(1u << i % kWordBits);
  takes = writer.scratch("takes", count, IntegerType::get(writer.context, kWordBits));
  for (int64_t begin = 0, end; begin < count; begin = end) {
    for (end = begin; end < count && words[end] == words[begin];)
      ++end;
    std::string name = "compress.words." + std::to_string(words[begin]);
    writer.map(name, wordsOf(name, static_cast<int32_t>(words[begin])),
               {error, shifted(takes, begin * kWordBits / 8)}, end - begin);
  }
}

LogicalResult CompressedReduction::start(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels,
                                         ArrayRef<std::pair<int64_t, int64_t>> gaps) {
  if (bytes <= 0 || bytes % (int64_t)sizeof(int32_t))
    return reduce.emitOpError("has records of ")
           << bytes << " bytes for " << elements << " elements, expected a multiple of 4";
  std::string prefix = whole.getBuffer().getValue().str();
  Writer writer(out, kernels, prefix);
  int64_t sliceBytes = elements * sizeof(float);
  out.insertBefore(reduce);
  auto clear = [&](RefAttr values) {
    for (auto [begin, end] : gaps)
      out.emit<MapOp>(wire.clear(/*inPlace=*/true),
                      ArrayAttr::get(out.context, {shifted(values, begin * sizeof(float))}), end - begin,
                      /*grain=*/4096, kComputeStream);
  };
  ProgramBuilder::BufferTraits traits;
  traits.persistent = true;
  traits.of = bucket.getSymName();
  error = out.ref(out.buffer(bucket.getSymName() + "." + kWorkerError,
                             MemRefType::get({ranks * elements}, Float32Type::get(out.context)),
                             BufferKind::Optimizer, traits));
  clear(whole);
  writer.map("compress.gradient", kCompensate, {whole, error}, ranks * elements / kSummed, Into::Add);
  writeTakes(writer, gaps);
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
  clear(error);
  reduce.getEvent().replaceAllUsesWith(exchange.getEvent());
  if (writer.failed)
    return reduce.emitOpError("travels by a method whose kernels do not parse");
  reduce.erase();
  return success();
}

LogicalResult CompressedReduction::finish(ProgramBuilder &out, CompressionKernels &kernels) {
  std::string prefix = whole.getBuffer().getValue().str();
  Writer writer(out, kernels, prefix);
  RefAttr sum = writer.scratch("sum", elements, Float32Type::get(out.context));
  for (int64_t rank = 0; rank < ranks; ++rank)
    compression.method.unpack(writer, shifted(received, rank * bytes), sum, elements,
                              rank ? Into::Add : Into::Replace, compression.options);
  writer.map("compress.taken", kTaken, {sum, shifted(takes, 0, elements / 8), target}, elements / kSummed,
             accumulate ? Into::Add : Into::Replace);
  return failure(writer.failed);
}

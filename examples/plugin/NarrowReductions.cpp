//===- NarrowReductions.cpp - a method outside the tree: bf16 on the wire -===//
//
// Gradients travel between the data-parallel ranks in bf16, half the bytes, by -compress-gradients=narrow.
// What rounding leaves out is kept on the rank and added to the next gradient (error feedback: Seide et al.,
// 2014, section 3), which is the frame's work. narrow{least=X} sends what is below X as 0.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Transforms/Wire/Compression.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace dsopt;

/// Kernels over rows of 64 elements, however many there are.
static std::string narrowed(const std::string &name, double least) {
  return "func.func @" + name + R"mlir((%x: tensor<64x64xf32>) -> tensor<64x64xbf16> {
    %zero = graph.constant dense<0.0> : tensor<1xf32>
    %least = graph.constant dense<)mlir" +
         std::to_string(least) + R"mlir(> : tensor<1xf32>
    %size = graph.abs %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %small = graph.less %size, %least : (tensor<64x64xf32>, tensor<1xf32>) -> tensor<64x64xi1>
    %sent = graph.where %small, %zero, %x : (tensor<64x64xi1>, tensor<1xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %0 = graph.cast %sent : (tensor<64x64xf32>) -> tensor<64x64xbf16>
    return %0 : tensor<64x64xbf16>
  })mlir";
}

static constexpr const char *kWidened = R"mlir(
  func.func @narrow.widened(%x: tensor<64x64xbf16>) -> tensor<64x64xf32> {
    %0 = graph.cast %x : (tensor<64x64xbf16>) -> tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  })mlir";

static CompressionMethod narrow() {
  using Options = CompressionMethod::Options;
  CompressionMethod method;
  method.options = {{"least", /*byDefault=*/0, /*least=*/0, /*most=*/1e30}};
  method.recordBytes = [](int64_t elements, Options) { return 2 * elements; };
  method.pack = [](CompressionWriter &out, const CompressionUnit &unit, Options options) {
    out.map("narrow.narrowed", narrowed("narrow.narrowed", options[0]), {unit.values, unit.record},
            unit.elements / 64);
  };
  method.unpack = [](CompressionWriter &out, exec::RefAttr record, exec::RefAttr values, int64_t elements,
                     Into into,
                     Options) { out.map("narrow.widened", kWidened, {record, values}, elements / 64, into); };
  return method;
}

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "narrow-reductions", "1", [] { registerCompression("narrow", narrow()); }};
}

//===- OneBit.cpp - values as a scale and signs ---------------------------===//

#include "OneBit.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Sums are f64, so that their order does not show: hosts and devices have orders of their own.
static constexpr const char *kSums = R"mlir(
  !r = tensor<64x2x32xf32>
  func.func @onebit.sums(%x: !r, %takes: tensor<64x2xi32>) -> (tensor<64xf64>, tensor<64xf32>) {
    %zero = graph.constant dense<0.0> : tensor<1xf32>
    %magnitude = graph.abs %x : (!r) -> !r
    %exact = graph.cast %magnitude : (!r) -> tensor<64x2x32xf64>
    %sums = graph.reduce_sum %exact {axes = array<i64: 1, 2>} : (tensor<64x2x32xf64>) -> tensor<64xf64>
    %bits = graph.unpack_bits %takes : (tensor<64x2xi32>) -> !r
    %ones = graph.max %bits, %zero : (!r, tensor<1xf32>) -> !r
    %counts = graph.reduce_sum %ones {axes = array<i64: 1, 2>} : (!r) -> tensor<64xf32>
    return %sums, %counts : tensor<64xf64>, tensor<64xf32>
  })mlir";

static std::string meanOf(const std::string &count, const std::string &name) {
  return "!n = tensor<64x" + count + "xf32>\n!d = tensor<64x" + count +
         "xf64>\n!t = tensor<64xf64>\n!u = tensor<1xf64>\nfunc.func @" + name +
         R"mlir((%sums: !d, %counts: !n) -> tensor<64xf32> {
    %one = graph.constant dense<1.0> : !u
    %1 = graph.reduce_sum %sums {axes = array<i64: 1>} : (!d) -> !t
    %2 = graph.cast %counts : (!n) -> !d
    %3 = graph.reduce_sum %2 {axes = array<i64: 1>} : (!d) -> !t
    %4 = graph.max %3, %one : (!t, !u) -> !t
    %5 = graph.div %1, %4 : (!t, !t) -> !t
    %6 = graph.cast %5 : (!t) -> tensor<64xf32>
    return %6 : tensor<64xf32>
  })mlir";
}

static constexpr const char *kSigns = R"mlir(
  func.func @onebit.signs(%x: tensor<64x32xf32>) -> tensor<64xi32> {
    %words = graph.sign_bits %x : (tensor<64x32xf32>) -> tensor<64xi32>
    return %words : tensor<64xi32>
  })mlir";

static constexpr const char *kScaled = R"mlir(
  !r = tensor<64x32xf32>
  func.func @onebit.scaled(%words: tensor<64xi32>, %scale: tensor<1xf32>) -> !r {
    %signs = graph.unpack_bits %words : (tensor<64xi32>) -> !r
    %values = graph.mul %signs, %scale : (!r, tensor<1xf32>) -> !r
    return %values : !r
  })mlir";

static void pack(CompressionWriter &out, const CompressionUnit &unit, CompressionMethod::Options) {
  int64_t rows = unit.elements / kSummed;
  RefAttr sums = out.scratch("sums", rows, Float64Type::get(out.context)),
          counts = out.scratch("counts", rows, Float32Type::get(out.context));
  std::string count = std::to_string(rows), name = "onebit.mean." + count;
  out.map("onebit.sums", kSums, {unit.values, unit.takes, sums, counts}, rows);
  out.map(name, meanOf(count, name), {sums, counts, unit.record}, 1);
  out.map("onebit.signs", kSigns, {unit.values, out.at(unit.record, sizeof(float))},
          unit.elements / kWordBits);
}

static void unpack(CompressionWriter &out, RefAttr record, RefAttr values, int64_t elements, Into into,
                   CompressionMethod::Options) {
  out.map("onebit.scaled", kScaled, {out.at(record, sizeof(float)), record, values}, elements / kWordBits,
          into);
}

CompressionMethod dsopt::oneBit() {
  return {[](int64_t elements, CompressionMethod::Options) { return signBytes(elements); }, pack, unpack};
}

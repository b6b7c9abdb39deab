//===- LocalSteps.cpp - what ranks exchange between local steps -----------===//

#include "LocalSteps.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// (gradient, error, takes, factor, apply) -> as CompressionKernels::compensate.
static SymbolRefAttr compensateGradients(Type gradient, CompressionKernels &kernels) {
  std::string type;
  llvm::raw_string_ostream(type) << gradient;
  std::string name = "zero_one.compensate." + type;
  return kernels.get(name, withRowTypes("2x32", type,
                                        "func.func @" + name +
                                            R"mlir((%g: !g, %e: !r, %t: !w, %factor: !s, %apply: !s)
      -> (!r, !q, !p) attributes {graph.in_place = array<i64: 1, 5, 6>} {
    %wide = graph.cast %g : (!g) -> !r
    %scaled = graph.mul %wide, %factor : (!r, !s) -> !r
    %all = graph.add %scaled, %e : (!r, !r) -> !r)mlir" +
                                            keepAndSum()));
}

/// (way, error, takes, variance, correction, eps, apply) -> the same, of ways weighted by sqrt(variance)
/// correction + eps.
static SymbolRefAttr compensateWays(CompressionKernels &kernels) {
  return kernels.get("zero_one.weigh", withRowTypes("2x32", "f32",
                                                    R"mlir(
  func.func @zero_one.weigh(%u: !r, %e: !r, %t: !w, %v: !r, %correction: !s, %eps: !s, %apply: !s)
      -> (!r, !q, !p) attributes {graph.in_place = array<i64: 1, 7, 8>} {
    %root = graph.sqrt %v : (!r) -> !r
    %corrected = graph.mul %root, %correction : (!r, !s) -> !r
    %weight = graph.add %corrected, %eps : (!r, !s) -> !r
    %weighted = graph.mul %u, %weight : (!r, !r) -> !r
    %all = graph.add %weighted, %e : (!r, !r) -> !r)mlir" +
                                                        keepAndSum()));
}

/// (words, scale, takes, momentum, apply, beta1, 1 - beta1) -> momentum := the mean with what was there.
static SymbolRefAttr addToMomentum(CompressionKernels &kernels) {
  return kernels.get("zero_one.momentum", withRowTypes("32", "f32",
                                                       R"mlir(
  func.func @zero_one.momentum(%w: !w, %scale: !s, %t: !w, %m: !r, %apply: !s, %keep: !s, %take: !s) -> !r
      attributes {graph.in_place = array<i64: 3>} {
    %zero = graph.constant dense<0.0> : !s
    %sign = graph.unpack_bits %w : (!w) -> !r
    %mean = graph.mul %sign, %scale : (!r, !s) -> !r
    %bits = graph.unpack_bits %t : (!w) -> !r
    %part = graph.greater %bits, %zero : (!r, !s) -> !b
    %masked = graph.where %part, %mean, %zero : (!b, !r, !s) -> !r
    %new = graph.mul %masked, %take : (!r, !s) -> !r
    %old = graph.mul %m, %keep : (!r, !s) -> !r
    %sum = graph.add %old, %new : (!r, !r) -> !r
    %applies = graph.expand %apply : (!s) -> !r
    %go = graph.greater %applies, %zero : (!r, !s) -> !b
    %kept = graph.where %go, %sum, %m : (!b, !r, !r) -> !r
    return %kept : !r
  })mlir"));
}

void dsopt::exchangeGradients(const LocalState &state, Type gradient, StringRef stream,
                              CompressionKernels &kernels, SignExchange &signs) {
  RefAttr apply = signs.scalar(DSOPT_APPLY);
  signs.begin(state.variance, stream);
  signs.compensate(compensateGradients(gradient, kernels),
                   {state.gradient, signs.workerError(), signs.takes(), signs.scalar(DSOPT_FACTOR), apply});
  signs.exchange();
  signs.unpack(addToMomentum(kernels), {state.momentum},
               {apply, signs.scalar(DSOPT_BETA1), signs.scalar(DSOPT_ONE_MINUS_BETA1)});
}

void dsopt::exchangeWays(const LocalState &state, StringRef stream, CompressionKernels &kernels,
                         SignExchange &signs) {
  RefAttr apply = signs.scalar(DSOPT_APPLY);
  signs.begin(state.variance, stream);
  signs.compensate(compensateWays(kernels),
                   {state.way, signs.workerError(), signs.takes(), state.variance,
                    signs.scalar(DSOPT_RSQRT_BIAS2), signs.scalar(DSOPT_EPS), apply});
  signs.exchange();
  signs.unpack(kernels.unpack(), {state.way}, {apply});
}

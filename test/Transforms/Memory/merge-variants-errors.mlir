// RUN: dsopt-opt %s -merge-variants -verify-diagnostics -split-input-file

// expected-error @below {{the model is cut into other blocks where the dimension is 4 (at @b0), expected the same parameters in each block for all of its values; give one value}}
module {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 4>] elements 64 padded 64 over [edp, ep, sp] zero 0
  module attributes {exec.variant = 4 : i64} {
    graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
    dist.bucket @b0 : f32 of [1] [#dist.range<@w, 0, 4>] elements 64 padded 64 over [edp, ep, sp] zero 0
  }
}

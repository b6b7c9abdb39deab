// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero=stage=1 -verify-dist | FileCheck %s

// What parameters have in common decides who shares a bucket, not what the bucket is called: both parameters here are read by two blocks, and one
// has the name that the other's bucket gets for its branch.

// CHECK: dist.bucket @tied.e.branch : f32 of [0, 1] [#dist.range<@e, 0, 64>]
// CHECK: dist.bucket @tied.e.branch.f32 : f32 of [0, 1] [#dist.range<@e.branch, 0, 64>]
// CHECK-NOT: dist.bucket
graph.parameter @e : tensor<64xf32> from "m" at 0 bytes 256 {branch}
graph.parameter @e.branch : tensor<64xf32> from "m" at 256 bytes 256
graph.state @e.m : tensor<64xf32> optimizer "m" of @e
graph.state @e.branch.m : tensor<64xf32> optimizer "m" of @e.branch
func.func private @block0.F() -> (tensor<64xf32>, tensor<64xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %e = graph.read @e : tensor<64xf32>
  %o = graph.read @e.branch : tensor<64xf32>
  return %e, %o : tensor<64xf32>, tensor<64xf32>
}
func.func private @block1.F() -> (tensor<64xf32>, tensor<64xf32>) attributes {dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %e = graph.read @e : tensor<64xf32>
  %o = graph.read @e.branch : tensor<64xf32>
  return %e, %o : tensor<64xf32>, tensor<64xf32>
}

// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero=stage=1 | FileCheck %s

// Trained parameters of one block, but of two types, or with gradients of two: a bucket each.
// CHECK: dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>, #dist.range<@z, 64, 64>] {{.*}} states [#dist.state<"m" : f32>]
// CHECK: dist.bucket @b0.bf16 : bf16 of [0] [#dist.range<@v, 0, 128>] {{.*}} master f32 states [#dist.state<"m" : f32>]
// CHECK: dist.bucket @b0.f32 : f32 of [0] [#dist.range<@g, 0, 64>] {{.*}} gradient bf16
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.parameter @v : tensor<128xbf16> from "m" at 256 bytes 256
graph.parameter @g : tensor<64xf32> from "m" at 512 bytes 256
graph.parameter @z : tensor<64xf32> from "m" at 768 bytes 256
graph.state @w.m : tensor<64xf32> optimizer "m" of @w
graph.state @v.master : tensor<128xf32> master of @v
graph.state @v.m : tensor<128xf32> optimizer "m" of @v
graph.state @g.grad.0 : tensor<64xbf16> gradient of @g block 0
graph.state @z.m : tensor<64xf32> optimizer "m" of @z
func.func private @block0.F() -> (tensor<64xf32>, tensor<128xbf16>, tensor<64xf32>, tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w : tensor<64xf32>
  %v = graph.read @v : tensor<128xbf16>
  %g = graph.read @g : tensor<64xf32>
  %z = graph.read @z : tensor<64xf32>
  return %w, %v, %g, %z : tensor<64xf32>, tensor<128xbf16>, tensor<64xf32>, tensor<64xf32>
}

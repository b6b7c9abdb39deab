// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero=stage=1 | FileCheck %s

// What a rule of whole matrices updates, by its master where it has one, is apart from what its companion updates.
// CHECK: dist.bucket @b0.matrices : f32 of [0] [#dist.range<@w, 0, 64>, #dist.range<@z, 64, 64>] {{.*}} states [#dist.state<"momentum" : f32>]
// CHECK: dist.bucket @b0 : f32 of [0] [#dist.range<@v, 0, 8>] {{.*}} states [#dist.state<"m" : f32>]
// CHECK: dist.bucket @b0.matrices.bf16 : bf16 of [0] [#dist.range<@n, 0, 64>] {{.*}} master f32 states [#dist.state<"momentum" : f32>]
graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
graph.parameter @v : tensor<8xf32> from "m" at 256 bytes 32
graph.parameter @z : tensor<8x8xf32> from "m" at 288 bytes 256
graph.parameter @n : tensor<8x8xf32> from "m" at 544 bytes 256 {storage = bf16}
graph.state @w.momentum : tensor<8x8xf32> optimizer "momentum" of @w
graph.state @v.m : tensor<8xf32> optimizer "m" of @v
graph.state @z.momentum : tensor<8x8xf32> optimizer "momentum" of @z
graph.state @n.master : tensor<8x8xf32> master of @n
graph.state @n.momentum : tensor<8x8xf32> optimizer "momentum" of @n
func.func private @block0.F() -> (tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w : tensor<8x8xf32>
  %v = graph.read @v : tensor<8xf32>
  %z = graph.read @z : tensor<8x8xf32>
  %n = graph.read @n : tensor<8x8xbf16>
  return %w, %v, %z, %n : tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>
}
func.func @update(%s: tensor<16xf32>) {
  %w = graph.read @w : tensor<8x8xf32>
  %wm = graph.read @w.momentum : tensor<8x8xf32>
  %w1:2 = graph.muon %w, %w, %wm, %s {functions = #graph.functions<matrix = @muon.8x8>} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<16xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  graph.write @w.momentum, %w1#1 : tensor<8x8xf32>
  %z = graph.read @z : tensor<8x8xf32>
  %zm = graph.read @z.momentum : tensor<8x8xf32>
  %z1:2 = graph.muon %z, %z, %zm, %s {functions = #graph.functions<matrix = @muon.8x8>} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<16xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  graph.write @z.momentum, %z1#1 : tensor<8x8xf32>
  %n = graph.read @n.master : tensor<8x8xf32>
  %nm = graph.read @n.momentum : tensor<8x8xf32>
  %n1:2 = graph.muon %n, %n, %nm, %s {functions = #graph.functions<matrix = @muon.8x8>} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<16xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  graph.write @n.momentum, %n1#1 : tensor<8x8xf32>
  return
}

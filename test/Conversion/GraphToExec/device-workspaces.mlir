// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments | FileCheck %s
// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments -segments-to-llvm | FileCheck %s --check-prefix=CALLS

// Scratch of a device's routines, whatever threads the host has: of attention a float a row in backward, of sums of rows two
// lists of them and the counts of a sort; of a product that is added up in chunks and rounded its sums, but of 256 rows at least
// no more than 32 MiB. Calls take it.
// CHECK-LABEL: func.func private @block0.F(
// CHECK: exec.temp at {{.*}} : memref<4xi8>
// CALLS: llvm.call @dsopt_rt_attention(
func.func private @block0.F(%q: tensor<2x4x5x16xf32>) -> (tensor<2x4x5x16xf32>, tensor<2x4x5xf32>)
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<F>} {
  %r, %lse = graph.attention %q, %q, %q {scale = 0.25 : f64} : (tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>) -> (tensor<2x4x5x16xf32>, tensor<2x4x5xf32>)
  return %r, %lse : tensor<2x4x5x16xf32>, tensor<2x4x5xf32>
}

// CHECK-LABEL: func.func private @block0.B(
// CHECK: exec.temp at {{.*}} : memref<160xi8>
// CALLS: llvm.call @dsopt_rt_attention_grad(
func.func private @block0.B(%q: tensor<2x4x5x16xf32>, %m: tensor<2x1x1x5xf32>, %r: tensor<2x4x5x16xf32>, %lse: tensor<2x4x5xf32>, %d: tensor<2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<B>} {
  %dq, %dk, %dv = graph.attention_grad %q, %q, %q, %m, %r, %lse, %d {scale = 1.0 : f64} : (tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x1x1x5xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5xf32>, tensor<2x4x5x16xf32>) -> (tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>)
  return %dq : tensor<2x4x5x16xf32>
}

// CHECK-LABEL: func.func private @block1.B(
// CHECK: exec.temp at {{.*}} : memref<2176xi8>
// CALLS: llvm.call @dsopt_rt_scatter_add(
func.func private @block1.B(%g: tensor<8x3xf32>, %i: tensor<8xi32>) -> tensor<5x3xf32>
    attributes {graph.block = 4 : i64, graph.phase = #graph.phase<B>} {
  %r = graph.gather_grad %g, %i {axis = 0 : i64} : (tensor<8x3xf32>, tensor<8xi32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}

// As far apart as the rows of the result lie, or its columns; none of one that is not rounded, or not in chunks.
// CHECK-LABEL: func.func private @block2.F(
// CHECK: %[[SUMS:.*]] = exec.temp at {{.*}} : memref<192xi8>
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[SUMS]] : memref<192xi8>
// CHECK: %[[SUMS:.*]] = exec.temp at {{.*}} : memref<192xi8>
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[SUMS]] : memref<192xi8>
// CHECK: %[[SUMS:.*]] = exec.temp at {{.*}} : memref<96xi8>
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[SUMS]] : memref<96xi8>
// CHECK: exec.gemm %{{[^ ]*}}, %{{[^ ]*}} -> %{{[^ ]*}} {{{.*}}} : memref<3x4096xbf16>
// CHECK: exec.gemm %{{[^ ]*}}, %{{[^ ]*}} -> %{{[^ ]*}} {{{.*}}} : memref<3x8xbf16>
// CALLS-LABEL: llvm.func @block2.F(
// CALLS: %[[SUMS:.*]] = llvm.getelementptr %arg2
// CALLS: llvm.call @dsopt_rt_gemm(%arg0, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[SUMS]], %{{.*}})
func.func private @block2.F(%x: tensor<3x4096xbf16>, %w: tensor<4096x8xbf16>, %a: tensor<3x8xbf16>, %v: tensor<8x3xbf16>)
    -> (tensor<3x16xbf16>, tensor<8x3xbf16>, tensor<3x8xf32>, tensor<3x3xbf16>)
    attributes {graph.block = 5 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.matmul %x, %w : (tensor<3x4096xbf16>, tensor<4096x8xbf16>) -> tensor<3x8xbf16>
  %z = graph.matmul %x, %w : (tensor<3x4096xbf16>, tensor<4096x8xbf16>) -> tensor<3x8xbf16>
  %c = graph.concat %y, %z {axis = 1 : i64, view = #graph.view<write>} : (tensor<3x8xbf16>, tensor<3x8xbf16>) -> tensor<3x16xbf16>
  %u = graph.matmul %x, %w : (tensor<3x4096xbf16>, tensor<4096x8xbf16>) -> tensor<3x8xbf16>
  %t = graph.transpose %u {perm = array<i64: 1, 0>, view = #graph.view<write>} : (tensor<3x8xbf16>) -> tensor<8x3xbf16>
  %f = graph.matmul %x, %w : (tensor<3x4096xbf16>, tensor<4096x8xbf16>) -> tensor<3x8xf32>
  %b = graph.matmul %a, %v : (tensor<3x8xbf16>, tensor<8x3xbf16>) -> tensor<3x3xbf16>
  return %c, %t, %f, %b : tensor<3x16xbf16>, tensor<8x3xbf16>, tensor<3x8xf32>, tensor<3x3xbf16>
}

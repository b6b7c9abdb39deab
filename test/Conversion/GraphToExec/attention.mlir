// RUN: dsopt-opt %s -attach-target=arch=x86-64-v3 -blocks-to-segments | FileCheck %s
// RUN: dsopt-opt %s -attach-target=arch=x86-64-v3 -blocks-to-segments | dsopt-opt | FileCheck %s

// Attention reads strided views in place and gets scratch that lives as long as the routine.
// CHECK-LABEL: func.func private @block0.F(
// CHECK-SAME: %[[QKV:.*]]: memref<2x5x3x4x16xf32> {exec.access = #exec.access<read>}, %[[R:.*]]: memref<2x4x5x16xf32> {exec.access = #exec.access<write>}, %[[LSE:.*]]: memref<2x4x5xf32> {exec.access = #exec.access<write>})
// CHECK-SAME: exec.flops = 6400 : i64
func.func private @block0.F(%qkv: tensor<2x5x3x4x16xf32>) -> (tensor<2x4x5x16xf32>, tensor<2x4x5xf32>)
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<F>} {
  %t = graph.transpose %qkv {perm = array<i64: 2, 0, 3, 1, 4>, view = #graph.view<read>} : (tensor<2x5x3x4x16xf32>) -> tensor<3x2x4x5x16xf32>
  %q1 = graph.slice %t {starts = array<i64: 0, 0, 0, 0, 0>, sizes = array<i64: 1, 2, 4, 5, 16>, steps = array<i64: 1, 1, 1, 1, 1>, view = #graph.view<read>} : (tensor<3x2x4x5x16xf32>) -> tensor<1x2x4x5x16xf32>
  %k1 = graph.slice %t {starts = array<i64: 1, 0, 0, 0, 0>, sizes = array<i64: 1, 2, 4, 5, 16>, steps = array<i64: 1, 1, 1, 1, 1>, view = #graph.view<read>} : (tensor<3x2x4x5x16xf32>) -> tensor<1x2x4x5x16xf32>
  %q = graph.reshape %q1 : (tensor<1x2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  %k = graph.reshape %k1 : (tensor<1x2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  // CHECK: %[[WORK:.*]] = exec.temp at 0 : memref<[[BYTES:.*]]xi8>
  // CHECK: %[[Q:.*]] = exec.view %[[QKV]] : {{.*}} to memref<2x4x5x16xf32, strided<[960, 16, 192, 1]>>
  // CHECK: %[[K:.*]] = exec.view %[[QKV]] : {{.*}} to memref<2x4x5x16xf32, strided<[960, 16, 192, 1], offset: 64>>
  // CHECK: exec.attention %[[Q]], %[[K]], %[[K]], %[[R]], %[[LSE]], %[[WORK]] {causal, exec.flops = 6400 : i64, scale = 2.500000e-01 : f64, threads = 1 : i64}
  %r, %lse = graph.attention %q, %k, %k {causal, scale = 0.25 : f64} : (tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>) -> (tensor<2x4x5x16xf32>, tensor<2x4x5xf32>)
  return %r, %lse : tensor<2x4x5x16xf32>, tensor<2x4x5xf32>
}

// CHECK-LABEL: func.func private @block0.B(
func.func private @block0.B(%q: tensor<2x4x5x16xf32>, %m: tensor<2x1x1x5xf32>, %r: tensor<2x4x5x16xf32>, %lse: tensor<2x4x5xf32>, %d: tensor<2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<B>} {
  // CHECK-DAG: %[[WORK:.*]] = exec.temp at {{.*}} : memref<{{.*}}xi8>
  // CHECK-DAG: %[[DK:.*]] = exec.temp at {{.*}} : memref<2x4x5x16xf32>
  // CHECK: exec.attention_grad %arg0, %arg0, %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %{{.*}}, %{{.*}}, %[[WORK]] {exec.flops = 32000 : i64, scale = 1.000000e+00 : f64, threads = 1 : i64}
  %dq, %dk, %dv = graph.attention_grad %q, %q, %q, %m, %r, %lse, %d {scale = 1.0 : f64} : (tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x1x1x5xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5xf32>, tensor<2x4x5x16xf32>) -> (tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>)
  return %dq : tensor<2x4x5x16xf32>
}

// A cache is an argument that is read and written everywhere, in the type of the rows that it keeps.
graph.cache @k : tensor<3x2x16x16xf32>
graph.cache @v : tensor<3x2x16x16xf32>
// CHECK-LABEL: func.func private @block1.E(
// CHECK-SAME: memref<3x2x16x16xbf16> {exec.access = #exec.access<add>, exec.cache = @k}, {{.*}}: memref<3x2x16x16xbf16> {exec.access = #exec.access<add>, exec.cache = @v}
func.func private @block1.E(%q: tensor<1x4x5x16xbf16>, %k: tensor<1x2x5x16xbf16>, %rows: tensor<5xi64>) -> tensor<1x4x5x16xbf16>
    attributes {graph.block = 4 : i64, graph.phase = #graph.phase<E>} {
  // CHECK: exec.cached_attention %arg0, %arg1, %arg1, %arg2, %arg2, %arg4, %arg5, %arg3, %{{.*}} {exec.flops = 20480 : i64, scale = 2.500000e-01 : f64, threads = 1 : i64}
  %r = graph.cached_attention %q, %k, %k, %rows, %rows in @k, @v {scale = 0.25 : f64} : (tensor<1x4x5x16xbf16>, tensor<1x2x5x16xbf16>, tensor<1x2x5x16xbf16>, tensor<5xi64>, tensor<5xi64>) -> tensor<1x4x5x16xbf16>
  return %r : tensor<1x4x5x16xbf16>
}

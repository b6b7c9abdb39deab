// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments | FileCheck %s
// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments | dsopt-opt | FileCheck %s
// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments -describe-calls -segments-to-llvm | FileCheck %s --check-prefix=CALLS
// RUN: dsopt-opt %s -attach-target -blocks-to-segments | not dsopt-opt -segments-to-llvm 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: error: 'exec.gemm_epilogue' op has no kernel, expected one on a host, for products and epilogues that compile-products compiles

// No workspace. The fields of dsopt_gemm (8 x 16 x 4, f32) and the kind. Bytes: of 8x4, 4x16, 16 and two times 8x16 elements.
// CHECK-LABEL: func.func private @block3.F(
// CHECK-NOT: memref<{{.*}}xi8>
// CHECK: exec.gemm_epilogue bias_gelu %arg0, %arg1, %arg2 -> %{{.*}} keeps %{{.*}} : memref<8x16xf32> {exec.flops = 1024 : i64} : memref<8x4xf32>, memref<4x16xf32>, memref<16xf32> -> memref<8x16xf32>
// CALLS: bytes = 1472 : i64{{.*}} "8x16x4 NN bias_gelu"
// CALLS: llvm.mlir.global external constant @product{{.*}}(dense<[8, 16, 4, 0, 0, 4, 16, 16, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]> : tensor<27xi64>)
// CALLS: llvm.call @dsopt_rt_gemm_epilogue(
func.func private @block3.F(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<F>} {
  %y:2 = graph.matmul_epilogue bias_gelu %x, %w, %b : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
  return %y#0, %y#1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// A transposed operand is read by strides.
// CHECK-LABEL: func.func private @block3.B(
// CHECK: exec.gemm_epilogue gelu_grad %{{.*}}, %arg1, %arg2 -> %{{.*}} {exec.flops = 1024 : i64} : memref<8x4xf32, strided<[1, 8]>>, memref<4x16xf32>, memref<8x16xf32> -> memref<8x16xf32>
func.func private @block3.B(%x: tensor<4x8xf32>, %w: tensor<4x16xf32>, %s: tensor<8x16xf32>) -> tensor<8x16xf32>
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<B>} {
  %t = graph.transpose %x {perm = array<i64: 1, 0>, view = #graph.view<read>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %d = graph.matmul_epilogue gelu_grad %t, %w, %s : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %d : tensor<8x16xf32>
}

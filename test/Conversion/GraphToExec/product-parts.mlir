// RUN: dsopt-opt %s -blocks-to-segments | FileCheck %s
// RUN: dsopt-opt %s -blocks-to-segments -segments-to-llvm | FileCheck %s --check-prefix=LLVM

// Parts of products: some columns, in rows that are as far apart as the whole's modulo 1024; some of a sum, behind those before; a
// gradient, straight where it is added up.
#target = #dsopt.target<cpu, triple = "x86_64-unknown-linux-gnu", arch = "znver4", threads = 1, vector_bits = 512, features = []>
module attributes {dsopt.target = #target} {
  graph.parameter @w : tensor<2048x3xf32> from "m" at 0 bytes 24576
  graph.state @w.grad : tensor<2048x3xf32> gradient of @w block 0

  // CHECK-LABEL: func.func private @block0.F
  // CHECK: %[[PART:.*]] = exec.view %arg1 : memref<8x2952xf32> to memref<8x2048xf32, strided<[2952, 1]>>
  // CHECK: exec.gemm %arg0, %arg2 -> %[[PART]] of [8, 5000, 3] {exec.flops = 98304 : i64, transpose_b}
  // LLVM-DAG: @product.0(dense<[8, 2048, 3, 0, 1, 3, 3, 2952, 0, 0, {{.*}}, 8, 5000, 3]>
  // LLVM: llvm.func @block0.F
  // LLVM: llvm.call @dsopt_rt_gemm_part
  func.func private @block0.F(%x: tensor<8x3xf32>) -> tensor<8x2952xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %w = graph.read @w : tensor<2048x3xf32>
    %y = graph.matmul_part %x, %w {transpose_b, whole = array<i64: 8, 5000, 3>} : (tensor<8x3xf32>, tensor<2048x3xf32>) -> tensor<8x2952xf32>
    return %y : tensor<8x2952xf32>
  }
  // CHECK-LABEL: func.func private @block0.B
  // CHECK: %[[SHOWN:.*]] = exec.view %arg0 : memref<8x5000xf32> to memref<8x2048xf32, strided<[5000, 1], offset: 2048>>
  // CHECK: exec.gemm %[[SHOWN]], %arg3 plus %arg1 : memref<8x3xf32> -> %arg2 of [8, 3, 5000] {exec.flops = 98304 : i64}
  func.func private @block0.B(%dy: tensor<8x5000xf32>, %s: tensor<8x3xf32>) -> tensor<8x3xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<B>} {
    %w = graph.read @w : tensor<2048x3xf32>
    %0 = graph.slice %dy {sizes = array<i64: 8, 2048>, starts = array<i64: 0, 2048>, steps = array<i64: 1, 1>, view = #graph.view<read>} : (tensor<8x5000xf32>) -> tensor<8x2048xf32>
    %dx = graph.matmul_part %0, %w, %s {whole = array<i64: 8, 3, 5000>} : (tensor<8x2048xf32>, tensor<2048x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    return %dx : tensor<8x3xf32>
  }
  // CHECK-LABEL: func.func private @block0.W
  // CHECK: exec.gemm %{{.*}}, %arg1 -> %arg2 of [5000, 3, 8] {exec.flops = {{.*}}, into_gradient, transpose_a}
  func.func private @block0.W(%dy: tensor<8x5000xf32>, %x: tensor<8x3xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
    %0 = graph.slice %dy {sizes = array<i64: 8, 2048>, starts = array<i64: 0, 2048>, steps = array<i64: 1, 1>, view = #graph.view<read>} : (tensor<8x5000xf32>) -> tensor<8x2048xf32>
    %dw = graph.matmul_part %0, %x {transpose_a, whole = array<i64: 5000, 3, 8>} : (tensor<8x2048xf32>, tensor<8x3xf32>) -> tensor<2048x3xf32>
    graph.accumulate @w.grad, %dw : tensor<2048x3xf32>
    return
  }
}

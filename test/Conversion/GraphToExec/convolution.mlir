// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments | FileCheck %s
// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments | dsopt-opt | FileCheck %s
// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90" -blocks-to-segments -describe-calls -segments-to-llvm | FileCheck %s --check-prefix=CALLS
// RUN: dsopt-opt %s -attach-target -blocks-to-segments | not dsopt-opt -segments-to-llvm 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: error: 'exec.convolution' op is for a device, expected products on a host

graph.parameter @w : tensor<16x8x3x3xf32> from "w" at 0 bytes 4608
graph.state @w.grad : tensor<16x8x3x3xf32> gradient of @w block 3

// The algorithm is the table's, the workspace as many bytes as all three values have and 1 MiB. Kind 0, algorithm 1, f32, channels second, two
// dimensions; batch, channels, outputs and groups; sizes, counts, kernel, strides, dilations and pads.
// CHECK-LABEL: func.func private @block3.F(
// CHECK: %[[S:.*]] = exec.temp at {{.*}} : memref<1058304xi8>
// CHECK: exec.convolution forward %{{.*}}, %{{.*}} -> %{{.*}} workspace %[[S]] {algorithm = 1 : i64, dilations = array<i64: 1, 1>, exec.flops = 96768 : i64, groups = 1 : i64, pads = array<i64: 1, 1>, strides = array<i64: 2, 1>} : memref<2x8x5x7xf32>, memref<16x8x3x3xf32> -> memref<2x16x3x7xf32> workspace memref<1058304xi8>
// CALLS: llvm.mlir.global external constant @convolution{{.*}}(dense<[0, 1, 0, 0, 2, 2, 8, 16, 1, 5, 7, 0, 3, 7, 0, 3, 3, 0, 2, 1, 0, 1, 1, 0, 1, 1, 0]> : tensor<27xi64>)
// CALLS: llvm.call @dsopt_rt_convolution(
func.func private @block3.F(%x: tensor<2x8x5x7xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<2x16x3x7xf32>
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.convolution forward %x, %w {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x5x7xf32>, tensor<16x8x3x3xf32>) -> tensor<2x16x3x7xf32>
  return %y : tensor<2x16x3x7xf32>
}

// The weight's gradient is added to in place.
// CHECK-LABEL: func.func private @block3.W(
// CHECK: exec.convolution weight %arg0, %arg1 -> %arg2 workspace %{{.*}} {algorithm = 1 : i64, {{.*}}, into_gradient, {{.*}}}
// CHECK-NOT: exec.accumulate
func.func private @block3.W(%x: tensor<2x8x5x7xf32>, %d: tensor<2x16x3x7xf32>)
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<W>} {
  %g = graph.convolution weight %x, %d {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x5x7xf32>, tensor<2x16x3x7xf32>) -> tensor<16x8x3x3xf32>
  graph.accumulate @w.grad, %g : tensor<16x8x3x3xf32>
  return
}

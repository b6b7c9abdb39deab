// RUN: dsopt-opt %s -split-input-file -raise-convolutions -canonicalize | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -raise-convolutions=precision=bf16 -canonicalize | FileCheck %s --check-prefix=BF16
// RUN: FileCheck %s --check-prefix=DOC < %source/include/dsopt/Transforms/Fuse/Passes.td
// DOC: graph.convolution forward %t, %v {strides = array<i64: 1>, dilations = array<i64: 1>, pads = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x5xf32>, tensor<8x4x3xf32>) -> tensor<2x8x5xf32>

#device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 1, vector_bits = 128, features = []>
module attributes {dsopt.target = #device} {
  // What an importer writes around a convolution cancels, and the phase stays.
  // CHECK-LABEL: @forward
  // CHECK-SAME: %[[X:.*]]: tensor<2x8x5x7xf32>, %[[W:.*]]: tensor<16x8x3x3xf32>
  // CHECK-NEXT: %[[Y:.*]] = graph.convolution forward %[[X]], %[[W]] {dilations = array<i64: 1, 1>, graph.phase = #graph.phase<F>, groups = 1 : i64, pads = array<i64: 1, 1>, strides = array<i64: 2, 1>} : (tensor<2x8x5x7xf32>, tensor<16x8x3x3xf32>) -> tensor<2x16x3x7xf32>
  // CHECK-NEXT: return %[[Y]]
  // BF16-LABEL: @forward
  // BF16: graph.convolution forward %{{.*}}, %{{.*}} {channels_last, dilations = array<i64: 1, 1>, {{.*}}} : (tensor<2x5x7x8xf32>, tensor<16x3x3x8xf32>) -> tensor<2x3x7x16xf32>
  func.func @forward(%x: tensor<2x8x5x7xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<2x16x3x7xf32> {
    %0 = graph.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x8x5x7xf32>) -> tensor<2x5x7x8xf32>
    %1 = graph.windows %0 {axis = 1 : i64, counts = array<i64: 3, 7>, kernel = array<i64: 3, 3>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, lows = array<i64: 1, 1>, value = 0.0 : f32} : (tensor<2x5x7x8xf32>) -> tensor<2x3x7x3x3x8xf32>
    %2 = graph.reshape %1 : (tensor<2x3x7x3x3x8xf32>) -> tensor<42x72xf32>
    %3 = graph.transpose %w {perm = array<i64: 0, 2, 3, 1>} : (tensor<16x8x3x3xf32>) -> tensor<16x3x3x8xf32>
    %4 = graph.reshape %3 : (tensor<16x3x3x8xf32>) -> tensor<16x72xf32>
    %5 = graph.matmul %2, %4 {graph.phase = #graph.phase<F>, transpose_b} : (tensor<42x72xf32>, tensor<16x72xf32>) -> tensor<42x16xf32>
    %6 = graph.reshape %5 : (tensor<42x16xf32>) -> tensor<2x3x7x16xf32>
    %7 = graph.transpose %6 {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x3x7x16xf32>) -> tensor<2x16x3x7xf32>
    return %7 : tensor<2x16x3x7xf32>
  }

  // Its gradients: in bf16 the library has no fp32 sums for the weight's.
  // CHECK-LABEL: @gradients
  // CHECK-SAME: %[[X:.*]]: tensor<2x8x5x7xf32>, %[[W:.*]]: tensor<16x8x3x3xf32>, %[[D:.*]]: tensor<2x16x3x7xf32>
  // CHECK-DAG: %[[DW:.*]] = graph.convolution weight %[[X]], %[[D]] {{.*}} : (tensor<2x8x5x7xf32>, tensor<2x16x3x7xf32>) -> tensor<16x8x3x3xf32>
  // CHECK-DAG: %[[DX:.*]] = graph.convolution data %[[D]], %[[W]] {{.*}} : (tensor<2x16x3x7xf32>, tensor<16x8x3x3xf32>) -> tensor<2x8x5x7xf32>
  // CHECK: return %[[DX]], %[[DW]]
  // BF16-LABEL: @gradients
  // BF16-DAG: graph.matmul %{{.*}}, %{{.*}} {transpose_a} : (tensor<42x16xf32>, tensor<42x72xf32>) -> tensor<16x72xf32>
  // BF16-DAG: graph.convolution data %{{.*}}, %{{.*}} {channels_last, {{.*}}} : (tensor<2x3x7x16xf32>, tensor<16x3x3x8xf32>) -> tensor<2x5x7x8xf32>
  // BF16: return
  func.func @gradients(%x: tensor<2x8x5x7xf32>, %w: tensor<16x8x3x3xf32>, %d: tensor<2x16x3x7xf32>) -> (tensor<2x8x5x7xf32>, tensor<16x8x3x3xf32>) {
    %0 = graph.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x8x5x7xf32>) -> tensor<2x5x7x8xf32>
    %1 = graph.windows %0 {axis = 1 : i64, counts = array<i64: 3, 7>, kernel = array<i64: 3, 3>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, lows = array<i64: 1, 1>, value = 0.0 : f32} : (tensor<2x5x7x8xf32>) -> tensor<2x3x7x3x3x8xf32>
    %2 = graph.reshape %1 : (tensor<2x3x7x3x3x8xf32>) -> tensor<42x72xf32>
    %3 = graph.transpose %w {perm = array<i64: 0, 2, 3, 1>} : (tensor<16x8x3x3xf32>) -> tensor<16x3x3x8xf32>
    %4 = graph.reshape %3 : (tensor<16x3x3x8xf32>) -> tensor<16x72xf32>
    %5 = graph.transpose %d {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x16x3x7xf32>) -> tensor<2x3x7x16xf32>
    %6 = graph.reshape %5 : (tensor<2x3x7x16xf32>) -> tensor<42x16xf32>
    %7 = graph.matmul %6, %2 {transpose_a} : (tensor<42x16xf32>, tensor<42x72xf32>) -> tensor<16x72xf32>
    %8 = graph.reshape %7 : (tensor<16x72xf32>) -> tensor<16x3x3x8xf32>
    %9 = graph.transpose %8 {perm = array<i64: 0, 3, 1, 2>} : (tensor<16x3x3x8xf32>) -> tensor<16x8x3x3xf32>
    %10 = graph.matmul %6, %4 : (tensor<42x16xf32>, tensor<16x72xf32>) -> tensor<42x72xf32>
    %11 = graph.reshape %10 : (tensor<42x72xf32>) -> tensor<2x3x7x3x3x8xf32>
    %12 = graph.windows_sum %11 {axis = 1 : i64, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, lows = array<i64: 1, 1>} : (tensor<2x3x7x3x3x8xf32>) -> tensor<2x5x7x8xf32>
    %13 = graph.transpose %12 {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x5x7x8xf32>) -> tensor<2x8x5x7xf32>
    return %13, %9 : tensor<2x8x5x7xf32>, tensor<16x8x3x3xf32>
  }

  // Groups, of one dimension; bf16 has them as products.
  // CHECK-LABEL: @groups
  // CHECK: graph.convolution forward %{{.*}}, %{{.*}} {dilations = array<i64: 2>, groups = 2 : i64, pads = array<i64: 2>, strides = array<i64: 1>} : (tensor<2x6x9xf32>, tensor<4x3x3xf32>) -> tensor<2x4x9xf32>
  // CHECK-NOT: graph.matmul
  // BF16-LABEL: @groups
  // BF16: graph.matmul
  func.func @groups(%x: tensor<2x9x6xf32>, %w: tensor<2x2x9xf32>) -> tensor<2x18x2xf32> {
    %0 = graph.windows %x {axis = 1 : i64, counts = array<i64: 9>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 2>, lows = array<i64: 2>, value = 0.0 : f32} : (tensor<2x9x6xf32>) -> tensor<2x9x3x6xf32>
    %1 = graph.reshape %0 : (tensor<2x9x3x6xf32>) -> tensor<18x3x2x3xf32>
    %2 = graph.transpose %1 {perm = array<i64: 2, 0, 1, 3>} : (tensor<18x3x2x3xf32>) -> tensor<2x18x3x3xf32>
    %3 = graph.reshape %2 : (tensor<2x18x3x3xf32>) -> tensor<2x18x9xf32>
    %4 = graph.matmul %3, %w {transpose_b} : (tensor<2x18x9xf32>, tensor<2x2x9xf32>) -> tensor<2x18x2xf32>
    return %4 : tensor<2x18x2xf32>
  }

  // Padding behind alone is made before; of the gradient it is cut off.
  // CHECK-LABEL: @uneven
  // CHECK: graph.pad %{{.*}} {highs = array<i64: 0, 1, 0>, lows = array<i64: 0, 0, 0>, value = 0.000000e+00 : f32} : (tensor<2x5x4xf32>) -> tensor<2x6x4xf32>
  // CHECK: graph.convolution forward %{{.*}}, %{{.*}} {dilations = array<i64: 1>, groups = 1 : i64, pads = array<i64: 0>, strides = array<i64: 1>} : (tensor<2x4x6xf32>, tensor<8x4x2xf32>) -> tensor<2x8x5xf32>
  // CHECK: graph.convolution data %{{.*}}, %{{.*}} {{.*}} : (tensor<2x8x5xf32>, tensor<8x4x2xf32>) -> tensor<2x4x6xf32>
  // CHECK: graph.pad %{{.*}} {highs = array<i64: 0, -1, 0>, lows = array<i64: 0, 0, 0>, value = 0.000000e+00 : f32} : (tensor<2x6x4xf32>) -> tensor<2x5x4xf32>
  func.func @uneven(%x: tensor<2x5x4xf32>, %w: tensor<8x8xf32>, %d: tensor<10x8xf32>) -> (tensor<10x8xf32>, tensor<2x5x4xf32>) {
    %0 = graph.windows %x {axis = 1 : i64, counts = array<i64: 5>, kernel = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 0>, value = 0.0 : f32} : (tensor<2x5x4xf32>) -> tensor<2x5x2x4xf32>
    %1 = graph.reshape %0 : (tensor<2x5x2x4xf32>) -> tensor<10x8xf32>
    %2 = graph.matmul %1, %w {transpose_b} : (tensor<10x8xf32>, tensor<8x8xf32>) -> tensor<10x8xf32>
    %3 = graph.matmul %d, %w : (tensor<10x8xf32>, tensor<8x8xf32>) -> tensor<10x8xf32>
    %4 = graph.reshape %3 : (tensor<10x8xf32>) -> tensor<2x5x2x4xf32>
    %5 = graph.windows_sum %4 {axis = 1 : i64, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 0>} : (tensor<2x5x2x4xf32>) -> tensor<2x5x4xf32>
    return %2, %5 : tensor<10x8xf32>, tensor<2x5x4xf32>
  }

  // Windows of another block stay there.
  // CHECK-LABEL: @blocks
  // CHECK: graph.windows
  // CHECK-NOT: graph.convolution
  func.func @blocks(%x: tensor<2x5x4xf32>, %w: tensor<8x4xf32>) -> tensor<6x8xf32> {
    %0 = graph.windows %x {axis = 1 : i64, counts = array<i64: 3>, graph.block = 0 : i64, kernel = array<i64: 1>, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 0>, value = 0.0 : f32} : (tensor<2x5x4xf32>) -> tensor<2x3x1x4xf32>
    %1 = graph.reshape %0 {graph.block = 0 : i64} : (tensor<2x3x1x4xf32>) -> tensor<6x4xf32>
    %2 = graph.matmul %1, %w {graph.block = 1 : i64, transpose_b} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
    return %2 : tensor<6x8xf32>
  }

  // Windows that are padded with something else, and pools, are no convolutions.
  // CHECK-LABEL: @others
  // CHECK-NOT: graph.convolution
  func.func @others(%x: tensor<2x5x4xf32>, %w: tensor<8x12xf32>) -> (tensor<10x8xf32>, tensor<2x5x4xf32>) {
    %0 = graph.windows %x {axis = 1 : i64, counts = array<i64: 5>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 1.0 : f32} : (tensor<2x5x4xf32>) -> tensor<2x5x3x4xf32>
    %1 = graph.reshape %0 : (tensor<2x5x3x4xf32>) -> tensor<10x12xf32>
    %2 = graph.matmul %1, %w {transpose_b} : (tensor<10x12xf32>, tensor<8x12xf32>) -> tensor<10x8xf32>
    %3 = graph.windows_sum %0 {axis = 1 : i64, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>} : (tensor<2x5x3x4xf32>) -> tensor<2x5x4xf32>
    return %2, %3 : tensor<10x8xf32>, tensor<2x5x4xf32>
  }
}

// -----

// A host has products.
#host = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+avx2"]>
module attributes {dsopt.target = #host} {
  // CHECK-LABEL: @host
  // CHECK: graph.windows
  func.func @host(%x: tensor<2x5x4xf32>, %w: tensor<8x12xf32>) -> tensor<10x8xf32> {
    %0 = graph.windows %x {axis = 1 : i64, counts = array<i64: 5>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 0.0 : f32} : (tensor<2x5x4xf32>) -> tensor<2x5x3x4xf32>
    %1 = graph.reshape %0 : (tensor<2x5x3x4xf32>) -> tensor<10x12xf32>
    %2 = graph.matmul %1, %w {transpose_b} : (tensor<10x12xf32>, tensor<8x12xf32>) -> tensor<10x8xf32>
    return %2 : tensor<10x8xf32>
  }
}

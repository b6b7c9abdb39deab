// RUN: dsopt-opt %s -split-input-file -place-values | FileCheck %s

// Which cuts pay, by shapes and the number of tensor shards alone.

// Each two neighbours of three layers could be columns and rows: the first with the second and the third with the
// fourth gain more than the second with the third.

// CHECK: module attributes {{.*}}graph.shard_bound = [[COST:[0-9]+]] : i64, graph.shard_cost = [[COST]] : i64
// CHECK: @w0.shard.0 : tensor<16x16xf32>
// CHECK: @w1.shard.0 : tensor<16x32xf32>
// CHECK: @w2.shard.0 : tensor<32x16xf32>
// CHECK: @w3.shard.0 : tensor<16x16xf32>
// CHECK-COUNT-2: dist.all_reduce
// CHECK-NOT: dist.all_reduce
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x32xf32> from "m" at 6144 bytes 4096
  graph.parameter @w3 : tensor<32x16xf32> from "m" at 10240 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w3 = graph.read @w3 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p3 = graph.matmul %h2, %w3 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h3 = graph.relu %p3 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// With a wide middle the second with the third gain more. What is left of the first does not pay alone.

// CHECK: @w0 : tensor<16x4xf32> {{.*}}uncut = "costs more than it saves: sums of 0.282 us, 0.192 us saved; -shard cuts it all the same"
// CHECK: @w1.shard.0 : tensor<4x32xf32>
// CHECK: @w2.shard.0 : tensor<32x4xf32>
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64}} {
  graph.parameter @w0 : tensor<16x4xf32> from "m" at 0 bytes 256
  graph.parameter @w1 : tensor<4x64xf32> from "m" at 256 bytes 1024
  graph.parameter @w2 : tensor<64x4xf32> from "m" at 1280 bytes 1024
  graph.parameter @w3 : tensor<4x16xf32> from "m" at 2304 bytes 256
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x4xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<4x64xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x4xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<64x4xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x64xf32>, tensor<64x4xf32>) -> tensor<4x4xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %w3 = graph.read @w3 {graph.block = 0 : i64} : tensor<4x16xf32>
    %p3 = graph.matmul %h2, %w3 {graph.block = 0 : i64} : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %h3 = graph.relu %p3 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What is asked for is cut whether it pays or not, and others are chosen beside it.

// CHECK: @w0.shard.0 : tensor<16x2xf32>
// CHECK: @w1.shard.0 : tensor<2x64xf32>
// CHECK: @w2 : tensor<64x4xf32> {{.*}}uncut = "costs more than it saves
// CHECK-NOT: @w2.shard
// CHECK: @w3.shard.0 : tensor<4x8xf32>
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:1"]}} {
  graph.parameter @w0 : tensor<16x4xf32> from "m" at 0 bytes 256
  graph.parameter @w1 : tensor<4x64xf32> from "m" at 256 bytes 1024
  graph.parameter @w2 : tensor<64x4xf32> from "m" at 1280 bytes 1024
  graph.parameter @w3 : tensor<4x16xf32> from "m" at 2304 bytes 256
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x4xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<4x64xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x4xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<64x4xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x64xf32>, tensor<64x4xf32>) -> tensor<4x4xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %w3 = graph.read @w3 {graph.block = 0 : i64} : tensor<4x16xf32>
    %p3 = graph.matmul %h2, %w3 {graph.block = 0 : i64} : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %h3 = graph.relu %p3 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A row's cut leads to the same region as that of the columns before it.

// CHECK: @w0.shard.0 : tensor<16x2xf32>
// CHECK: @w1.shard.0 : tensor<2x64xf32>
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w1=tp:0"]}} {
  graph.parameter @w0 : tensor<16x4xf32> from "m" at 0 bytes 256
  graph.parameter @w1 : tensor<4x64xf32> from "m" at 256 bytes 1024
  graph.parameter @w2 : tensor<64x4xf32> from "m" at 1280 bytes 1024
  graph.parameter @w3 : tensor<4x16xf32> from "m" at 2304 bytes 256
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x4xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<4x64xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x4xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<64x4xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x64xf32>, tensor<64x4xf32>) -> tensor<4x4xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %w3 = graph.read @w3 {graph.block = 0 : i64} : tensor<4x16xf32>
    %p3 = graph.matmul %h2, %w3 {graph.block = 0 : i64} : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %h3 = graph.relu %p3 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What is asked to be whole stays so, and what could be cut with it alone does too.

// CHECK: @w0 : tensor<16x32xf32> {{.*}}uncut = "-shard=w[01]=none keeps it whole"
// CHECK: @w1 : tensor<32x32xf32> {{.*}}uncut = "-shard=w[01]=none keeps it whole"
// CHECK: @w2.shard.0 : tensor<32x16xf32>
// CHECK: @w3.shard.0 : tensor<16x16xf32>
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w[01]=none"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x32xf32> from "m" at 6144 bytes 4096
  graph.parameter @w3 : tensor<32x16xf32> from "m" at 10240 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w3 = graph.read @w3 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p3 = graph.matmul %h2, %w3 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h3 = graph.relu %p3 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Smaller sizes of a dimension have the cuts of the largest, and no others.

// CHECK-NOT: @w0.shard
// CHECK: @w1.shard.0 : tensor<32x16xf32>
// CHECK: @w2.shard.0 : tensor<16x32xf32>
// CHECK-NOT: @w3.shard
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard_cuts = ["w1=1", "w2=0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x32xf32> from "m" at 6144 bytes 4096
  graph.parameter @w3 : tensor<32x16xf32> from "m" at 10240 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w3 = graph.read @w3 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p3 = graph.matmul %h2, %w3 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h3 = graph.relu %p3 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The model asks for what -shard asks for elsewhere; a matrix that PyTorch has the other way round is counted so
// by -shard alone.

// CHECK: @w0.shard.0 : tensor<16x16xf32>
// CHECK: @w1.shard.0 : tensor<16x32xf32>
// CHECK: @w2 : tensor<32x32xf32> {{.*}}uncut = "node 'p2' of the model keeps it whole"
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w1=tp:1"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048 {asked_by = "node 'p0' of the model", asked_dim = 1 : i64}
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096 {transposed}
  graph.parameter @w2 : tensor<32x32xf32> from "m" at 6144 bytes 4096 {asked_by = "node 'p2' of the model", asked_dim = -1 : i64}
  graph.parameter @w3 : tensor<32x16xf32> from "m" at 10240 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w3 = graph.read @w3 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p3 = graph.matmul %h2, %w3 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h3 = graph.relu %p3 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Where nothing pays, what costs least is cut: it is more than with nothing cut.

// CHECK: graph.shard_bound = 580800 : i64, graph.shard_cost = 779360 : i64
// CHECK: @w0.shard.0 : tensor<4x1xf32>
// CHECK: @w1.shard.0 : tensor<1x64xf32>
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64}} {
  graph.parameter @w0 : tensor<4x2xf32> from "m" at 0 bytes 32
  graph.parameter @w1 : tensor<2x64xf32> from "m" at 32 bytes 512
  func.func @forward(%x: tensor<4x4xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<4x2xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<2x64xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x2xf32>, tensor<2x64xf32>) -> tensor<4x64xf32>
    %h1 = graph.softmax %p1 {axis = 1 : i64, graph.block = 0 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
    %loss = graph.reduce_sum %h1 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x64xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

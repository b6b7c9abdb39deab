// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -place-values

// What -shard cannot have: one line each, with the option's name.

// expected-error@+1 {{-shard=v=tp:0 matches no parameter of the model; }}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["v=tp:0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=sp:0: there is no axis 'sp' to cut over, expected tp}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=sp:0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=0: expected GLOB=tp:DIM with a dimension from 0 on, or GLOB=none}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=tp:-1: expected GLOB=tp:DIM with a dimension from 0 on, or GLOB=none}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:-1"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=tp:2: parameter 'w0' has 2 dimensions, expected one from 0 to 1}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:2"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=tp:1 and -shard=w*=tp:0 contradict each other: parameter 'w0' has one cut}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:1", "w*=tp:0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=tp:1 and -shard=w0=none contradict each other: parameter 'w0' has one cut}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:1", "w0=none"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What one cut leads to the other forbids.
// expected-error@+1 {{-shard=w0=tp:1 and -shard=w1=none contradict each other: to cut 'w0' takes a cut of 'w1' along dimension 0}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:1", "w1=none"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=tp:1 and -shard=w1=tp:1 contradict each other: to cut 'w0' takes a cut of 'w1' along dimension 0}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:1", "w1=tp:1"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Rows of what is an input.
// expected-error@+1 {{-shard=w0=tp:0: parameter 'w0' cannot be cut along dimension 0: an input would be cut}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=w0=tp:1: parameter 'w0' cannot be cut along dimension 1: 33 are not divided by 2}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=tp:1"]}} {
  graph.parameter @w0 : tensor<16x33xf32> from "m" at 0 bytes 2112
  graph.parameter @w1 : tensor<33x16xf32> from "m" at 2112 bytes 2112
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x33xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x33xf32>) -> tensor<4x33xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<33x16xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x33xf32>, tensor<33x16xf32>) -> tensor<4x16xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h1 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Nothing reads it.
// expected-error@+1 {{-shard=u=tp:0: parameter 'u' cannot be cut along dimension 0: nothing reads it}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["u=tp:0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  graph.parameter @u : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The model asks for something else.
// expected-error@+1 {{node 'p0' of the model and -shard=w0=none contradict each other: parameter 'w0' has one cut}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["w0=none"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048 {asked_by = "node 'p0' of the model", asked_dim = 1 : i64}
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{has shard_cuts with w9=0, expected PARAMETER=DIM}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard_cuts = ["w9=0"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x32xf32> from "m" at 2048 bytes 4096
  graph.parameter @w2 : tensor<32x16xf32> from "m" at 6144 bytes 2048
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x32xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w2 = graph.read @w2 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p2 = graph.matmul %h1, %w2 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h2 = graph.relu %p2 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Nothing is left.
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["*=none"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x16xf32> from "m" at 2048 bytes 2048
  // expected-error@+1 {{has nothing that 2 tensor shards could cut (-tp, -tensor-shards): -shard=*=none keeps it whole}}
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h1 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{-shard=b=tp:1: parameter 'b' has 1 dimension, expected 0}}
module attributes {dsopt.options = {tensor_shards = 2 : i64, tp = 2 : i64, shard = ["b=tp:1"]}} {
  graph.parameter @w0 : tensor<16x32xf32> from "m" at 0 bytes 2048
  graph.parameter @w1 : tensor<32x16xf32> from "m" at 2048 bytes 2048
  graph.parameter @b : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<4x16xf32>) -> tensor<f32> {
    %w0 = graph.read @w0 {graph.block = 0 : i64} : tensor<16x32xf32>
    %p0 = graph.matmul %x, %w0 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
    %h0 = graph.relu %p0 {graph.block = 0 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<32x16xf32>
    %p1 = graph.matmul %h0, %w1 {graph.block = 0 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %h1 = graph.relu %p1 {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %loss = graph.reduce_sum %h1 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

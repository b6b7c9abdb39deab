// The largest window that fits a budget; 1 without one; a given window stays.
// DEFINE: %{pipeline} = "-pass-pipeline=builtin.module(attach-target{arch=x86-64-v3},find-blocks,build-backward,append-optimizer,form-kernels,form-blocks,declare-grid,split-stages,partition-zero,place-collectives,choose-gather-window)"
// RUN: dsopt-opt %s %{pipeline} | FileCheck %s --check-prefix=NONE
// RUN: sed 's/device_memory = 0/device_memory = 10000000/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=AMPLE
// RUN: sed 's/device_memory = 0/device_memory = 1/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=NONE
// RUN: sed 's/device_memory = 0/device_memory = 110000/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=BETWEEN
// RUN: sed 's/device_memory = 0/device_memory = 100000/; s/micro_batches = 4/micro_batches = 1/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=SINGLE
// RUN: sed 's/device_memory = 0/gather_window = 3 : i64, device_memory = 0/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=GIVEN
// NONE: gather_window = 1 : i64
// NONE-NOT: max_reuse_distance
// AMPLE: gather_window = 4 : i64
// GIVEN: gather_window = 3 : i64
// What the window leaves keeps what is needed again soon.
// SINGLE: gather_window = 1 : i64, max_reuse_distance = 32768 : i64
// BETWEEN: gather_window = 1 : i64, max_reuse_distance = 4096 : i64

module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 4 : i64, reduction_shards = 2 : i64,
    accumulate = "sharded", optimizer = "sgd", device_memory = 0 : i64}} {
  graph.parameter @w1 : tensor<64x64xf32> from "m" at 0 bytes 16384
  graph.parameter @w2 : tensor<64x64xf32> from "m" at 16384 bytes 16384
  func.func @forward(%x: tensor<8x64xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}) {
    %w1 = graph.read @w1 : tensor<64x64xf32>
    %a = graph.matmul %x, %w1 : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %h = graph.tanh %a : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %w2 = graph.read @w2 : tensor<64x64xf32>
    %z = graph.matmul %h, %w2 : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %loss = graph.reduce_sum %z {axes = array<i64: 0, 1>} : (tensor<8x64xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// As many runs ahead as fit and as the predicted step gains from, the next beside those runs that leave room; 1 without a budget; what is given stays.
// DEFINE: %{pipeline} = "-pass-pipeline=builtin.module(attach-target{arch=x86-64-v3},find-blocks,build-backward,append-optimizer,form-kernels,form-blocks,declare-grid,split-stages,partition-zero,place-collectives,choose-gather-window,choose-prefetch)"
// RUN: dsopt-opt %s %{pipeline} | FileCheck %s --check-prefix=ONE
// RUN: sed 's/device_memory = 0/gather_window = 1 : i64, device_memory = 10000000/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=AMPLE
// RUN: sed 's/device_memory = 0/device_memory = 1/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=TIGHT
// RUN: sed 's/device_memory = 0/device_memory = 120000/' %s | dsopt-opt %{pipeline} --remarks-filter-missed=overlap --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=LIMITED
// RUN: sed 's/device_memory = 0/prefetch = 3 : i64, device_memory = 10000000/' %s | dsopt-opt %{pipeline} | FileCheck %s --check-prefix=GIVEN
// ONE: prefetch = 1 : i64
// AMPLE: prefetch = 2 : i64
// TIGHT: prefetch = 0 : i64
// LIMITED: all gathers start 1 runs ahead: 2 would need {{[0-9]+}} bytes, more than the 120000 that -device-memory allows
// LIMITED: prefetch = 2 : i64, prefetch_memory = {{[0-9]+}} : i64
// GIVEN: prefetch = 3 : i64

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

// RUN: dsopt-opt %s -find-blocks | FileCheck %s --check-prefix=BLOCKS
// RUN: dsopt-opt %s -find-blocks -build-evaluation -build-backward | FileCheck %s

// What a micro-batch contributes to a running statistic is a result behind the loss.
module {
  graph.parameter @mean : tensor<4xf32> from "m" at 0 bytes 16 frozen {statistic, why = "running statistic"}
  graph.parameter @w0 : tensor<4x4xf32> from "m" at 16 bytes 64
  graph.parameter @w1 : tensor<4x4xf32> from "m" at 80 bytes 64
  graph.parameter @w2 : tensor<4x4xf32> from "m" at 144 bytes 64

  // Made from inputs alone, it belongs to the block that reads the running one, and is alive in no other.
  // BLOCKS: graph.blocks = 3
  // BLOCKS-LABEL: func.func @forward
  // BLOCKS: %[[MEAN:.*]] = graph.reduce_mean %arg0 {axes = array<i64: 0>, graph.block = 0 : i64}
  // BLOCKS: return %{{.*}}, %[[MEAN]]

  // Training normalizes by its own mean; the evaluation by the running one, which it leaves as it is.
  // CHECK-LABEL: func.func @micro_batch
  // CHECK-SAME: -> (tensor<f32> {graph.name = "loss"}, tensor<4xf32> {graph.momentum = 9.000000e-01 : f64, graph.statistic = @mean})
  // CHECK-NOT: graph.read @mean
  // CHECK-NOT: graph.where
  // CHECK: %[[OWN:.*]] = graph.reduce_mean %arg0 {axes = array<i64: 0>, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  // CHECK: %[[SAME:.*]] = graph.reduce_mean %arg0
  // CHECK: graph.sub %arg0, %[[SAME]]
  // CHECK: return %{{.*}}, %[[OWN]] : tensor<f32>, tensor<4xf32>
  // CHECK-LABEL: func.func @evaluate
  // CHECK-SAME: -> (tensor<f32> {graph.name = "loss"})
  // CHECK-NOT: graph.reduce_mean %arg0
  // CHECK: %[[RUNNING:.*]] = graph.read @mean
  // CHECK: graph.sub %arg0, %[[RUNNING]]
  // CHECK: return %{{.*}} : tensor<f32>
  func.func @forward(%x: tensor<8x4xf32> {graph.name = "x"}, %k: tensor<7xi32> {graph.context, graph.name = "context"})
      -> (tensor<f32> {graph.name = "loss"}, tensor<4xf32> {graph.statistic = @mean, graph.momentum = 0.9 : f64}) {
    %s = graph.slice %k {starts = array<i64: 4>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<7xi32>) -> tensor<1xi32>
    %training = graph.cast %s : (tensor<1xi32>) -> tensor<1xi1>
    %own = graph.reduce_mean %x {axes = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
    %running = graph.read @mean : tensor<4xf32>
    %mean = graph.where %training, %own, %running : (tensor<1xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = graph.sub %x, %mean : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    %w0 = graph.read @w0 : tensor<4x4xf32>
    %0 = graph.matmul %c, %w0 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %w1 = graph.read @w1 : tensor<4x4xf32>
    %1 = graph.matmul %0, %w1 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %w2 = graph.read @w2 : tensor<4x4xf32>
    %2 = graph.matmul %1, %w2 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %l = graph.reduce_sum %2 {axes = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
    return %l, %own : tensor<f32>, tensor<4xf32>
  }
}

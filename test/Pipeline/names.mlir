// RUN: dsopt %s -micro-batches=2 -emit=exec -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: dsopt-opt %t.mlir -verify-exec -o /dev/null

// A model's parameters give way where the compiler needs a symbol, and keep their names.

// CHECK-DAG: graph.parameter @"update~" {{.*}}name = "update"
// CHECK-DAG: graph.parameter @"micro_batch~" {{.*}}name = "micro_batch"
// CHECK-DAG: graph.parameter @"evaluate~" {{.*}}name = "evaluate"
// CHECK-DAG: graph.parameter @"position0~" {{.*}}name = "position0"
// CHECK-DAG: graph.parameter @"block0.F~" {{.*}}name = "block0.F"
// CHECK-DAG: graph.parameter @"update.adamw~" {{.*}}name = "update.adamw"
// CHECK-DAG: graph.parameter @"kernels~" {{.*}}name = "kernels"
// CHECK-DAG: graph.parameter @b0 :
// CHECK-DAG: dist.bucket @b0.bucket
// CHECK-DAG: exec.program @position0
// CHECK-DAG: exec.program @evaluate0
graph.parameter @update : tensor<8xf32> from "m" at 0 bytes 32
graph.parameter @micro_batch : tensor<8xf32> from "m" at 32 bytes 32
graph.parameter @evaluate : tensor<8xf32> from "m" at 64 bytes 32
graph.parameter @position0 : tensor<8xf32> from "m" at 96 bytes 32
graph.parameter @block0.F : tensor<8xf32> from "m" at 128 bytes 32
graph.parameter @update.adamw : tensor<8xf32> from "m" at 160 bytes 32
graph.parameter @b0 : tensor<8xf32> from "m" at 192 bytes 32
graph.parameter @kernels : tensor<8xf32> from "m" at 224 bytes 32
func.func @forward(%x: tensor<4x8xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "loss"}) {
  %0 = graph.read @update : tensor<8xf32>
  %1 = graph.read @micro_batch : tensor<8xf32>
  %2 = graph.read @evaluate : tensor<8xf32>
  %3 = graph.read @position0 : tensor<8xf32>
  %4 = graph.read @block0.F : tensor<8xf32>
  %5 = graph.read @update.adamw : tensor<8xf32>
  %6 = graph.read @b0 : tensor<8xf32>
  %7 = graph.read @kernels : tensor<8xf32>
  %a = graph.mul %x, %0 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %b = graph.mul %a, %1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %c = graph.mul %b, %2 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %d = graph.mul %c, %3 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %e = graph.mul %d, %4 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %f = graph.mul %e, %5 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %g = graph.mul %f, %6 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %h = graph.mul %g, %7 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %t = graph.tanh %h : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %loss = graph.reduce_mean %t {axes = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// RUN: dsopt-opt %s -split-input-file -attach-target="arch=x86-64-v3 threads=2" -nest-kernels | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -attach-target="arch=x86-64-v3 threads=2" -nest-kernels -nest-kernels | FileCheck %s

// Kernels stand under the target, and those who call them name them there.
// CHECK: module attributes {dsopt.target = #[[TARGET:.*]]} {
// CHECK-NOT: @kernel0(
// CHECK: func.func private @block0.F
// CHECK: exec.launch @kernels::@kernel0 range 8 grain 1
// CHECK: graph.sgd {{.*}} {functions = #graph.functions<kernel = @kernels::@update.sgd>
// CHECK: exec.update @kernels::@update.sgd of @b0
// CHECK: exec.map @kernels::@update.sgd [
// CHECK: module @kernels attributes {dsopt.target = #[[TARGET]]} {
// CHECK-NEXT: func.func nested @kernel0
// CHECK: func.func nested @update.sgd
func.func private @kernel0(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.exp %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
func.func private @update.sgd(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>, graph.in_place = array<i64: 0>} {
  return %x : tensor<64xf32>
}
func.func private @block0.F(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.segment} {
  exec.launch @kernel0 range 8 grain 1 (%x) -> (%y) : memref<8x64xf32> -> memref<8x64xf32>
  return
}
func.func @update(%x: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<20xf32>) {
  %0 = graph.sgd %x, %g, %s {functions = #graph.functions<kernel = @update.sgd>} : (tensor<64xf32>, tensor<64xf32>, tensor<20xf32>) -> tensor<64xf32>
  return
}
exec.stream @compute compute
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @x : memref<64xf32> buffers slots 1 stride 256
  exec.schedule {
    %0 = exec.update @update.sgd of @b0 [@x] elements 64 on @compute
    %1 = exec.map @update.sgd [@x] elements 64 on @compute
  }
}

// -----

// A model's parameter gives way.
// CHECK: graph.parameter @"kernels~" {{.*}}name = "kernels"
// CHECK: module @kernels
graph.parameter @kernels : tensor<8xf32> from "m" at 0 bytes 32

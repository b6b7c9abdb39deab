// RUN: dsopt-opt %s -nest-kernels | FileCheck %s

// CHECK: func.func @other
// CHECK: module {
// CHECK-NEXT: func.func private @kernel0
func.func private @kernel0(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.exp %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
func.func @other(%x: memref<8xf32>) { return }

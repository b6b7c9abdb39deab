// RUN: dsopt-opt %s -describe-calls | FileCheck %s
// The pass's description has an entry as it is written.
// RUN: FileCheck %s --check-prefix=DOC < %source/include/dsopt/Conversion/Passes.td
// DOC: {bytes = 224 : i64, flops = 128 : i64, kind = "product", place = "layers.0.up and 1 more",
// DOC-NEXT: products = array<i64: 1, 1, 8, 2, 4, 0, 0>, type = f32, what = "8x2x4 NN"}

// Equal calls are one entry, with the places that they come from; a kernel counts of what it gathers from only what it takes.
// CHECK: exec.calls = [
// CHECK-SAME: {bytes = 80 : i64, flops = 8 : i64, kind = "kernel", type = f32, what = "kernel0 rows 4: gather add"}
// CHECK-SAME: {bytes = 224 : i64, flops = 128 : i64, kind = "product", place = "layers.0.up and 1 more", products = array<i64: 1, 1, 8, 2, 4, 0, 0>, type = f32, what = "8x2x4 NN"}
// CHECK-SAME: {bytes = 384 : i64, flops = 256 : i64, kind = "product", products = array<i64: 1, 2, 4, 4, 4, 0, 1>, type = f32, what = "2 of 4x4x4 NT"}
// CHECK-SAME: {bytes = 32 : i64, flops = 4 : i64, kind = "accumulate", type = f32, what = "4"}
// CHECK-SAME: {bytes = 768 : i64, flops = 128 : i64, kind = "update", type = f32, what = "update.sgd flat: sgd"}
// CHECK-SAME: exec.update_calls = {update.sgd = 4 : i64}
func.func private @kernel0(%w: tensor<100x2xf32>, %i: tensor<4xi32>, %y: tensor<4xf32>) -> tensor<4x2xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
  %g = graph.gather %w, %i {axis = 0 : i64} : (tensor<100x2xf32>, tensor<4xi32>) -> tensor<4x2xf32>
  %r = graph.add %g, %g : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// CHECK-LABEL: func.func private @block0.F
// CHECK-SAME: exec.calls = array<i64: 0, 1, 1, 2, 3>
func.func private @block0.F(%w: memref<100x2xf32>, %i: memref<4xi32>, %y: memref<4xf32>, %x: memref<8x4xf32>,
                            %p: memref<2x4x4xf32>, %g: memref<4xf32>) attributes {exec.segment} {
  %t = exec.temp at 0 : memref<4x2xf32>
  exec.launch @kernel0 range 4 grain 1 (%w, %i, %y) -> (%t) {exec.flops = 8 : i64}
    : memref<100x2xf32>, memref<4xi32>, memref<4xf32> -> memref<4x2xf32>
  %u = exec.temp at 64 : memref<8x2xf32>
  exec.gemm %x, %t -> %u {exec.flops = 128 : i64} : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32> loc("node_a"("module 'layers.0.up' (model.py:3)"("model.onnx")))
  exec.gemm %x, %t -> %u {exec.flops = 128 : i64} : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32> loc("node_b"("model.onnx"))
  %v = exec.temp at 128 : memref<2x4x4xf32>
  exec.gemm %p, %p -> %v {exec.flops = 256 : i64, transpose_b} : memref<2x4x4xf32>, memref<2x4x4xf32> -> memref<2x4x4xf32>
  exec.accumulate %y -> %g {exec.flops = 4 : i64} : memref<4xf32> -> memref<4xf32>
  return
}

// An update is counted for its nominal elements, without the table of scalars.
func.func private @update.sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32>
    attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>, graph.in_place = array<i64: 0>} {
  %r = graph.sgd %p, %g, %s : (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
exec.stream @compute compute
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent
  exec.buffer @b0.grad.0 : memref<64xf32> gradients slots 1 stride 256
  exec.schedule {
    %0 = exec.update @update.sgd of @b0 [@b0.param, @b0.grad.0] elements 64 on @compute
  }
}

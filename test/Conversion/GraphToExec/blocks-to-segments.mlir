// RUN: dsopt-opt %s -attach-target=arch=x86-64-v3 -blocks-to-segments | FileCheck %s
// RUN: dsopt-opt %s -attach-target=arch=x86-64-v3 -blocks-to-segments | dsopt-opt | FileCheck %s

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<4x2xf32> from "model.onnx" at 0 bytes 32
graph.state @w.grad.0 : tensor<4x2xf32> gradient of @w block 0
graph.state @e.grad.0 : tensor<5x2x3xf32> gradient of @w block 0
graph.state @b.grad.0 : tensor<2xf32> gradient of @w block 0
graph.state @n.grad.4 : tensor<4x2xbf16> gradient of @w block 4
graph.state @n.grad.5 : tensor<2xbf16> gradient of @w block 4
graph.state @n.grad.6 : tensor<5x6xbf16> gradient of @w block 4
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 8>] elements 64 padded 128 over [edp, ep, sp] zero 2

func.func private @rows(%x: tensor<8x2xf32>, %c: tensor<8x2xf32>) -> tensor<8x2xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 2, 4>} {
  %0 = graph.add %x, %c : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}
func.func private @many(%x: tensor<512x2xf32>, %c: tensor<512x2xf32>) -> tensor<512x2xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 512>} {
  %0 = graph.add %x, %c : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  return %0 : tensor<512x2xf32>
}
func.func private @columns(%x: tensor<8x2xf32>) -> tensor<2xf32>
    attributes {graph.iterate = #graph.iteration<columns>, graph.range = array<i64: 2>} {
  %0 = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<8x2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Inputs, results, parameters, constants; a product in scratch, a result in its buffer.
// CHECK-LABEL: func.func private @block0.F(
// CHECK-SAME: %[[X:.*]]: memref<8x4xf32> {exec.access = #exec.access<read>},
// CHECK-SAME: %[[Y:.*]]: memref<8x2xf32> {exec.access = #exec.access<write>},
// CHECK-SAME: %[[W:.*]]: memref<4x2xf32> {exec.access = #exec.access<read>, exec.parameter = @w},
// CHECK-SAME: %[[C:.*]]: memref<8x2xf32> {exec.access = #exec.access<read>, exec.constant = @const_0})
// CHECK-SAME: dist.stage = 1 : i64, exec.flops = 144 : i64, exec.segment, exec.temp_bytes = 64 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>
func.func private @block0.F(%x: tensor<8x4xf32>) -> tensor<8x2xf32>
    attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 1 : i64} {
  %w = graph.read @w : tensor<4x2xf32>
  %again = graph.read @w : tensor<4x2xf32>
  %c = graph.constant dense<[[1., 2.], [3., 4.], [5., 6.], [7., 8.], [1., 2.], [3., 4.], [5., 6.], [7., 8.]]> : tensor<8x2xf32>
  // CHECK: %[[T:.*]] = exec.temp at 0 : memref<8x2xf32>
  // CHECK: exec.gemm %[[X]], %[[W]] -> %[[T]] {exec.flops = 128 : i64} : memref<8x4xf32>
  %0 = graph.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: exec.launch @rows range 8 grain 1(%[[T]], %[[C]]) -> (%[[Y]])
  %1 = graph.kernel @rows(%0, %c) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  // CHECK-NEXT: return
  return %1 : tensor<8x2xf32>
}

// A product goes straight into its gradient, through views; a kernel's result is added.
// CHECK-LABEL: func.func private @block0.W(
// CHECK-SAME: %[[X:.*]]: memref<8x4xf32> {exec.access = #exec.access<read>}, %[[DY:.*]]: memref<8x2xf32> {exec.access = #exec.access<read>},
// CHECK-SAME: %[[GW:.*]]: memref<4x2xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0},
// CHECK-SAME: %[[GB:.*]]: memref<2xf32> {exec.access = #exec.access<update>, exec.gradient = @b.grad.0})
// CHECK-SAME: exec.segment, exec.temp_bytes = 64 : i64
func.func private @block0.W(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>)
    attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
  %x3 = graph.reshape %x : (tensor<8x4xf32>) -> tensor<1x8x4xf32>
  %dy3 = graph.reshape %dy : (tensor<8x2xf32>) -> tensor<1x8x2xf32>
  // CHECK: %[[G3:.*]] = exec.view %[[GW]] : memref<4x2xf32> to memref<1x4x2xf32>
  // CHECK: %[[X3:.*]] = exec.view %[[X]]
  // CHECK: %[[DY3:.*]] = exec.view %[[DY]]
  // CHECK: exec.gemm %[[X3]], %[[DY3]] -> %[[G3]] {exec.flops = 136 : i64, into_gradient, transpose_a}
  %0 = graph.matmul %x3, %dy3 {transpose_a} : (tensor<1x8x4xf32>, tensor<1x8x2xf32>) -> tensor<1x4x2xf32>
  %dw = graph.reshape %0 : (tensor<1x4x2xf32>) -> tensor<4x2xf32>
  graph.accumulate @w.grad.0, %dw : tensor<4x2xf32>
  // CHECK: %[[T:.*]] = exec.temp at 0 : memref<2xf32>
  // CHECK: exec.launch @columns range 2 grain 64(%[[DY]]) -> (%[[T]])
  %db = graph.kernel @columns(%dy) : (tensor<8x2xf32>) -> tensor<2xf32>
  // CHECK: exec.accumulate %[[T]] -> %[[GB]]
  graph.accumulate @b.grad.0, %db : tensor<2xf32>
  return
}

// Index dimensions are one, row dimensions are one.
// CHECK-LABEL: func.func private @block1.W(
// CHECK-SAME: %[[D:.*]]: memref<7x3x2x3xf32> {exec.access = #exec.access<read>}, %[[I:.*]]: memref<7x3xi64> {exec.access = #exec.access<read>},
// CHECK-SAME: %[[G:.*]]: memref<5x2x3xf32> {exec.access = #exec.access<update>, exec.gradient = @e.grad.0})
func.func private @block1.W(%d: tensor<7x3x2x3xf32>, %i: tensor<7x3xi64>)
    attributes {graph.block = 1 : i64, graph.phase = #graph.phase<W>} {
  // CHECK-DAG: %[[D2:.*]] = exec.view %[[D]] : memref<7x3x2x3xf32> to memref<21x6xf32>
  // CHECK-DAG: %[[I1:.*]] = exec.view %[[I]] : memref<7x3xi64> to memref<21xi64>
  // CHECK-DAG: %[[G2:.*]] = exec.view %[[G]] : memref<5x2x3xf32> to memref<5x6xf32>
  // CHECK: exec.scatter_add %[[D2]], %[[I1]] -> %[[G2]] {exec.flops = {{[0-9]+}} : i64, into_gradient}
  %0 = graph.gather_grad %d, %i {axis = 0 : i64} : (tensor<7x3x2x3xf32>, tensor<7x3xi64>) -> tensor<5x2x3xf32>
  graph.accumulate @e.grad.0, %0 : tensor<5x2x3xf32>
  return
}

// Scratch is reused when its value is dead; an equal constant is the same one.
// CHECK-LABEL: func.func private @block2.F(
// CHECK-SAME: exec.constant = @const_0
// CHECK-SAME: exec.temp_bytes = 128 : i64
func.func private @block2.F(%x: tensor<8x2xf32>) -> tensor<8x2xf32>
    attributes {graph.block = 2 : i64, graph.phase = #graph.phase<F>} {
  %c = graph.constant dense<[[1., 2.], [3., 4.], [5., 6.], [7., 8.], [1., 2.], [3., 4.], [5., 6.], [7., 8.]]> : tensor<8x2xf32>
  // CHECK: %[[A:.*]] = exec.temp at [[OA:[0-9]+]]
  // CHECK: exec.launch @rows {{.*}} -> (%[[A]])
  %0 = graph.kernel @rows(%x, %c) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  // CHECK: %[[B:.*]] = exec.temp at
  // CHECK: exec.launch @rows {{.*}} -> (%[[B]])
  %1 = graph.kernel @rows(%0, %c) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  // CHECK: %[[C:.*]] = exec.temp at [[OA]]
  // CHECK: exec.launch @rows {{.*}} -> (%[[C]])
  %2 = graph.kernel @rows(%1, %c) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = graph.kernel @rows(%2, %c) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %3 : tensor<8x2xf32>
}

// What takes a page lies in the buffer of a result that is written later, one value after the other; what only
// leaves the segment is computed last for that.
// CHECK-LABEL: func.func private @block7.B(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<512x2xf32> {exec.access = #exec.access<read>}, %[[H:[a-z0-9]+]]: memref<512x2xf32> {exec.access = #exec.access<write>},
// CHECK-SAME: %[[G:[a-z0-9]+]]: memref<512x2xf32> {exec.access = #exec.access<write>}, %[[DX:[a-z0-9]+]]: memref<512x2xf32> {exec.access = #exec.access<write>})
// CHECK-SAME: exec.temp_bytes = 0 : i64
func.func private @block7.B(%x: tensor<512x2xf32>) -> (tensor<512x2xf32>, tensor<512x2xf32>, tensor<512x2xf32>)
    attributes {graph.block = 7 : i64, graph.phase = #graph.phase<B>} {
  // CHECK: exec.launch @many {{.*}}(%[[X]], %[[X]]) -> (%[[H]])
  %d = graph.kernel @many(%x, %x) : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  // CHECK: exec.launch @many {{.*}}(%[[X]], %[[H]]) -> (%[[DX]])
  %a = graph.kernel @many(%x, %d) : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  %h = graph.kernel @many(%a, %x) : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  // CHECK: exec.launch @many {{.*}}(%[[DX]], %[[H]]) -> (%[[G]])
  // CHECK: exec.launch @many {{.*}}(%[[DX]], %[[X]]) -> (%[[H]])
  %g = graph.kernel @many(%a, %d) : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  // CHECK: exec.launch @many {{.*}}(%[[G]], %[[X]]) -> (%[[DX]])
  %dx = graph.kernel @many(%g, %x) : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  return %h, %g, %dx : tensor<512x2xf32>, tensor<512x2xf32>, tensor<512x2xf32>
}

// A result of the same size that is written while the value is needed is no place for it.
// CHECK-LABEL: func.func private @block8.B(
// CHECK-SAME: exec.temp_bytes = 4096 : i64
func.func private @block8.B(%x: tensor<512x2xf32>) -> tensor<512x2xf32> attributes {graph.block = 8 : i64, graph.phase = #graph.phase<B>} {
  // CHECK: %[[T:.*]] = exec.temp at 0 : memref<512x2xf32>
  // CHECK: exec.launch @many {{.*}} -> (%[[T]])
  %a = graph.kernel @many(%x, %x) : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  %r = graph.kernel @many(%a, %x) : (tensor<512x2xf32>, tensor<512x2xf32>) -> tensor<512x2xf32>
  return %r : tensor<512x2xf32>
}

// A gradient that is used elsewhere too is computed in its result and added.
// CHECK-LABEL: func.func private @block3.W(
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[R:arg2]] {exec.flops = 128 : i64, transpose_a}
// CHECK: exec.accumulate %[[R]] -> %arg3
func.func private @block3.W(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>) -> tensor<4x2xf32>
    attributes {graph.block = 3 : i64, graph.phase = #graph.phase<W>} {
  %0 = graph.matmul %x, %dy {transpose_a} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  graph.accumulate @w.grad.0, %0 : tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// Gradients in bf16: products round what they add, so do values in f32; rows are put in order in scratch.
// CHECK-LABEL: func.func private @block4.W(
// CHECK-SAME: %[[X:.*]]: memref<8x4xbf16> {exec.access = #exec.access<read>}, %[[DY:.*]]: memref<8x2xbf16> {exec.access = #exec.access<read>},
// CHECK-SAME: %[[D:[a-z0-9]+]]: memref<8x2xf32> {{.*}}, %[[R:[a-z0-9]+]]: memref<7x6xbf16> {{.*}}, %[[I:[a-z0-9]+]]: memref<7xi64>
// CHECK-SAME: %[[GW:[a-z0-9]+]]: memref<4x2xbf16> {exec.access = #exec.access<update>, exec.gradient = @n.grad.4},
// CHECK-SAME: %[[GB:[a-z0-9]+]]: memref<2xbf16> {exec.access = #exec.access<update>, exec.gradient = @n.grad.5},
// CHECK-SAME: %[[GE:[a-z0-9]+]]: memref<5x6xbf16> {exec.access = #exec.access<update>, exec.gradient = @n.grad.6})
func.func private @block4.W(%x: tensor<8x4xbf16>, %dy: tensor<8x2xbf16>, %d: tensor<8x2xf32>, %r: tensor<7x6xbf16>, %i: tensor<7xi64>)
    attributes {graph.block = 4 : i64, graph.phase = #graph.phase<W>} {
  // CHECK: exec.gemm %[[X]], %[[DY]] -> %[[GW]] {exec.flops = 136 : i64, into_gradient, transpose_a} : memref<8x4xbf16>, memref<8x2xbf16> -> memref<4x2xbf16>
  %dw = graph.matmul %x, %dy {transpose_a} : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
  graph.accumulate @n.grad.4, %dw : tensor<4x2xf32>
  // CHECK: %[[T:.*]] = exec.temp at 0 : memref<2xf32>
  %db = graph.kernel @columns(%d) : (tensor<8x2xf32>) -> tensor<2xf32>
  // CHECK: exec.accumulate %[[T]] -> %[[GB]] {exec.flops = 2 : i64} : memref<2xf32> -> memref<2xbf16>
  graph.accumulate @n.grad.5, %db : tensor<2xf32>
  // CHECK: %[[S:.*]] = exec.temp at {{.*}} : memref<56xi8>
  // CHECK: exec.scatter_add %[[R]], %[[I]] -> %[[GE]] workspace %[[S]] {exec.flops = {{[0-9]+}} : i64, into_gradient}
  %de = graph.gather_grad %r, %i {axis = 0 : i64} : (tensor<7x6xbf16>, tensor<7xi64>) -> tensor<5x6xf32>
  graph.accumulate @n.grad.6, %de : tensor<5x6xf32>
  return
}

// The loss's routine stores its gradient of x and adds that of the weight: one that x's parameter has is
// added behind it.
// CHECK-LABEL: func.func private @block5.F(
// CHECK-SAME: %[[GX:[a-z0-9]+]]: memref<4x2xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}
// CHECK-SAME: %[[GV:[a-z0-9]+]]: memref<3x2xf32> {exec.access = #exec.access<update>, exec.gradient = @v.grad.5}
// CHECK: %[[T:.*]] = exec.temp at {{[0-9]+}} : memref<4x2xf32>
// CHECK: exec.linear_nll {{.*}}%[[T]], %[[GV]], {{.*}}weight_into_gradient
// CHECK: exec.accumulate %[[T]] -> %[[GX]]
graph.state @v.grad.5 : tensor<3x2xf32> gradient of @w block 5
func.func private @block5.F(%x: tensor<4x2xf32>, %v: tensor<3x2xf32>, %labels: tensor<4xi64>, %g: tensor<4xf32>) -> tensor<4xf32>
    attributes {graph.block = 5 : i64, graph.phase = #graph.phase<F>} {
  %loss, %dx, %dv = graph.linear_nll_grad %x, %v, %labels, %g {ignore_index = -100 : i64, transpose_b, resultSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>)
  graph.accumulate @w.grad.0, %dx : tensor<4x2xf32>
  graph.accumulate @v.grad.5, %dv : tensor<3x2xf32>
  return %loss : tensor<4xf32>
}

// CHECK: memref.global "private" constant @const_0 : memref<8x2xf32> = dense<
// CHECK-NOT: memref.global
}

// Every operation is read, verified and printed as it was written.
// RUN: dsopt-opt %s | FileCheck %s
// RUN: dsopt-opt %s -o %t.mlir && dsopt-opt %t.mlir | diff %t.mlir -
// RUN: dsopt-opt %s -mlir-print-op-generic | dsopt-opt | diff %t.mlir -
// RUN: dsopt-opt %s -emit-bytecode | dsopt-opt | diff %t.mlir -

// CHECK: graph.parameter @"w:1" : tensor<4x5xf32> from "m.data" at 64 bytes 80
graph.parameter @"w:1" : tensor<4x5xf32> from "m.data" at 64 bytes 80
// CHECK: graph.parameter @steps : tensor<i64> from "m.data" at 0 bytes 8 frozen {chunks = array<i64: 17>, file_bytes = 8 : i64, why = "integer"}
graph.parameter @steps : tensor<i64> from "m.data" at 0 bytes 8 frozen {chunks = array<i64: 17>, file_bytes = 8 : i64, why = "integer"}
// CHECK: graph.state @w.grad.0 : tensor<4x5xf32> gradient of @"w:1" block 0
graph.state @w.grad.0 : tensor<4x5xf32> gradient of @"w:1" block 0
// CHECK: graph.state @w.m : tensor<4x5xf32> optimizer "m" of @"w:1"{{$}}
graph.state @w.m : tensor<4x5xf32> optimizer "m" of @"w:1"

// CHECK-LABEL: @state
func.func @state(%x: tensor<4x5xf32>) {
  // CHECK: graph.read @"w:1" : tensor<4x5xf32>
  %w = graph.read @"w:1" : tensor<4x5xf32>
  // CHECK: graph.read @w.m : tensor<4x5xf32>
  %m = graph.read @w.m : tensor<4x5xf32>
  // CHECK: graph.accumulate @w.grad.0, %arg0 : tensor<4x5xf32>
  graph.accumulate @w.grad.0, %x : tensor<4x5xf32>
  // CHECK: graph.write @"w:1", %{{.*}} : tensor<4x5xf32>
  graph.write @"w:1", %m : tensor<4x5xf32>
  // CHECK: graph.write @w.m, %{{.*}} : tensor<4x5xf32>
  graph.write @w.m, %w : tensor<4x5xf32>
  return
}

// CHECK-LABEL: @random
func.func @random(%x: tensor<2x3xf32>, %k: tensor<7xi32>, %s: tensor<2xi32>) {
  // CHECK: graph.dropout %arg0, %arg1, %arg2 {ratio = 1.000000e-01 : f64} : (tensor<2x3xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<2x3xf32>
  %0 = graph.dropout %x, %k, %s {ratio = 0.1 : f64} : (tensor<2x3xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<2x3xf32>
  // CHECK: graph.uniform %arg1, %arg2 : (tensor<7xi32>, tensor<2xi32>) -> tensor<2x3xf32>
  %1 = graph.uniform %k, %s : (tensor<7xi32>, tensor<2xi32>) -> tensor<2x3xf32>
  return
}

// CHECK-LABEL: @inverse
func.func @inverse(%x: tensor<2x3xf32>, %i: tensor<2x3xi64>) {
  // CHECK: graph.acos
  %0 = graph.acos %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.acosh
  %1 = graph.acosh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.asin
  %2 = graph.asin %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.asinh
  %3 = graph.asinh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.atan
  %4 = graph.atan %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.atanh
  %5 = graph.atanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.cosh
  %6 = graph.cosh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.sinh
  %7 = graph.sinh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.and %arg1, %arg1 : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64>
  %8 = graph.and %i, %i : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64>
  // CHECK: graph.or %arg1, %arg1 : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64>
  %9 = graph.or %i, %i : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64>
  return
}

// CHECK-LABEL: @unary
func.func @unary(%x: tensor<2x3xf32>, %b: tensor<2x3xi1>, %i: tensor<2x3xi64>) {
  // CHECK: graph.neg %arg2 : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %0 = graph.neg %i : (tensor<2x3xi64>) -> tensor<2x3xi64>
  // CHECK: graph.abs
  %1 = graph.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.sign
  %2 = graph.sign %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.exp
  %3 = graph.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.log
  %4 = graph.log %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.sqrt
  %5 = graph.sqrt %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.reciprocal
  %6 = graph.reciprocal %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.tanh
  %7 = graph.tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.erf
  %8 = graph.erf %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.sigmoid
  %9 = graph.sigmoid %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.relu
  %10 = graph.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.not
  %11 = graph.not %b : (tensor<2x3xi1>) -> tensor<2x3xi1>
  // CHECK: graph.isnan %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi1>
  %12 = graph.isnan %x : (tensor<2x3xf32>) -> tensor<2x3xi1>
  // CHECK: graph.cast %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi32>
  %13 = graph.cast %x : (tensor<2x3xf32>) -> tensor<2x3xi32>
  return
}

// CHECK-LABEL: @binary
func.func @binary(%x: tensor<2x1xf32>, %y: tensor<3xf32>, %b: tensor<2x1xi1>, %c: tensor<i1>) {
  // CHECK: graph.add %arg0, %arg1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %0 = graph.add %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.sub
  %1 = graph.sub %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.mul
  %2 = graph.mul %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.div
  %3 = graph.div %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.pow
  %4 = graph.pow %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.min
  %5 = graph.min %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.max
  %6 = graph.max %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.and
  %7 = graph.and %b, %c : (tensor<2x1xi1>, tensor<i1>) -> tensor<2x1xi1>
  // CHECK: graph.or
  %8 = graph.or %b, %c : (tensor<2x1xi1>, tensor<i1>) -> tensor<2x1xi1>
  // CHECK: graph.equal %arg2, %arg3 : (tensor<2x1xi1>, tensor<i1>) -> tensor<2x1xi1>
  %9 = graph.equal %b, %c : (tensor<2x1xi1>, tensor<i1>) -> tensor<2x1xi1>
  // CHECK: graph.less
  %10 = graph.less %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK: graph.less_equal
  %11 = graph.less_equal %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK: graph.greater
  %12 = graph.greater %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK: graph.greater_equal
  %13 = graph.greater_equal %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK: graph.where %arg2, %arg1, %arg0
  %14 = graph.where %b, %y, %x : (tensor<2x1xi1>, tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// CHECK-LABEL: @products
func.func @products(%x: tensor<2x4x3xf32>, %y: tensor<2x4x5xf32>) {
  // CHECK: graph.matmul %arg0, %arg1 {transpose_a} : (tensor<2x4x3xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %0 = graph.matmul %x, %y {transpose_a} : (tensor<2x4x3xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  // CHECK: graph.matmul %arg1, %{{.*}} {transpose_b} : (tensor<2x4x5xf32>, tensor<2x3x5xf32>) -> tensor<2x4x3xf32>
  %1 = graph.matmul %y, %0 {transpose_b} : (tensor<2x4x5xf32>, tensor<2x3x5xf32>) -> tensor<2x4x3xf32>
  // CHECK: graph.reduce_sum %arg0 {axes = array<i64: 0, 2>, keepdims} : (tensor<2x4x3xf32>) -> tensor<1x4x1xf32>
  %2 = graph.reduce_sum %x {axes = array<i64: 0, 2>, keepdims} : (tensor<2x4x3xf32>) -> tensor<1x4x1xf32>
  // CHECK: graph.reduce_mean %arg0 {axes = array<i64: 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4xf32>
  %3 = graph.reduce_mean %x {axes = array<i64: 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4xf32>
  // CHECK: graph.reduce_max
  %4 = graph.reduce_max %x {axes = array<i64: 1>} : (tensor<2x4x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.reduce_min %arg0 {axes = array<i64>}
  %5 = graph.reduce_min %x {axes = array<i64>} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  // CHECK: graph.cumsum %arg0 {axis = 1 : i64, exclusive, reverse}
  %6 = graph.cumsum %x {axis = 1 : i64, exclusive, reverse} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  return
}

// CHECK-LABEL: @movement
func.func @movement(%x: tensor<2x4xf32>, %i: tensor<2x1xi64>, %g: tensor<2x1x4xf32>) {
  // CHECK: graph.constant dense<[1, 2]> : tensor<2xi64>
  %0 = graph.constant dense<[1, 2]> : tensor<2xi64>
  // CHECK: graph.reshape %arg0 : (tensor<2x4xf32>) -> tensor<8x1xf32>
  %1 = graph.reshape %x : (tensor<2x4xf32>) -> tensor<8x1xf32>
  // CHECK: graph.expand %{{.*}} : (tensor<8x1xf32>) -> tensor<3x8x5xf32>
  %2 = graph.expand %1 : (tensor<8x1xf32>) -> tensor<3x8x5xf32>
  // CHECK: graph.transpose %arg0 {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %3 = graph.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  // CHECK: graph.concat %arg0, %arg0, %arg0 {axis = 1 : i64}
  %4 = graph.concat %x, %x, %x {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x12xf32>
  // CHECK: graph.slice %arg0 {sizes = array<i64: 1, 2>, starts = array<i64: 1, 3>, steps = array<i64: 1, -2>}
  %5 = graph.slice %x {starts = array<i64: 1, 3>, sizes = array<i64: 1, 2>, steps = array<i64: 1, -2>} : (tensor<2x4xf32>) -> tensor<1x2xf32>
  // CHECK: graph.slice_grad
  %6 = graph.slice_grad %5 {starts = array<i64: 1, 3>, steps = array<i64: 1, -2>} : (tensor<1x2xf32>) -> tensor<2x4xf32>
  // CHECK: graph.pad %arg0 {highs = array<i64: 0, -1>, lows = array<i64: 1, 0>, value = 0.000000e+00 : f32}
  %7 = graph.pad %x {lows = array<i64: 1, 0>, highs = array<i64: 0, -1>, value = 0.0 : f32} : (tensor<2x4xf32>) -> tensor<3x3xf32>
  // CHECK: graph.gather %arg0, %arg1 {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x1xi64>) -> tensor<2x1x4xf32>
  %8 = graph.gather %x, %i {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x1xi64>) -> tensor<2x1x4xf32>
  // CHECK: graph.gather_grad
  %9 = graph.gather_grad %g, %i {axis = 0 : i64} : (tensor<2x1x4xf32>, tensor<2x1xi64>) -> tensor<2x4xf32>
  // CHECK: graph.gather_elements
  %10 = graph.gather_elements %x, %i {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x1xi64>) -> tensor<2x1xf32>
  // CHECK: graph.one_hot %arg1 {depth = 7 : i64} : (tensor<2x1xi64>) -> tensor<2x1x7xf32>
  %11 = graph.one_hot %i {depth = 7 : i64} : (tensor<2x1xi64>) -> tensor<2x1x7xf32>
  return
}

// CHECK-LABEL: @composites
func.func @composites(%x: tensor<2x4xf32>, %s: tensor<4xf32>, %l: tensor<2xi64>) {
  // CHECK: graph.softmax %arg0 {axis = 1 : i64}
  %0 = graph.softmax %x {axis = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.gelu %arg0 {approximate_tanh}
  %1 = graph.gelu %x {approximate_tanh} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.layer_norm %arg0, %arg1, %arg1 {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  %2:3 = graph.layer_norm %x, %s, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  // CHECK: graph.layer_norm %arg0, %arg1 {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<2x4xf32>, tensor<4xf32>) ->
  %3:3 = graph.layer_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  // CHECK: graph.rms_norm %arg0, %arg1 {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>)
  %5:2 = graph.rms_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>)
  // CHECK: graph.silu %arg0
  %6 = graph.silu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.nll %arg0, %arg2 {ignore_index = -100 : i64} : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  %4:2 = graph.nll %x, %l {ignore_index = -100 : i64} : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// CHECK-LABEL: @rounding
func.func @rounding(%x: tensor<2x4xf32>, %i: tensor<4xi64>) {
  // CHECK: graph.floor
  %0 = graph.floor %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.ceil
  %1 = graph.ceil %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.round
  %2 = graph.round %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.sin
  %3 = graph.sin %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.cos
  %4 = graph.cos %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: graph.rem
  %5 = graph.rem %i, %i : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  // CHECK: graph.reduce_prod %arg0 {axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2xf32>
  %6 = graph.reduce_prod %x {axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2xf32>
  return
}

// CHECK-LABEL: @windows
func.func @windows(%x: tensor<2x5x3xf32>, %w: tensor<2x3x2x3xf32>, %d: tensor<4x2xf32>, %i: tensor<3xi64>, %u: tensor<3x2xf32>) {
  // CHECK: graph.windows %arg0 {axis = 1 : i64, counts = array<i64: 3>, dilations = array<i64: 1>, kernel = array<i64: 2>, lows = array<i64: 1>, strides = array<i64: 2>, value = 0.000000e+00 : f32} : (tensor<2x5x3xf32>) -> tensor<2x3x2x3xf32>
  %0 = graph.windows %x {axis = 1, counts = array<i64: 3>, kernel = array<i64: 2>, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 0.0 : f32} : (tensor<2x5x3xf32>) -> tensor<2x3x2x3xf32>
  // CHECK: graph.windows_sum %arg1 {axis = 1 : i64, dilations = array<i64: 1>, lows = array<i64: 1>, strides = array<i64: 2>} : (tensor<2x3x2x3xf32>) -> tensor<2x5x3xf32>
  %1 = graph.windows_sum %w {axis = 1, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>} : (tensor<2x3x2x3xf32>) -> tensor<2x5x3xf32>
  // CHECK: graph.windows_place %arg1 {{.*}} : (tensor<2x3x2x3xf32>) -> tensor<2x5x3x2xf32>
  %2 = graph.windows_place %w {axis = 1, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>} : (tensor<2x3x2x3xf32>) -> tensor<2x5x3x2xf32>
  // CHECK: graph.scatter add %arg2, %arg3, %arg4 : (tensor<4x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %3 = graph.scatter add %d, %i, %u : (tensor<4x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return
}

// CHECK-LABEL: @optimizers
func.func @optimizers(%p: tensor<8xf32>, %s: tensor<16xf32>) {
  // CHECK: graph.sgd
  %0 = graph.sgd %p, %p, %s : (tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> tensor<8xf32>
  // CHECK: graph.momentum
  %1:2 = graph.momentum %p, %p, %p, %s : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: graph.muon %{{.*}} {match_rms, rows_are_inputs}
  %muon:2 = graph.muon %p, %p, %p, %s {match_rms, rows_are_inputs} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: graph.adafactor %
  %adafactor = graph.adafactor %p, %p, %s : (tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> tensor<8xf32>
  // CHECK: graph.branch_update "momentum" %{{.*}} : (
  %branch:2 = graph.branch_update "momentum" %p, %p, %p, %s : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: graph.adam %{{.*}} {decoupled}
  %2:3 = graph.adam %p, %p, %p, %p, %s {decoupled} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: @given
func.func @given(%x: tensor<2xf32>, %i: tensor<3xi64>) -> (tensor<2xf32>, tensor<3xi64>) {
  // CHECK: %[[S:.*]] = graph.stop_gradient %arg0 : (tensor<2xf32>) -> tensor<2xf32>
  %s = graph.stop_gradient %x : (tensor<2xf32>) -> tensor<2xf32>
  // CHECK: graph.custom_gradient 3 of(%arg0 : tensor<2xf32>) is(%[[S]], %arg1 : tensor<2xf32>, tensor<3xi64>) saved(%arg0 : tensor<2xf32>) {
  // CHECK-NEXT: ^bb0(%[[SAVED:.*]]: tensor<2xf32>, %[[G:.*]]: tensor<2xf32>):
  // CHECK-NEXT: graph.mul %[[G]], %[[SAVED]]
  // CHECK-NEXT: graph.yield %{{.*}} : tensor<2xf32>
  // CHECK-NEXT: } -> tensor<2xf32>, tensor<3xi64>
  %y, %j = graph.custom_gradient 3 of(%x : tensor<2xf32>) is(%s, %i : tensor<2xf32>, tensor<3xi64>) saved(%x : tensor<2xf32>) {
  ^bb0(%saved: tensor<2xf32>, %g: tensor<2xf32>):
    %d = graph.mul %g, %saved : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    graph.yield %d : tensor<2xf32>
  } -> tensor<2xf32>, tensor<3xi64>
  // CHECK: graph.custom_gradient 4 of() is() saved() {
  graph.custom_gradient 4 of() is() saved() {
    graph.yield
  }
  return %y, %j : tensor<2xf32>, tensor<3xi64>
}

func.func private @rows(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 2>}
func.func private @flat(tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>}
func.func private @block0.F(tensor<2x4xf32>) -> tensor<2x4xf32>
func.func private @block1.F(memref<2x4xf32>, memref<2x4xf32>) attributes {exec.segment}

// CHECK-LABEL: @calls
func.func @calls(%x: tensor<2x4xf32>, %s: tensor<16xf32>) {
  // CHECK: graph.kernel @rows(%arg0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %0 = graph.kernel @rows(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // A flat kernel's types are nominal.
  // CHECK: graph.kernel @flat(%{{.*}}, %arg1) : (tensor<2x4xf32>, tensor<16xf32>) -> tensor<2x4xf32>
  %1 = graph.kernel @flat(%0, %s) : (tensor<2x4xf32>, tensor<16xf32>) -> tensor<2x4xf32>
  // CHECK: graph.run @block0.F(%{{.*}}) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = graph.run @block0.F(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // A segment's types are those of buffers.
  // CHECK: graph.run @block1.F(%{{.*}}) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = graph.run @block1.F(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: @round_to
// CHECK: graph.round_to %arg0 {to = bf16} : (tensor<4xf32>) -> tensor<4xf32>
func.func @round_to(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.round_to %x {to = bf16} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

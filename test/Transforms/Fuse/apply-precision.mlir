// RUN: dsopt-opt %s -apply-precision=precision=bf16 -split-input-file | FileCheck %s
// RUN: dsopt-opt %s -apply-precision -split-input-file | FileCheck %s --check-prefix=NONE

// RUN: dsopt-opt %s -apply-precision=precision=fp16 -split-input-file | FileCheck %s --check-prefix=HALF

// HALF: graph.parameter @w {{.*}}storage = f16
// HALF: graph.state @w.master : tensor<16x16xf32> master of @w
// HALF-LABEL: func.func @micro_batch
// HALF: graph.read @w : tensor<16x16xf16>
// HALF: graph.kernel @mean.f16
// HALF: graph.matmul {{.*}} {transpose_a} : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<16x16xf32>

// Products, what they read and what is made of their results elementwise is bf16; sums stay f32.
// NONE-NOT: bf16
// CHECK: graph.parameter @w {{.*}}storage = bf16
graph.parameter @w : tensor<16x16xf32> from "w" at 0 bytes 1024
graph.state @w.grad.0 : tensor<16x16xf32> gradient of @w block 0
// CHECK: graph.state @w.master : tensor<16x16xf32> master of @w
// CHECK-NEXT: graph.state @w.m
graph.state @w.m : tensor<16x16xf32> optimizer "m" of @w
graph.state @w.v : tensor<16x16xf32> optimizer "v" of @w
func.func private @mean(%x: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x1xf32>)
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %a = graph.add %x, %b : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = graph.reduce_sum %a {axes = array<i64: 1>, keepdims} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  return %a, %s : tensor<8x16xf32>, tensor<8x1xf32>
}
func.func private @total(%x: tensor<8x1xf32>) -> tensor<f32>
    attributes {graph.iterate = #graph.iteration<columns>, graph.range = array<i64>} {
  %s = graph.reduce_sum %x {axes = array<i64: 0, 1>} : (tensor<8x1xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
// CHECK-LABEL: func.func private @update.adamw
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<64xbf16>, %[[G:[a-z0-9]+]]: tensor<64xf32>, %[[MASTER:[a-z0-9]+]]: tensor<64xf32>, %[[M:[a-z0-9]+]]: tensor<64xf32>,
// CHECK-SAME: graph.in_place = array<i64: 0, 2, 3, 4>
// CHECK: %[[NEW:.*]], %[[NEW_M:.*]], %[[NEW_V:.*]] = graph.adam %[[MASTER]], %[[G]], %[[M]]
// CHECK: %[[ROUNDED:.*]] = graph.cast %[[NEW]] : (tensor<64xf32>) -> tensor<64xbf16>
// CHECK: return %[[ROUNDED]], %[[NEW]], %[[NEW_M]], %[[NEW_V]]
func.func private @update.adamw(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>,
    %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
    attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>, graph.in_place = array<i64: 0, 2, 3>} {
  %0:3 = graph.adam %p, %g, %m, %v, %s {decoupled} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1, %0#2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @micro_batch
func.func @micro_batch(%x: tensor<8x16xf32>) -> tensor<f32> {
  // CHECK: %[[W:.*]] = graph.read @w : tensor<16x16xbf16>
  %w = graph.read @w : tensor<16x16xf32>
  // CHECK: %[[X:.*]] = graph.kernel @convert(%{{.*}}) : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  // CHECK: %[[Y:.*]] = graph.matmul %[[X]], %[[W]] : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %y = graph.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  // What two operands of one shape disagree about stays f32, unless a product reads it.
  // CHECK: %[[A:.*]]:2 = graph.kernel @mean.bf16(%[[Y]], %{{.*}}) : (tensor<8x16xbf16>, tensor<8x16xf32>) -> (tensor<8x16xbf16>, tensor<8x1xf32>)
  %a, %s = graph.kernel @mean(%y, %x) : (tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x1xf32>)
  // CHECK: graph.matmul %[[A]]#0, %[[Y]] {transpose_a} : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<16x16xf32>
  %g = graph.matmul %a, %y {transpose_a} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  graph.accumulate @w.grad.0, %g : tensor<16x16xf32>
  // CHECK: graph.kernel @total(%[[A]]#1) : (tensor<8x1xf32>) -> tensor<f32>
  %l = graph.kernel @total(%s) : (tensor<8x1xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
// CHECK-LABEL: func.func @update
func.func @update(%scalars: tensor<16xf32>) {
  // CHECK: graph.read @w.master : tensor<16x16xf32>
  %p = graph.read @w : tensor<16x16xf32>
  %g = graph.read @w.grad.0 : tensor<16x16xf32>
  %m = graph.read @w.m : tensor<16x16xf32>
  %v = graph.read @w.v : tensor<16x16xf32>
  // CHECK: %[[NEW:.*]], %{{.*}}, %{{.*}} = graph.adam
  %0:3 = graph.adam %p, %g, %m, %v, %scalars {decoupled, functions = #graph.functions<kernel = @update.adamw>} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>)
  // CHECK: graph.write @w.master, %[[NEW]] : tensor<16x16xf32>
  // CHECK: %[[STORED:.*]] = graph.cast %[[NEW]] : (tensor<16x16xf32>) -> tensor<16x16xbf16>
  // CHECK: graph.write @w, %[[STORED]] : tensor<16x16xbf16>
  graph.write @w, %0#0 : tensor<16x16xf32>
  graph.write @w.m, %0#1 : tensor<16x16xf32>
  graph.write @w.v, %0#2 : tensor<16x16xf32>
  return
}
// CHECK-LABEL: func.func private @mean.bf16
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<8x16xbf16>, %[[B:[a-z0-9]+]]: tensor<8x16xf32>) -> (tensor<8x16xbf16>, tensor<8x1xf32>)
// CHECK: %[[WIDE:.*]] = graph.cast %[[X]] : (tensor<8x16xbf16>) -> tensor<8x16xf32>
// CHECK: %[[SUM:.*]] = graph.add %[[WIDE]], %[[B]]
// What is stored is rounded for the kernel's own operations too.
// CHECK: %[[STORED:.*]] = graph.cast %[[SUM]] : (tensor<8x16xf32>) -> tensor<8x16xbf16>
// CHECK: %[[READ:.*]] = graph.cast %[[STORED]] : (tensor<8x16xbf16>) -> tensor<8x16xf32>
// CHECK: %[[MEAN:.*]] = graph.reduce_sum %[[READ]]
// CHECK: return %[[STORED]], %[[MEAN]]

// -----

// Gradients of the parameters' type: accumulators take f32 and round, the update extends what it reads; those
// of one parameter are added as they are stored.
// NONE: module attributes {dsopt.options = {gradient_type = "param"}}
// CHECK: module attributes {dsopt.options = {gradient_type = "param", precision = "bf16"}}
module attributes {dsopt.options = {gradient_type = "param"}} {
  graph.parameter @w : tensor<16x16xf32> from "w" at 0 bytes 1024
  // CHECK: graph.state @w.grad.0 : tensor<16x16xbf16> gradient of @w block 0
  // CHECK: graph.state @w.grad.1 : tensor<16x16xbf16> gradient of @w block 1
  graph.state @w.grad.0 : tensor<16x16xf32> gradient of @w block 0
  graph.state @w.grad.1 : tensor<16x16xf32> gradient of @w block 1
  // CHECK-LABEL: func.func private @update.sgd
  // CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<64xbf16>, %[[G:[a-z0-9]+]]: tensor<64xbf16>, %[[MASTER:[a-z0-9]+]]: tensor<64xf32>,
  // CHECK: %[[WIDE:.*]] = graph.cast %[[G]] : (tensor<64xbf16>) -> tensor<64xf32>
  // CHECK: graph.sgd %[[MASTER]], %[[WIDE]]
  func.func private @update.sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32>
      attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>, graph.in_place = array<i64: 0>} {
    %0 = graph.sgd %p, %g, %s : (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
  // CHECK-LABEL: func.func @micro_batch
  func.func @micro_batch(%x: tensor<16x16xf32>) {
    %w = graph.read @w : tensor<16x16xf32>
    // CHECK: %[[DW:.*]] = graph.matmul {{.*}} : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xf32>
    %dw = graph.matmul %x, %w : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    // CHECK: graph.accumulate @w.grad.0, %[[DW]] : tensor<16x16xf32>
    graph.accumulate @w.grad.0, %dw : tensor<16x16xf32>
    return
  }
  // CHECK-LABEL: func.func @update
  func.func @update(%scalars: tensor<16xf32>) {
    %p = graph.read @w : tensor<16x16xf32>
    // CHECK: %[[G0:.*]] = graph.read @w.grad.0 : tensor<16x16xbf16>
    // CHECK: %[[G1:.*]] = graph.read @w.grad.1 : tensor<16x16xbf16>
    %g0 = graph.read @w.grad.0 : tensor<16x16xf32>
    %g1 = graph.read @w.grad.1 : tensor<16x16xf32>
    // CHECK: %[[SUM:.*]] = graph.add %[[G0]], %[[G1]] : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %g = graph.add %g0, %g1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    // CHECK: %[[GRADIENT:.*]] = graph.cast %[[SUM]] : (tensor<16x16xbf16>) -> tensor<16x16xf32>
    // CHECK: graph.sgd %{{.*}}, %[[GRADIENT]], %{{.*}}
    %0 = graph.sgd %p, %g, %scalars {functions = #graph.functions<kernel = @update.sgd>} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
    graph.write @w, %0 : tensor<16x16xf32>
    return
  }
}

// -----

// A kernel that one function still calls as it was stays, whoever comes after.
// CHECK-LABEL: module @shared
// NONE-LABEL: module @shared
module @shared {
  graph.parameter @w : tensor<16x16xf32> from "w" at 0 bytes 1024 frozen
  // CHECK: func.func private @neg(%
  func.func private @neg(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
    %y = graph.neg %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }
  // CHECK-LABEL: func.func @micro_batch
  // CHECK: graph.kernel @neg(%{{.*}}) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  func.func @micro_batch(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %n = graph.kernel @neg(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %n : tensor<8x16xf32>
  }
  // CHECK-LABEL: func.func @evaluate
  // CHECK: graph.kernel @neg.bf16
  func.func @evaluate(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %w = graph.read @w : tensor<16x16xf32>
    %y = graph.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %n = graph.kernel @neg(%y) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %n : tensor<8x16xf32>
  }
}

// -----

// A frozen parameter that a product reads is bf16 wherever it is read.
// CHECK: graph.parameter @f {{.*}}storage = bf16
graph.parameter @f : tensor<4x4xf32> from "f" at 0 bytes 64 frozen
func.func private @double(%x: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
  %a = graph.add %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @two
// CHECK-COUNT-2: graph.read @f : tensor<4x4xbf16>
func.func @two(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = graph.read @f : tensor<4x4xf32>
  %k = graph.kernel @double(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = graph.read @f : tensor<4x4xf32>
  %p = graph.matmul %k, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %p : tensor<4x4xf32>
}

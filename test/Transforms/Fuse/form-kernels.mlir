// RUN: dsopt-opt %s -form-kernels -split-input-file | FileCheck %s

// Statistics of a row and what uses them are one loop over rows.
// CHECK-LABEL: func.func @softmax
// CHECK-NEXT: graph.kernel @kernel0(%arg0)
// CHECK-NEXT: return
// CHECK: func.func private @kernel0{{.*}} attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8, 32>}
func.func @softmax(%x: tensor<8x32x64xf32>) -> tensor<8x32x64xf32> {
  %0 = graph.reduce_max %x {axes = array<i64: 2>, keepdims} : (tensor<8x32x64xf32>) -> tensor<8x32x1xf32>
  %1 = graph.sub %x, %0 : (tensor<8x32x64xf32>, tensor<8x32x1xf32>) -> tensor<8x32x64xf32>
  %2 = graph.exp %1 : (tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  %3 = graph.reduce_sum %2 {axes = array<i64: 2>, keepdims} : (tensor<8x32x64xf32>) -> tensor<8x32x1xf32>
  %4 = graph.reciprocal %3 : (tensor<8x32x1xf32>) -> tensor<8x32x1xf32>
  %5 = graph.mul %2, %4 : (tensor<8x32x64xf32>, tensor<8x32x1xf32>) -> tensor<8x32x64xf32>
  return %5 : tensor<8x32x64xf32>
}

// -----

// Blocks and phases are not mixed; equal kernels are one function.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT: %[[A:.*]] = graph.kernel @kernel0(%arg0) {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
// CHECK-NEXT: %[[B:.*]] = graph.kernel @kernel0(%[[A]]) {graph.block = 1 : i64, graph.phase = #graph.phase<F>}
// CHECK-NEXT: graph.kernel @kernel0(%[[B]]) {graph.block = 1 : i64, graph.phase = #graph.phase<B>}
// CHECK-NOT: @kernel1
func.func @blocks(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = graph.exp %x {graph.block = 0, graph.phase = #graph.phase<F>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = graph.exp %0 {graph.block = 1, graph.phase = #graph.phase<F>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = graph.exp %1 {graph.block = 1, graph.phase = #graph.phase<B>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// -----

// Products, views and constants that are no splat stay outside; splats are cloned.
// CHECK-LABEL: func.func @outside
// CHECK: %[[C:.*]] = graph.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: %[[M:.*]] = graph.matmul
// CHECK-NEXT: %[[K:.*]] = graph.kernel @kernel0(%[[M]], %[[C]])
// CHECK-NEXT: graph.reshape %[[K]]
// CHECK-LABEL: func.func private @kernel0
// CHECK-NEXT: graph.constant dense<3.000000e+00>
func.func @outside(%x: tensor<8x2xf32>, %w: tensor<2x2xf32>) -> tensor<16xf32> {
  %c = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = graph.constant dense<3.0> : tensor<f32>
  %0 = graph.matmul %x, %w : (tensor<8x2xf32>, tensor<2x2xf32>) -> tensor<8x2xf32>
  %1 = graph.mul %0, %s : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x2xf32>
  %2 = graph.add %1, %c : (tensor<8x2xf32>, tensor<2xf32>) -> tensor<8x2xf32>
  %3 = graph.reshape %2 : (tensor<8x2xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}

// -----

// A value that only a column sum needs is computed in its loop, another is stored.
// CHECK-LABEL: func.func @columns
// CHECK: graph.kernel @kernel0(%arg0, %arg1)
// CHECK: %[[E:.*]] = graph.kernel @kernel1(%arg0)
// CHECK: graph.kernel @kernel2(%[[E]])
// CHECK: func.func private @kernel0{{.*}}#graph.iteration<columns>, graph.range = array<i64: 64>
// CHECK: func.func private @kernel1{{.*}}#graph.iteration<rows>, graph.range = array<i64: 8, 32>
// CHECK: func.func private @kernel2{{.*}}#graph.iteration<columns>, graph.range = array<i64: 64>
func.func @columns(%x: tensor<8x32x64xf32>, %y: tensor<8x32x64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<8x32x64xf32>) {
  %0 = graph.mul %x, %y : (tensor<8x32x64xf32>, tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  %1 = graph.reduce_sum %0 {axes = array<i64: 0, 1>} : (tensor<8x32x64xf32>) -> tensor<64xf32>
  %2 = graph.exp %x : (tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  %3 = graph.reduce_sum %2 {axes = array<i64: 0, 1>} : (tensor<8x32x64xf32>) -> tensor<64xf32>
  return %1, %3, %2 : tensor<64xf32>, tensor<64xf32>, tensor<8x32x64xf32>
}

// -----

// What a transpose reads comes from another kernel; a sum over the middle is alone.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-3: graph.kernel
// CHECK: func.func private @kernel0{{.*}} graph.range = array<i64: 8, 16, 2>
// CHECK-NEXT: graph.exp
// CHECK: func.func private @kernel1{{.*}} graph.range = array<i64: 8, 2, 16>
// CHECK-NEXT: graph.transpose
// CHECK: func.func private @kernel2{{.*}} graph.range = array<i64: 8, 64>
// CHECK-NEXT: graph.reduce_sum
func.func @apart(%x: tensor<8x16x2x64xf32>) -> tensor<8x64xf32> {
  %0 = graph.exp %x : (tensor<8x16x2x64xf32>) -> tensor<8x16x2x64xf32>
  %1 = graph.transpose %0 {perm = array<i64: 0, 2, 1, 3>} : (tensor<8x16x2x64xf32>) -> tensor<8x2x16x64xf32>
  %2 = graph.reduce_sum %1 {axes = array<i64: 1, 2>} : (tensor<8x2x16x64xf32>) -> tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// -----

// No kernel reads what a product computes from one of its own results.
// CHECK-LABEL: func.func @acyclic
// CHECK-NEXT: %[[E:.*]] = graph.kernel @kernel0(%arg0)
// CHECK-NEXT: %[[M:.*]] = graph.matmul %[[E]], %[[E]]
// CHECK-NEXT: graph.kernel @kernel1(%[[E]], %[[M]])
func.func @acyclic(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = graph.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = graph.matmul %0, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = graph.add %0, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// -----

// What depends on early values alone joins its reader.
// CHECK-LABEL: func.func @late
// CHECK-NEXT: %[[M:.*]] = graph.matmul
// CHECK-NEXT: graph.kernel @kernel0(%arg0, %arg1, %[[M]])
func.func @late(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = graph.sub %x, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = graph.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = graph.mul %1, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// -----

// One flat kernel for each kind of optimizer.
// CHECK-LABEL: func.func @update
// CHECK-COUNT-2: functions = #graph.functions<kernel = @update.adamw>
// CHECK: func.func private @update.adamw(%arg0: tensor<64xf32>, {{.*}}, %arg4: tensor<16xf32>)
// CHECK-SAME: attributes {graph.in_place = array<i64: 0, 2, 3>, graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>}
// CHECK-NEXT: graph.adam %arg0, %arg1, %arg2, %arg3, %arg4 {decoupled}
func.func @update(%p: tensor<10xf32>, %q: tensor<3xf32>, %s: tensor<16xf32>) -> (tensor<10xf32>, tensor<3xf32>) {
  %a:3 = graph.adam %p, %p, %p, %p, %s {decoupled} : (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<16xf32>) -> (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>)
  %b:3 = graph.adam %q, %q, %q, %q, %s {decoupled} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<16xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %a#0, %b#0 : tensor<10xf32>, tensor<3xf32>
}

// -----

// What sees norms of whole parameters has two: one for where the step goes, in the gradient's place, and one for
// the step.
// CHECK-LABEL: func.func @update
// CHECK: graph.lamb {{.*}} {functions = #graph.functions<kernel = @update.lamb, direction = @update.lamb.direction>}
// CHECK: func.func private @update.lamb.direction(%arg0: tensor<64xf32>, {{.*}}, %arg4: tensor<16xf32>)
// CHECK-SAME: attributes {graph.in_place = array<i64: 1, 2, 3>
// CHECK-NEXT: graph.lamb_direction %arg0, %arg1, %arg2, %arg3, %arg4
// CHECK: func.func private @update.lamb(%arg0: tensor<64xf32>, {{.*}}, %arg4: tensor<16xf32>)
// CHECK-SAME: attributes {graph.in_place = array<i64: 0>
// CHECK-NEXT: graph.lamb_step %arg0, %arg1, %arg4
func.func @update(%p: tensor<10xf32>, %s: tensor<16xf32>) -> tensor<10xf32> {
  %a:3 = graph.lamb %p, %p, %p, %p, %s : (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<16xf32>) -> (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>)
  return %a#0 : tensor<10xf32>
}

// -----

// What freezes its variance besides has one more for where the step goes behind that.
// CHECK-LABEL: func.func @update
// CHECK: graph.onebit_lamb {{.*}} {functions = #graph.functions<kernel = @update.onebit_lamb, direction = @update.onebit_lamb.direction, frozen = @update.onebit_lamb.frozen>}
// CHECK: func.func private @update.onebit_lamb.direction(%arg0: tensor<64xf32>, {{.*}}, %arg5: tensor<16xf32>)
// CHECK-SAME: attributes {graph.in_place = array<i64: 1, 2, 3, 4>
// CHECK-NEXT: graph.onebit_lamb_direction %arg0, %arg1, %arg2, %arg3, %arg4, %arg5
// CHECK: func.func private @update.onebit_lamb(
// CHECK-SAME: attributes {graph.in_place = array<i64: 0>
// CHECK-NEXT: graph.lamb_step %arg0, %arg1, %arg5
// CHECK: func.func private @update.onebit_lamb.frozen(
// CHECK-SAME: attributes {graph.in_place = array<i64: 1>
// CHECK-NEXT: graph.onebit_lamb_frozen %arg0, %arg1, %arg2, %arg3, %arg5
func.func @update(%p: tensor<10xf32>, %s: tensor<16xf32>) -> tensor<10xf32> {
  %a:4 = graph.onebit_lamb %p, %p, %p, %p, %p, %s : (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<16xf32>) -> (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>)
  return %a#0 : tensor<10xf32>
}

// -----

// So has what sees whole matrices.
// CHECK-LABEL: func.func @update
// CHECK: graph.muon {{.*}} {functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.2x5>}
// CHECK: func.func private @update.muon.direction(%arg0: tensor<64xf32>, {{.*}}, %arg3: tensor<16xf32>)
// CHECK-SAME: attributes {graph.in_place = array<i64: 1, 2>
// CHECK-NEXT: graph.muon_direction %arg0, %arg1, %arg2, %arg3
// CHECK: func.func private @update.muon(%arg0: tensor<64xf32>, {{.*}}, %arg3: tensor<16xf32>)
// CHECK-SAME: attributes {graph.in_place = array<i64: 0>
// CHECK-NEXT: graph.muon_step %arg0, %arg1, %arg3
func.func @update(%p: tensor<2x5xf32>, %s: tensor<16xf32>) -> tensor<2x5xf32> {
  %a:2 = graph.muon %p, %p, %p, %s {functions = #graph.functions<matrix = @muon.2x5>} : (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<16xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
  return %a#0 : tensor<2x5xf32>
}

// -----

// And what sees whole parameters, whose states no kernel has.
// CHECK-LABEL: func.func @update
// CHECK: graph.adafactor {{.*}} {functions = #graph.functions<kernel = @update.adafactor, direction = @update.adafactor.direction, matrix = @adafactor.5>}
// CHECK: func.func private @update.adafactor.direction(%arg0: tensor<64xf32>, %arg1: tensor<64xf32>, %arg2: tensor<16xf32>) -> tensor<64xf32>
// CHECK-SAME: attributes {graph.in_place = array<i64: 1>
// CHECK-NEXT: graph.adafactor_direction %arg0, %arg1, %arg2
// CHECK: func.func private @update.adafactor(
// CHECK-SAME: attributes {graph.in_place = array<i64: 0>
// CHECK-NEXT: graph.adafactor_step %arg0, %arg1, %arg2
func.func @update(%p: tensor<5xf32>, %s: tensor<16xf32>) -> tensor<5xf32> {
  %a = graph.adafactor %p, %p, %s {functions = #graph.functions<matrix = @adafactor.5>} : (tensor<5xf32>, tensor<5xf32>, tensor<16xf32>) -> tensor<5xf32>
  return %a : tensor<5xf32>
}

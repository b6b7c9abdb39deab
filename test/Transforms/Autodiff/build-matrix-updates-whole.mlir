// RUN: dsopt-opt %s -build-matrix-updates | FileCheck %s
// RUN: dsopt-opt %s -build-matrix-updates -attach-target=arch=x86-64-v3 -decompose-composites -flatten-rows -canonicalize -cse -form-kernels -blocks-to-segments | FileCheck %s --check-prefix=SEGMENT

// A rule that sees whole parameters: means over rows and columns of the last two dimensions, of less all elements.

// CHECK-LABEL: func.func private @adafactor.4x6(
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<4x6xf32>, %[[S:[a-z0-9]+]]: tensor<16xf32>, %[[R:[a-z0-9]+]]: tensor<4x1xf32> {graph.whole_state = "row_var"}, %[[C:[a-z0-9]+]]: tensor<1x6xf32> {graph.whole_state = "col_var"})
// CHECK-SAME: -> (tensor<4x6xf32>, tensor<4x1xf32>, tensor<1x6xf32>) attributes {graph.matrix_update}
// CHECK: %[[APPLIES:.*]] = graph.greater
// CHECK: %[[SQUARES:.*]] = graph.mul %[[G]], %[[G]]
// CHECK: %[[ROWS:.*]] = graph.reduce_mean %[[SQUARES]] {axes = array<i64: 1>, keepdims}
// CHECK: %[[NEW:.*]] = graph.where %[[APPLIES]], %{{.*}}, %[[R]]
// CHECK: %[[COLUMNS:.*]] = graph.reduce_mean %[[SQUARES]] {axes = array<i64: 0>, keepdims}
// CHECK: %[[NEXT:.*]] = graph.where %[[APPLIES]], %{{.*}}, %[[C]]
// CHECK: graph.reduce_mean %[[NEW]] {axes = array<i64: 0>, keepdims}
// CHECK: graph.mul %[[NEW]], %[[NEXT]]
// CHECK: return %{{.*}}, %[[NEW]], %[[NEXT]]

// CHECK-LABEL: func.func private @adafactor.2x3x4x6(
// CHECK-SAME: tensor<2x3x4x1xf32> {graph.whole_state = "row_var"}, %{{[a-z0-9]+}}: tensor<2x3x1x6xf32> {graph.whole_state = "col_var"}
// CHECK-LABEL: func.func private @adafactor.4(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<4xf32> {graph.whole_state = "variance"})
// CHECK-LABEL: func.func private @adafactor.(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<f32> {graph.whole_state = "variance"})
// CHECK-LABEL: func.func @update
// CHECK: graph.adafactor {{.*}} {functions = #graph.functions<matrix = @adafactor.4x6>}
// CHECK: graph.adafactor {{.*}} {functions = #graph.functions<matrix = @adafactor.4x6>}

// New states are made beside the old ones, and stored at the end.
// SEGMENT-LABEL: func.func private @adafactor.4x6(
// SEGMENT-SAME: %[[R:arg2]]: memref<4x1xf32> {exec.access = #exec.access<update>, graph.whole_state = "row_var"}, %[[C:arg3]]: memref<1x6xf32> {exec.access = #exec.access<update>, graph.whole_state = "col_var"}, %arg4: memref<4x6xf32> {exec.access = #exec.access<write>})
// SEGMENT-NOT: -> (%[[R]]
// SEGMENT-DAG: exec.accumulate %{{.*}} -> %[[R]]
// SEGMENT-DAG: exec.accumulate %{{.*}} -> %[[C]]
// SEGMENT-NEXT: return
func.func @update(%p: tensor<4x6xf32>, %q: tensor<2x3x4x6xf32>, %v: tensor<4xf32>, %n: tensor<f32>, %s: tensor<16xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<2x3x4x6xf32>, tensor<4xf32>, tensor<f32>) {
  %0 = graph.adafactor %p, %p, %s : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<16xf32>) -> tensor<4x6xf32>
  %1 = graph.adafactor %p, %p, %s : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<16xf32>) -> tensor<4x6xf32>
  %2 = graph.adafactor %q, %q, %s : (tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>, tensor<16xf32>) -> tensor<2x3x4x6xf32>
  %3 = graph.adafactor %v, %v, %s : (tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> tensor<4xf32>
  %4 = graph.adafactor %n, %n, %s : (tensor<f32>, tensor<f32>, tensor<16xf32>) -> tensor<f32>
  return %0, %1, %2, %3, %4 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<2x3x4x6xf32>, tensor<4xf32>, tensor<f32>
}

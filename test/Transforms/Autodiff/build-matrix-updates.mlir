// RUN: dsopt-opt %s -build-matrix-updates | FileCheck %s
// RUN: dsopt-opt %s -build-matrix-updates -attach-target=arch=x86-64-v3 -flatten-rows -canonicalize -cse -form-kernels | dsopt-opt -pass-pipeline='builtin.module(apply-precision{precision=bf16})' | FileCheck %s --check-prefix=KERNELS

// One function for each shape and length of the step. Of a tall matrix the small product is that of its columns.

// CHECK-LABEL: func.func private @muon.4x6(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {graph.matrix_update}
// CHECK: %[[N:.*]] = graph.max
// CHECK: %[[X:.*]] = graph.div %arg0, %[[N]]
// CHECK: %[[A:.*]] = graph.matmul %[[X]], %[[X]] {transpose_b} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>
// CHECK: graph.matmul %[[A]], %[[A]] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[B:.*]] = graph.add
// CHECK: graph.matmul %[[B]], %[[X]] : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-COUNT-12: graph.matmul
// CHECK-NOT: graph.matmul
// CHECK: %[[LAST:.*]] = graph.add
// CHECK-NEXT: return %[[LAST]]

// CHECK-LABEL: func.func private @muon.6x4(
// CHECK: %[[A:.*]] = graph.matmul %[[X:.*]], %[[X]] {transpose_a} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
// CHECK: graph.matmul %[[X]], %{{.*}} : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
// CHECK: %[[LENGTH:.*]] = graph.constant dense<1.22474492> : tensor<f32>
// CHECK-NEXT: graph.mul %{{.*}}, %[[LENGTH]]

// CHECK-LABEL: func.func private @muon.4x6.1(
// CHECK: %[[LENGTH:.*]] = graph.constant dense<0.489897937> : tensor<f32>
// CHECK-NEXT: graph.mul %{{.*}}, %[[LENGTH]]

// CHECK-LABEL: func.func @update
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.4x6>}
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.4x6>}
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.6x4>}
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.4x6.1>, match_rms}
// CHECK: graph.adam %{{[^{]*}} {decoupled} :

// They are computed in fp32, whatever the blocks are.
// KERNELS-LABEL: func.func private @muon.4x6(
// KERNELS-NOT: bf16
// KERNELS: return
// KERNELS: functions = #graph.functions<kernel = @update.muon, direction = @update.muon.direction, matrix = @muon.4x6>
// KERNELS: func.func private @update.muon.direction(
// KERNELS: graph.muon_direction
// KERNELS: func.func private @update.muon(
// KERNELS: graph.muon_step
func.func @update(%p: tensor<4x6xf32>, %q: tensor<6x4xf32>, %v: tensor<4xf32>, %s: tensor<16xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<6x4xf32>, tensor<4x6xf32>, tensor<4xf32>) {
  %0:2 = graph.muon %p, %p, %p, %s : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<16xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %1:2 = graph.muon %p, %p, %p, %s : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<16xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %2:2 = graph.muon %q, %q, %q, %s : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<16xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>)
  %3:2 = graph.muon %p, %p, %p, %s {match_rms} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<16xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %4:3 = graph.adam %v, %v, %v, %v, %s {decoupled} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %1#0, %2#0, %3#0, %4#0 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<6x4xf32>, tensor<4x6xf32>, tensor<4xf32>
}

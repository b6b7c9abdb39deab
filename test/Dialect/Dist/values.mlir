// RUN: dsopt-opt %s | dsopt-opt | FileCheck %s
// RUN: dsopt-opt %s -canonicalize -cse | FileCheck %s --check-prefix=SIMPLE

dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 2]

// Collectives on values are pure: equal ones are one, and what nobody reads goes.
// CHECK-LABEL: func.func @values
// CHECK: %{{.*}}:2 = dist.shared %arg0 over [tp] : tensor<4x8xf32> 2
// CHECK: dist.shared %arg0 over [tp] {graph.block = 3 : i64} : tensor<4x8xf32> 1
// CHECK: dist.shared %arg0 over [] : tensor<4x8xf32> 1
// CHECK: dist.all_reduce %{{.*}} over [tp] : tensor<4x8xf32>
// CHECK: graph.tree_add
// SIMPLE-LABEL: func.func @values
// SIMPLE: [[S:%.*]]:2 = dist.shared %arg0 over [tp]
// SIMPLE-NEXT: [[R:%.*]] = dist.all_reduce [[S]]#0 over [tp]
// SIMPLE-NEXT: [[A:%.*]] = graph.tree_add [[R]], [[S]]#1
// SIMPLE-NEXT: return [[A]]
func.func @values(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0:2 = dist.shared %x over [tp] : tensor<4x8xf32> 2
  %1 = dist.shared %x over [tp] {graph.block = 3 : i64} : tensor<4x8xf32> 1
  %2 = dist.shared %x over [] : tensor<4x8xf32> 1
  %3 = dist.all_reduce %0#0 over [tp] : tensor<4x8xf32>
  %4 = dist.all_reduce %0#0 over [tp] : tensor<4x8xf32>
  %5 = graph.tree_add %3, %0#1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

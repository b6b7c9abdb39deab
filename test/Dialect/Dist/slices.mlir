// RUN: dsopt-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// Collectives whose operand or result is a slice along the first dimension.
// CHECK-LABEL: func.func @slices
// CHECK: dist.all_gather %arg0 over [sp] : tensor<4x16xf32> to tensor<8x16xf32>
// CHECK: dist.reduce_scatter %{{.*}} over [sp] : tensor<8x16xf32> to tensor<4x16xf32>
// CHECK: dist.all_to_all %arg0 over [sp] : tensor<4x16xf32>
// CHECK: dist.all_gather %arg0 over [sp] {alike} : tensor<4x16xf32> to tensor<8x16xf32>
// CHECK: dist.shared %arg0 over [] {exact} : tensor<4x16xf32> 1
dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 2, tp = 1]
func.func @slices(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = dist.all_gather %x over [sp] : tensor<4x16xf32> to tensor<8x16xf32>
  %1 = dist.reduce_scatter %0 over [sp] : tensor<8x16xf32> to tensor<4x16xf32>
  %2 = dist.all_to_all %x over [sp] : tensor<4x16xf32>
  %4 = dist.all_gather %x over [sp] {alike} : tensor<4x16xf32> to tensor<8x16xf32>
  %3 = dist.shared %x over [] {exact} : tensor<4x16xf32> 1
  return %1 : tensor<4x16xf32>
}

// -----

dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 2, tp = 1]
func.func @rows(%x: tensor<4x16xf32>) {
  // expected-error@+1 {{has 12 rows for 2 ranks along [sp], expected an equal slice for each}}
  %0 = dist.all_gather %x over [sp] : tensor<4x16xf32> to tensor<12x16xf32>
  return
}

// -----

dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 2, tp = 1]
func.func @odd(%x: tensor<3x16xf32>) {
  // expected-error@+1 {{has 3 rows for 2 ranks along [sp], expected an equal slice for each}}
  %0 = dist.all_to_all %x over [sp] : tensor<3x16xf32>
  return
}

// -----

func.func @columns(%x: tensor<4x16xf32>) {
  // expected-error@+1 {{makes 'tensor<8x8xf32>' of 'tensor<4x16xf32>', expected types that differ in the first dimension alone}}
  %0 = dist.all_gather %x over [sp] : tensor<4x16xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @granules(%x: tensor<8x3xf32>) {
  // expected-error@+1 {{adds slices of 12 elements, expected a multiple of 64}}
  %0 = dist.reduce_scatter %x over [sp] : tensor<8x3xf32> to tensor<4x3xf32>
  return
}

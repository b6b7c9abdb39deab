// RUN: dsopt-opt %s -pass-pipeline='builtin.module(func.func(graph-to-linalg,kernel-to-loops,canonicalize,cse))' | FileCheck %s
// RUN: dsopt-opt %s -pass-pipeline='builtin.module(func.func(graph-to-linalg,canonicalize,cse,kernel-to-loops,canonicalize,cse))' | FileCheck %s

// One loop over rows; the exponentials lie in the result's own row meanwhile.
// CHECK-LABEL: func.func private @softmax(
// CHECK-SAME: %[[LO:.*]]: index, %[[HI:.*]]: index, %[[X:.*]]: memref<512xf32> {llvm.noalias}, %[[Y:.*]]: memref<512xf32> {llvm.noalias})
// CHECK-NOT: alloc
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[HI]]
// CHECK: scf.for {{.*}} iter_args
// CHECK: arith.maximumf
// CHECK: scf.for {{.*}} iter_args
// CHECK: math.exp
// CHECK: arith.addf {{.*}} fastmath<reassoc> 
// CHECK: memref.store %{{.*}}, %[[Y]]
// CHECK: arith.divf
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: memref.load %[[Y]]
// CHECK: arith.mulf %{{[^ ]+}}, %{{[^ ]+}} : f32
// CHECK: memref.store %{{.*}}, %[[Y]]
func.func private @softmax(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.reduce_max %x {axes = array<i64: 1>, keepdims} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %1 = graph.sub %x, %0 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %2 = graph.exp %1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %3 = graph.reduce_sum %2 {axes = array<i64: 1>, keepdims} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %4 = graph.reciprocal %3 : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %5 = graph.mul %2, %4 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  return %5 : tensor<8x64xf32>
}

// A cheap value is computed twice, a dear one kept in a row of scratch.
// CHECK-LABEL: func.func private @scratch(
// CHECK: memref.alloca() {{.*}} : memref<64xf32>
// CHECK-NOT: alloca
// CHECK-COUNT-1: math.tanh
// CHECK-NOT: math.tanh
// CHECK: return
func.func private @scratch(%x: tensor<8x64xf32>) -> tensor<8x1xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.tanh %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = graph.reduce_sum %0 {axes = array<i64: 1>, keepdims} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %2 = graph.sub %0, %1 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %3 = graph.mul %2, %2 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %4 = graph.reduce_sum %3 {axes = array<i64: 1>, keepdims} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  return %4 : tensor<8x1xf32>
}

// Bool takes a byte; a transpose needs the row's own indices.
// CHECK-LABEL: func.func private @bool(
// CHECK-SAME: memref<2048xf32> {llvm.noalias}, %{{.*}}: memref<2048xi8> {llvm.noalias})
// CHECK: arith.remui
// CHECK: arith.divui
// CHECK: arith.extui %{{.*}} : i1 to i8
func.func private @bool(%x: tensor<8x4x64xf32>) -> tensor<4x8x64xi1>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4, 8>} {
  %0 = graph.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<8x4x64xf32>) -> tensor<4x8x64xf32>
  %1 = graph.isnan %0 : (tensor<4x8x64xf32>) -> tensor<4x8x64xi1>
  return %1 : tensor<4x8x64xi1>
}

// Column sums: blocks of 64 rows, four at a time; no flags.
// CHECK-LABEL: func.func private @columns(
// CHECK-NOT: fastmath
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %c0 to %c102 step %c64
// CHECK: scf.for {{.*}} step %c4
// CHECK-COUNT-4: arith.addf
// CHECK-NOT: fastmath
// CHECK-LABEL: func.func private @update(
func.func private @columns(%x: tensor<102x64xf32>, %y: tensor<102x64xf32>) -> tensor<64xf32>
    attributes {graph.iterate = #graph.iteration<columns>, graph.range = array<i64: 64>} {
  %0 = graph.mul %x, %y : (tensor<102x64xf32>, tensor<102x64xf32>) -> tensor<102x64xf32>
  %1 = graph.reduce_sum %0 {axes = array<i64: 0>} : (tensor<102x64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}

// A flat kernel has no buffer for what it replaces.
// CHECK-SAME: %[[LO:.*]]: index, %[[HI:.*]]: index, %[[P:.*]]: memref<64xf32> {llvm.noalias}, %[[G:.*]]: memref<64xf32> {llvm.noalias}, %[[S:.*]]: memref<16xf32> {llvm.noalias})
// CHECK: scf.for %[[I:.*]] = %[[LO]] to %[[HI]]
// CHECK-NOT: fastmath
// CHECK: memref.store %{{.*}}, %[[P]][%[[I]]]
func.func private @update(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32>
    attributes {graph.in_place = array<i64: 0>, graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
  %0 = graph.sgd %p, %g, %s : (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// RUN: dsopt-opt %s -pass-pipeline='builtin.module(func.func(graph-to-linalg,canonicalize,cse),kernel-to-threads,func.func(canonicalize,cse))' | FileCheck %s

// A row is a block's; a total goes through the lanes of each warp, then through shared memory.
// CHECK: memref.global "private" @softmax.shared.f32 : memref<4xf32, #gpu.address_space<workgroup>> = uninitialized {alignment = 16 : i64}
// CHECK-LABEL: func.func private @softmax(
// CHECK-SAME: %[[LO:.*]]: index, %[[HI:.*]]: index, %[[X:.*]]: memref<640xf32> {llvm.noalias}, %[[Y:.*]]: memref<640xf32> {llvm.noalias})
// CHECK-SAME: gpu.known_block_size = array<i32: 96, 1, 1>
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[FIRST:.*]] = arith.addi %[[LO]], %[[BLOCK]]
// CHECK: %[[GRID:.*]] = gpu.grid_dim x
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[HI]] step %[[GRID]]
// CHECK: %[[OWN:.*]] = scf.for %{{.*}} = %[[THREAD]] to %c80 step %c96 iter_args
// CHECK: arith.maximumf
// CHECK: gpu.shuffle xor %[[OWN]]
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-COUNT-3: memref.load {{.*}}workgroup
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: math.exp
// CHECK-COUNT-5: gpu.shuffle xor
// The exponentials are computed again: threads have no row of their own.
// CHECK: scf.for
// CHECK: math.exp
// CHECK: memref.store %{{.*}}, %[[Y]]
func.func private @softmax(%x: tensor<8x80xf32>) -> tensor<8x80xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.reduce_max %x {axes = array<i64: 1>, keepdims} : (tensor<8x80xf32>) -> tensor<8x1xf32>
  %1 = graph.sub %x, %0 : (tensor<8x80xf32>, tensor<8x1xf32>) -> tensor<8x80xf32>
  %2 = graph.exp %1 : (tensor<8x80xf32>) -> tensor<8x80xf32>
  %3 = graph.reduce_sum %2 {axes = array<i64: 1>, keepdims} : (tensor<8x80xf32>) -> tensor<8x1xf32>
  %4 = graph.reciprocal %3 : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %5 = graph.mul %2, %4 : (tensor<8x80xf32>, tensor<8x1xf32>) -> tensor<8x80xf32>
  return %5 : tensor<8x80xf32>
}

// One warp needs no shared memory; what a row has once is stored once.
// CHECK-LABEL: func.func private @sums(
// CHECK-SAME: gpu.known_block_size = array<i32: 32, 1, 1>
// CHECK-NOT: gpu.barrier
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: memref.store
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @sums(%x: tensor<8x20xf32>) -> tensor<8x1xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.reduce_sum %x {axes = array<i64: 1>, keepdims} : (tensor<8x20xf32>) -> tensor<8x1xf32>
  return %0 : tensor<8x1xf32>
}

// 32 columns a block; groups of threads take blocks of 64 rows, and the first adds up what they have.
// CHECK-LABEL: func.func private @columns(
// CHECK-SAME: gpu.known_block_size = array<i32: 256, 1, 1>
// CHECK: arith.muli %{{.*}}, %c64
// CHECK: scf.for %{{.*}} to %c1000 step %c512
// CHECK: scf.for {{.*}} step %c1
// CHECK: arith.addf
// CHECK: memref.store {{.*}}workgroup
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-COUNT-7: memref.load {{.*}}workgroup
// CHECK: gpu.barrier
func.func private @columns(%x: tensor<1000x33xf32>) -> tensor<33xf32>
    attributes {graph.iterate = #graph.iteration<columns>, graph.range = array<i64: 33>} {
  %0 = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<1000x33xf32>) -> tensor<33xf32>
  return %0 : tensor<33xf32>
}

// An element is a thread's.
// CHECK-LABEL: func.func private @flat(
// CHECK: %[[AT:.*]] = arith.muli %{{.*}}, %c256
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func private @flat(%x: tensor<10xf32>) -> tensor<10xf32>
    attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 10>} {
  %0 = graph.neg %x : (tensor<10xf32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// What one stage stored by other threads is there for the next.
// CHECK-LABEL: func.func private @stages(
// CHECK-SAME: %{{.*}}: index, %{{.*}}: index, %{{.*}}: memref<320xf32> {llvm.noalias}, %{{.*}}: memref<1280xf32> {llvm.noalias}, %[[D:.*]]: memref<320xf32> {llvm.noalias}, %{{.*}}: memref<1280xf32> {llvm.noalias})
// CHECK: memref.store %{{.*}}, %[[D]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[D]]
func.func private @stages(%x: tensor<8x1x40xf32>, %w: tensor<8x4x40xf32>) -> (tensor<8x1x40xf32>, tensor<8x4x40xf32>)
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %d = graph.exp %x : (tensor<8x1x40xf32>) -> tensor<8x1x40xf32>
  %b = graph.mul %w, %d : (tensor<8x4x40xf32>, tensor<8x1x40xf32>) -> tensor<8x4x40xf32>
  return %d, %b : tensor<8x1x40xf32>, tensor<8x4x40xf32>
}

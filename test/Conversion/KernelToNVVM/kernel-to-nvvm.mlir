// RUN: dsopt-opt %s -pass-pipeline='builtin.module(func.func(convert-math-to-llvm),kernel-to-nvvm,reconcile-unrealized-casts)' | FileCheck %s

// Bare pointers; what blocks share is in address space 3; a block does a row at a time.
// CHECK: llvm.mlir.global private @sum.shared.f32() {addr_space = 3 : i32} : !llvm.array<2 x f32>
memref.global "private" @sum.shared.f32 : memref<2xf32, #gpu.address_space<workgroup>> = uninitialized
// CHECK: llvm.func @update.sum(%{{.*}}: i64, %{{.*}}: i64, %[[X:.*]]: !llvm.ptr {llvm.noalias}) attributes {exec.per_block = 1 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>}
func.func private @update.sum(%lo: index, %hi: index, %x: memref<64xf32> {llvm.noalias})
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 1>, gpu.known_block_size = array<i32: 64, 1, 1>} {
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  // CHECK: nvvm.read.ptx.sreg.tid.x
  %thread = gpu.thread_id x
  %own = memref.load %x[%thread] : memref<64xf32>
  // CHECK: nvvm.shfl.sync bfly
  %other, %valid = gpu.shuffle xor %own, %c16, %c32 : f32
  // CHECK: llvm.intr.sqrt
  %root = math.sqrt %other : f32
  %shared = memref.get_global @sum.shared.f32 : memref<2xf32, #gpu.address_space<workgroup>>
  %c0 = arith.constant 0 : index
  // CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
  memref.store %root, %shared[%c0] : memref<2xf32, #gpu.address_space<workgroup>>
  // CHECK: nvvm.barrier
  gpu.barrier
  %total = memref.load %shared[%c0] : memref<2xf32, #gpu.address_space<workgroup>>
  memref.store %total, %x[%thread] : memref<64xf32>
  return
}

// Of columns a warp's, of elements one for each thread.
// CHECK: llvm.func @sums({{.*}} attributes {exec.per_block = 32 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>}
func.func private @sums(%lo: index, %hi: index, %x: memref<64xf32>)
    attributes {graph.iterate = #graph.iteration<columns>, graph.range = array<i64: 64>, gpu.known_block_size = array<i32: 256, 1, 1>} {
  return
}
// CHECK: llvm.func @elements({{.*}} attributes {exec.per_block = 128 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>}
func.func private @elements(%lo: index, %hi: index, %x: memref<64xf32>)
    attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>, gpu.known_block_size = array<i32: 128, 1, 1>} {
  return
}

// RUN: dsopt-opt %s -pass-pipeline='builtin.module(builtin.module(kernel-to-llvm),kernel-to-llvm)' | FileCheck %s

// The body gets bare pointers; the kernel's name is the
// function of the ABI's type that loads them.
// CHECK: llvm.func internal @kernel0.body({{.*}}: i64, {{.*}}: i64, {{.*}}: !llvm.ptr) attributes {no_inline}
// CHECK: llvm.func @kernel0(%[[LO:.*]]: i64, %[[HI:.*]]: i64, %[[ARGS:.*]]: !llvm.ptr)
// CHECK: llvm.call @kernel0.body
func.func private @kernel0(%lo: index, %hi: index, %x: memref<8xf32>) attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %x[%lo] : memref<8xf32>
  return
}

// Integers round to bf16 where the target has no instruction for it, and there is nothing but its bits.
// CHECK: module @v3
// CHECK: llvm.func internal @round.body(
// CHECK-NOT: llvm.fptrunc
// CHECK: llvm.lshr
// CHECK: llvm.store %{{.*}} : i16
// CHECK: module @constants
// CHECK: llvm.mlir.constant(16256 : i16) : i16
// CHECK: llvm.mlir.constant(dense<16384> : vector<4xi16>) : vector<4xi16>
// CHECK-NOT: : bf16
// CHECK: module @bf16
// CHECK: llvm.func internal @round.body(
// CHECK: llvm.fptrunc %{{.*}} : f32 to bf16
module @v3 attributes {dsopt.target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+avx2"]>} {
  func.func private @round(%lo: index, %hi: index, %x: memref<8xf32>, %y: memref<8xbf16>) attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 8>} {
    %0 = memref.load %x[%lo] : memref<8xf32>
    %1 = arith.truncf %0 : f32 to bf16
    memref.store %1, %y[%lo] : memref<8xbf16>
    return
  }
}
module @constants attributes {dsopt.target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+avx2"]>} {
  func.func private @constants(%lo: index, %hi: index, %x: memref<8xbf16>, %y: memref<2xvector<4xbf16>>) attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 8>} {
    %0 = arith.constant 1.0 : bf16
    %1 = arith.constant dense<2.0> : vector<4xbf16>
    memref.store %0, %x[%lo] : memref<8xbf16>
    memref.store %1, %y[%lo] : memref<2xvector<4xbf16>>
    return
  }
}
module @bf16 attributes {dsopt.target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 1, vector_bits = 512, features = ["+avx2", "+avx512bf16"]>} {
  func.func private @round(%lo: index, %hi: index, %x: memref<8xf32>, %y: memref<8xbf16>) attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 8>} {
    %0 = memref.load %x[%lo] : memref<8xf32>
    %1 = arith.truncf %0 : f32 to bf16
    memref.store %1, %y[%lo] : memref<8xbf16>
    return
  }
}

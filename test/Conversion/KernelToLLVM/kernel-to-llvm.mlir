// RUN: dsopt-opt %s -kernel-to-llvm | FileCheck %s

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

// RUN: dsopt-opt %s -pass-pipeline="builtin.module(builtin.module(lower-kernels))" | FileCheck %s

// The pointers are loaded by a function of the ABI's type; what is in no module of kernels stays.
// CHECK-LABEL: func.func @other
// CHECK: llvm.func internal @kernel0.body(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias})
// CHECK-SAME: no_inline
// CHECK-NOT: llvm.call
// CHECK: llvm.br {{.*}}loop_annotation
// CHECK: llvm.func @kernel0(%[[LO:.*]]: i64, %[[HI:.*]]: i64, %[[ARGS:.*]]: !llvm.ptr)
// CHECK: %[[X:.*]] = llvm.load
// CHECK: %[[Y:.*]] = llvm.load
// CHECK: llvm.call @kernel0.body(%[[LO]], %[[HI]], %[[X]], %[[Y]])
func.func @other(%x: memref<8xf32>) { return }
module @kernels {
  func.func nested @kernel0(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
      attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
    %0 = graph.exp %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return %0 : tensor<8x64xf32>
  }
}

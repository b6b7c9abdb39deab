// RUN: dsopt-opt %s -unnest-kernels | FileCheck %s

// A declaration that is there already is not needed twice.
// CHECK: llvm.func @sinf(f32) -> f32
// CHECK-NOT: module
// CHECK-NOT: @sinf(
// CHECK: llvm.func @kernel0(%{{.*}}: i64
llvm.func @sinf(f32) -> f32
module {
  llvm.func @sinf(f32) -> f32
  llvm.func @kernel0(%lo: i64, %hi: i64, %args: !llvm.ptr) { llvm.return }
}

// RUN: dsopt-opt %s -split-input-file -pass-pipeline="builtin.module(func.func(product-to-loops,canonicalize,cse))" | FileCheck %s

// Twelve rows of two blocks, 40 columns of three vectors, of which the last has eight: one panel, which is all of b
// and read where it lies.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @small
  // CHECK-SAME: (%[[LOW:.*]]: index, %[[HIGH:.*]]: index, %[[A:.*]]: memref<36xf32> {llvm.noalias}, %[[B:.*]]: memref<120xf32> {llvm.noalias}, %[[C:.*]]: memref<480xf32> {llvm.noalias})
  // CHECK-DAG: %[[MASK:.*]] = arith.constant dense<[true, true, true, true, true, true, true, true, false
  // CHECK-NOT: alloca
  // CHECK-NOT: memref.prefetch
  // The blocks of the range, each six rows by three vectors.
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: %[[SUMS:.*]]:18 = scf.for %[[K:.*]] = %{{.*}} iter_args(
  // CHECK: vector.load %[[B]][{{.*}}] : memref<120xf32>, vector<16xf32>
  // CHECK: vector.load %[[B]]
  // CHECK: vector.maskedload %[[B]][{{.*}}], %[[MASK]]
  // One broadcast at a time.
  // CHECK: %[[X:.*]] = memref.load %[[A]]
  // CHECK-NEXT: %[[F:.*]] = vector.broadcast %[[X]] : f32 to vector<16xf32>
  // CHECK-NEXT: vector.fma %[[F]]
  // CHECK-NEXT: vector.fma %[[F]]
  // CHECK-NEXT: vector.fma %[[F]]
  // CHECK-COUNT-15: vector.fma
  // CHECK: scf.yield
  // CHECK-NEXT: llvm.loop_annotation
  func.func nested @small(index, index, memref<36xf32>, memref<120xf32>, memref<480xf32>) attributes
      {exec.product = #exec.product<m = 12, n = 40, k = 3, operands = f32, result = f32, lda = 3, ldb = 40, ldc = 40>, graph.range = array<i64: 6>}
}

// -----

// A result that no cache holds: lines of the block of rows after this one are asked for, since 32 elements of the
// contraction take less than a line does.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: func.func nested @short
  // CHECK-SAME: %[[C:[a-z0-9]*]]: memref<786432xf32>
  // The rows' first element, eight rows of 48 further on.
  // CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %c8
  // CHECK: %[[AT:.*]] = arith.muli %[[NEXT]], %c48
  // CHECK: memref.prefetch %[[C]][{{.*}}], read, locality<3>
  // CHECK-COUNT-23: memref.prefetch %[[C]]
  // CHECK-NOT: memref.prefetch %[[C]]
  // CHECK: vector.fma
  func.func nested @short(index, index, memref<524288xf32>, memref<1536xf32>, memref<786432xf32>) attributes
      {exec.product = #exec.product<m = 16384, n = 48, k = 32, operands = f32, result = f32, lda = 32, ldb = 48, ldc = 48>, graph.range = array<i64: 6144>}
}

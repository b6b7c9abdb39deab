// RUN: dsopt-opt %s -split-input-file -segments-to-llvm | FileCheck %s

// Sizes, types, whether products of bf16 are widened, causal, where rows begin, shards and those of entries, heads of k, pairs, what is fp32, threads, the scale's bits; strides of q, k, v, result and of four gradients; the mask's.
// CHECK-DAG: llvm.mlir.global external constant @attention.0(dense<[2, 4, 5, 7, 16, 8, 0, 0, 0, 1, 2, 0, 0, 1, 0, 1, 1, 0, 4, 8, 1, 0, 0, 3, 4598175219545276416, 640, 16, 64, 448, 112, 16, 224, 56, 8, 160, 40, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]> : tensor<54xi64>)
// CHECK-DAG: llvm.mlir.global external constant @attention.1(dense<[2, 4, 5, 7, 16, 8, 0, 0, 0, 0, 2, 0, 0, 1, 0, 1, 1, 0, 4, 8, 0, 1, 1, 3, 4607182418800017408, 640, 16, 64, 448, 112, 16, 224, 56, 8, 160, 40, 8, 160, 40, 8, 640, 16, 64, 448, 112, 16, 224, 56, 8, 14, 7, 0, 0, 1]> : tensor<54xi64>)
// CHECK-DAG: llvm.func @dsopt_rt_attention(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr)

// CHECK-LABEL: llvm.func @block0.F(
// CHECK-SAME: %[[RT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64)
func.func private @block0.F(%q: memref<2x4x5x16xf32, strided<[640, 16, 64, 1]>>, %k: memref<2x4x7x16xf32>, %v: memref<2x4x7x8xf32>, %m: memref<2x1x1x7xf32>, %r: memref<2x4x5x8xf32>, %l: memref<2x4x5xf32>, %w: memref<4000000xi8>)
    attributes {exec.segment} {
  // CHECK: %[[D:.*]] = llvm.mlir.addressof @attention.0
  // CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
  // CHECK: llvm.call @dsopt_rt_attention(%[[RT]], %[[D]], %{{.*}}, %{{.*}}, %{{.*}}, %[[NULL]],
  exec.attention %q, %k, %v, %r, %l, %w {causal, scale = 0.25 : f64, threads = 3 : i64} : memref<2x4x5x16xf32, strided<[640, 16, 64, 1]>>, memref<2x4x7x16xf32>, memref<2x4x7x8xf32>, memref<2x4x5x8xf32>, memref<2x4x5xf32>, memref<4000000xi8>
  // CHECK: llvm.mlir.addressof @attention.1
  // CHECK: llvm.call @dsopt_rt_attention_grad(
  exec.attention_grad %q, %k, %v, %m, %r, %l, %r, %q, %k, %v, %w {scale = 1.0 : f64, threads = 3 : i64} : memref<2x4x5x16xf32, strided<[640, 16, 64, 1]>>, memref<2x4x7x16xf32>, memref<2x4x7x8xf32>, memref<2x1x1x7xf32>, memref<2x4x5x8xf32>, memref<2x4x5xf32>, memref<2x4x5x8xf32>, memref<2x4x5x16xf32, strided<[640, 16, 64, 1]>>, memref<2x4x7x16xf32>, memref<2x4x7x8xf32>, memref<4000000xi8>
  return
}

// -----

// A processor that multiplies pairs of bf16 at twice fp32's rate,
module @pairs attributes {dsopt.target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver4", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16"]>} {
  // CHECK: llvm.mlir.global external constant @attention.0(dense<[1, 1, 2, 2, 4, 4, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1,
  func.func private @block0.F(%q: memref<1x1x2x4xbf16>, %l: memref<1x1x2xf32>, %w: memref<4000000xi8>) attributes {exec.segment} {
    exec.attention %q, %q, %q, %q, %l, %w {scale = 0.5 : f64, threads = 1 : i64} : memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2xf32>, memref<4000000xi8>
    return
  }
}

// -----

// one of Intel's that has a slower instruction for it,
module @slow_pairs attributes {dsopt.target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "emeraldrapids", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16"]>} {
  // CHECK: llvm.mlir.global external constant @attention.0(dense<[1, 1, 2, 2, 4, 4, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1,
  func.func private @block0.F(%q: memref<1x1x2x4xbf16>, %l: memref<1x1x2xf32>, %w: memref<4000000xi8>) attributes {exec.segment} {
    exec.attention %q, %q, %q, %q, %l, %w {scale = 0.5 : f64, threads = 1 : i64} : memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2xf32>, memref<4000000xi8>
    return
  }
}

// -----

// with AMX too, whose tiles attention does not use,
module @tiles attributes {dsopt.target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 1, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+amx-tile", "+amx-bf16"]>} {
  // CHECK: llvm.mlir.global external constant @attention.0(dense<[1, 1, 2, 2, 4, 4, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1,
  func.func private @block0.F(%q: memref<1x1x2x4xbf16>, %l: memref<1x1x2xf32>, %w: memref<4000000xi8>) attributes {exec.segment} {
    exec.attention %q, %q, %q, %q, %l, %w {scale = 0.5 : f64, threads = 1 : i64} : memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2xf32>, memref<4000000xi8>
    return
  }
}

// -----

// and one without.
module @none attributes {dsopt.target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+avx2", "+fma"]>} {
  // CHECK: llvm.mlir.global external constant @attention.0(dense<[1, 1, 2, 2, 4, 4, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1,
  func.func private @block0.F(%q: memref<1x1x2x4xbf16>, %l: memref<1x1x2xf32>, %w: memref<4000000xi8>) attributes {exec.segment} {
    exec.attention %q, %q, %q, %q, %l, %w {scale = 0.5 : f64, threads = 1 : i64} : memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2x4xbf16>, memref<1x1x2xf32>, memref<4000000xi8>
    return
  }
}

// -----

// Rows of the second of two shards, as they are on each rank, behind what the first one's columns have given; each
// of two heads of k and v is read by two. Sums are fp32 until the last.
// CHECK: llvm.mlir.global external constant @attention.0(dense<[1, 4, 2, 2, 4, 4, 1, 1, 0, 1, 0, 2, 2, 2, 1, 1, 1, 0, 2, 8, 0, 0, 0, 1,
func.func private @block0.F(%q: memref<1x4x2x4xbf16>, %k: memref<1x2x2x4xbf16>, %p: memref<1x4x2x4xf32>, %l: memref<1x4x2xf32>, %m: memref<1x4x2xf32>, %w: memref<4000000xi8>) attributes {exec.segment} {
  // CHECK: llvm.call @dsopt_rt_attention(
  exec.attention_part %q, %k, %k, %p, %l, %q, %m, %w {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 1, 1>, causal, shards = 2 : i64, distance = 1 : i64, entries = 1 : i64, group = 1 : i64, begin = 0 : i64, pairs = 8 : i64, scale = 0.5 : f64, threads = 1 : i64} : memref<1x4x2x4xbf16>, memref<1x2x2x4xbf16>, memref<1x2x2x4xbf16>, memref<1x4x2x4xf32>, memref<1x4x2xf32>, memref<1x4x2x4xbf16>, memref<1x4x2xf32>, memref<4000000xi8>
  return
}

// -----

// Of rows of several sequences: slots, heads, rows, positions, sizes; one shard of entries; heads of keys; strides of the rows, and the mask's.
// CHECK-LABEL: llvm.mlir.global external constant @cached_attention.0
// CHECK-SAME: dense<[3, 4, 5, 7, 16, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 4,
// CHECK: llvm.call @dsopt_rt_cached_attention(
func.func private @block0.E(%q: memref<1x4x5x16xf32, strided<[640, 16, 64, 1]>>, %k: memref<1x2x5x16xf32>, %v: memref<1x2x5x8xf32>, %rows: memref<5xi64>, %m: memref<1x1x5x7xf32>, %ks: memref<3x2x7x16xf32>, %vs: memref<3x2x7x8xf32>, %r: memref<1x4x5x8xf32>, %w: memref<4000000xi8>)
    attributes {exec.segment} {
  exec.cached_attention %q, %k, %v, %rows, %rows, %m, %ks, %vs, %r, %w {scale = 0.25 : f64, threads = 3 : i64} : memref<1x4x5x16xf32, strided<[640, 16, 64, 1]>>, memref<1x2x5x16xf32>, memref<1x2x5x8xf32>, memref<5xi64>, memref<5xi64>, memref<1x1x5x7xf32>, memref<3x2x7x16xf32>, memref<3x2x7x8xf32>, memref<1x4x5x8xf32>, memref<4000000xi8>
  return
}

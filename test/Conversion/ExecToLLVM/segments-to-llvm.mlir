// RUN: dsopt-opt %s -segments-to-llvm | FileCheck %s

// CHECK-DAG: llvm.func @dsopt_rt_launch(!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr)
// CHECK-DAG: llvm.func @dsopt_rt_gemm(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64)
// m, n, k, transposes, rows' lengths, types; then the batch and its strides.
// CHECK-DAG: llvm.mlir.global external constant @product.0(dense<[8, 3, 4, 0, 0, 4, 3, 3, 0, 0, 1, 1, 1, 2, 0, 0, 0, 32, 0, 0, 0, 12, 0, 0, 0, 24]> : tensor<26xi64>)
// CHECK-DAG: llvm.mlir.global external constant @product.3(dense<[16, 16, 4, 0, 1, 24, 24, 16, 0, 0, 1, 1, 5, 2, 0, 0, 384, 4, 0, 0, 384, 4, 0, 0, 512, 256]> : tensor<26xi64>)
// CHECK-DAG: llvm.mlir.global external constant @product.4(dense<[4, 8, 6, 1, 1, 4, 6, 8, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]> : tensor<26xi64>)
// A single line keeps the distance that its type says: it may be one of a whole product's.
// CHECK-DAG: llvm.mlir.global external constant @product.{{[0-9]}}(dense<[1, 5, 3, 0, 0, 24, 5, 8, 0, 0, {{.*}}]> : tensor<26xi64>)
// Rows and their width, rows of the result, bytes of an index, types, whether the result takes sums.
// CHECK-DAG: llvm.mlir.global external constant @[[SCATTER:scatter_add.[0-9]]](dense<[8, 3, 5, 4, 0, 0, 0]> : tensor<7xi64>)
// CHECK-DAG: llvm.mlir.global external constant @[[ROUNDS:scatter_add.[0-9]]](dense<[8, 3, 5, 4, 1, 1, 0]> : tensor<7xi64>)
// CHECK-DAG: llvm.mlir.global external constant @[[SUMS:scatter_add.[0-9]]](dense<[8, 3, 5, 4, 0, 0, 1]> : tensor<7xi64>)
// CHECK-DAG: llvm.func @dsopt_rt_scatter_add(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64)
// A kernel of a module of its own is declared; a model's parameter gives way.
// CHECK-DAG: llvm.func @kernel1(i64, i64, !llvm.ptr){{$}}
// CHECK-DAG: graph.parameter @"kernel1~"
// CHECK-DAG: llvm.func @dsopt_rt_accumulate(!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64, i64)

// CHECK-DAG: llvm.mlir.global external constant @const_0(dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>) {{.*}}alignment = 64 : i64{{.*}} : !llvm.array<4 x f32>
// CHECK-DAG: llvm.mlir.global external constant @const_1(dense<[1, 0, 1]> : tensor<3xi8>) {{.*}} : !llvm.array<3 x i8>
// CHECK-DAG: llvm.mlir.global external constant @const_2(dense<7> : tensor<6xi64>) {{.*}} : !llvm.array<6 x i64>
graph.parameter @kernel1 : tensor<8xf32> from "m" at 0 bytes 32
memref.global "private" constant @const_0 : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
memref.global "private" constant @const_1 : memref<3xi1> = dense<[true, false, true]>
memref.global "private" constant @const_2 : memref<2x3xi64> = dense<7>

llvm.func @kernel0(%lo: i64, %hi: i64, %args: !llvm.ptr) {
  llvm.return
}

// Buffers are loaded, scratch is an offset, a launch gets the kernel and an array.
// CHECK-LABEL: llvm.func @block0.F(
// CHECK-SAME: %[[RT:.*]]: !llvm.ptr, %[[BUFFERS:.*]]: !llvm.ptr, %[[TEMP:.*]]: !llvm.ptr, %[[ACC:.*]]: i64)
// CHECK-SAME: exec.flops = 3 : i64
func.func private @block0.F(%x: memref<2x8x4xf32>, %w: memref<2x4x3xf32>, %y: memref<48xf32>)
    attributes {exec.segment, exec.temp_bytes = 256 : i64, exec.flops = 3 : i64} {
  // CHECK: %[[ARRAY:.*]] = llvm.alloca %{{.*}} x !llvm.ptr
  // CHECK: %[[SX:.*]] = llvm.getelementptr %[[BUFFERS]][0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  // CHECK: %[[X:.*]] = llvm.load %[[SX]]
  // CHECK: %[[SW:.*]] = llvm.getelementptr %[[BUFFERS]][1]
  // CHECK: %[[W:.*]] = llvm.load %[[SW]]
  // CHECK: %[[Y:.*]] = llvm.load
  // CHECK: %[[O:.*]] = llvm.mlir.constant(64 : i64)
  // CHECK: %[[T:.*]] = llvm.getelementptr %[[TEMP]][%[[O]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %t = exec.temp at 64 : memref<2x8x3xf32>
  // CHECK: %[[PRODUCT:.*]] = llvm.mlir.addressof @product.0
  // CHECK: %[[NONE:.*]] = llvm.mlir.zero : !llvm.ptr
  // CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i64) : i64
  // CHECK: llvm.call @dsopt_rt_gemm(%[[RT]], %[[PRODUCT]], %[[X]], %[[W]], %[[T]], %[[NONE]], %[[ZERO]])
  exec.gemm %x, %w -> %t : memref<2x8x4xf32>, memref<2x4x3xf32> -> memref<2x8x3xf32>
  %v = exec.view %t : memref<2x8x3xf32> to memref<48xf32>
  // CHECK: %[[S0:.*]] = llvm.getelementptr %[[ARRAY]][0]
  // CHECK: llvm.store %[[T]], %[[S0]]
  // CHECK: %[[S1:.*]] = llvm.getelementptr %[[ARRAY]][1]
  // CHECK: llvm.store %[[Y]], %[[S1]]
  // CHECK: %[[KERNEL:.*]] = llvm.mlir.addressof @kernel0
  // CHECK: %[[RANGE:.*]] = llvm.mlir.constant(48 : i64)
  // CHECK: %[[GRAIN:.*]] = llvm.mlir.constant(1 : i64)
  // CHECK: llvm.call @dsopt_rt_launch(%[[RT]], %[[KERNEL]], %[[RANGE]], %[[GRAIN]], %[[ARRAY]])
  exec.launch @kernel0 range 48 grain 1 (%v) -> (%y) : memref<48xf32> -> memref<48xf32>
  return
}

// Gradients obey the run's flag.
// CHECK-LABEL: llvm.func @block0.W(
// CHECK-SAME: %[[RT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[ACC:.*]]: i64)
func.func private @block0.W(%x: memref<8x4xf32>, %d: memref<8x3xf32>, %i: memref<8xi32>, %g: memref<4x3xf32>,
                            %e: memref<5x3xf32>, %h: memref<8x3xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
  // CHECK: llvm.call @dsopt_rt_gemm({{.*}}, %[[ACC]])
  exec.gemm %x, %d -> %g {into_gradient, transpose_a} : memref<8x4xf32>, memref<8x3xf32> -> memref<4x3xf32>
  // CHECK: %[[DESCRIPTOR:.*]] = llvm.mlir.addressof @[[SCATTER]]
  // CHECK: %[[NULL:.*]] = llvm.mlir.zero
  // CHECK: llvm.call @dsopt_rt_scatter_add(%[[RT]], %[[DESCRIPTOR]], {{.*}}, {{.*}}, {{.*}}, %[[NULL]], %[[ACC]])
  exec.scatter_add %d, %i -> %e {into_gradient} : memref<8x3xf32>, memref<8xi32> -> memref<5x3xf32>
  // CHECK: %[[E:.*]] = llvm.mlir.constant(24 : i64)
  // CHECK: %[[F32:.*]] = llvm.mlir.constant(0 : i64)
  // CHECK: llvm.call @dsopt_rt_accumulate(%[[RT]], %[[E]], {{.*}}, {{.*}}, %[[F32]], %[[ACC]])
  exec.accumulate %d -> %h : memref<8x3xf32> -> memref<8x3xf32>
  return
}

// Strides: heads side by side in a row, a result whose columns are contiguous, equal products once.
// CHECK-LABEL: llvm.func @block1.F(
// CHECK: llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-COUNT-2: llvm.mlir.addressof @product.3
// CHECK: llvm.mlir.addressof @product.4
func.func private @block1.F(%x: memref<5x16x24xf32>, %s: memref<5x2x16x16xf32>, %a: memref<8x6xf32>, %b: memref<6x4xf32>,
                            %c: memref<4x8xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
  %q = exec.view %x : memref<5x16x24xf32> to memref<5x2x16x4xf32, strided<[384, 4, 24, 1]>>
  %k = exec.view %x : memref<5x16x24xf32> to memref<5x2x4x16xf32, strided<[384, 4, 1, 24], offset: 8>>
  exec.gemm %q, %k -> %s : memref<5x2x16x4xf32, strided<[384, 4, 24, 1]>>, memref<5x2x4x16xf32, strided<[384, 4, 1, 24], offset: 8>> -> memref<5x2x16x16xf32>
  exec.gemm %q, %k -> %s : memref<5x2x16x4xf32, strided<[384, 4, 24, 1]>>, memref<5x2x4x16xf32, strided<[384, 4, 1, 24], offset: 8>> -> memref<5x2x16x16xf32>
  %t = exec.view %c : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
  exec.gemm %a, %b -> %t : memref<8x6xf32>, memref<6x4xf32> -> memref<8x4xf32, strided<[1, 8]>>
  return
}

// Products by kernels of their own: a, b, c, and a pointer to the flag; for the loss an array of kernels and ranges.
// CHECK-LABEL: llvm.func @block4.B(
// CHECK-SAME: %[[RT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[ACC:.*]]: i64)
func.func private @block4.B(%x: memref<8x4xf32>, %d: memref<8x3xf32>, %g: memref<4x3xf32>, %l: memref<8xi32>, %r: memref<f32>,
                            %s: memref<96xi8>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
  // CHECK: %[[ARRAY:.*]] = llvm.alloca %{{.*}} x !llvm.ptr
  // CHECK: %[[FLAG:.*]] = llvm.alloca %{{.*}} x i64
  // CHECK: llvm.store %[[ACC]], %[[FLAG]]
  // CHECK: %[[S3:.*]] = llvm.getelementptr %[[ARRAY]][3]
  // CHECK: llvm.store %[[FLAG]], %[[S3]]
  // CHECK: %[[KERNEL:.*]] = llvm.mlir.addressof @kernel0
  // CHECK: %[[RANGE:.*]] = llvm.mlir.constant(5 : i64)
  // CHECK: llvm.call @dsopt_rt_launch(%[[RT]], %[[KERNEL]], %[[RANGE]], %{{.*}}, %[[ARRAY]])
  exec.gemm %x, %d -> %g by <@kernel0 range 5> {into_gradient, transpose_a} : memref<8x4xf32>, memref<8x3xf32> -> memref<4x3xf32>
  // CHECK: %[[LOGITS:.*]] = llvm.mlir.addressof @kernel0
  // CHECK: %[[RANGE:.*]] = llvm.mlir.constant(7 : i64)
  // CHECK: %[[NONE:.*]] = llvm.mlir.zero
  // CHECK: %[[S0:.*]] = llvm.getelementptr %[[ARRAY]][0]
  // CHECK: llvm.store %[[LOGITS]], %[[S0]]
  // CHECK: %[[S1:.*]] = llvm.getelementptr %[[ARRAY]][1]
  // CHECK: llvm.store %[[RANGE]], %[[S1]]
  // CHECK: %[[S2:.*]] = llvm.getelementptr %[[ARRAY]][2]
  // CHECK: llvm.store %[[NONE]], %[[S2]]
  // CHECK: llvm.getelementptr %[[ARRAY]][11]
  // CHECK: llvm.call @dsopt_rt_linear_nll(%[[RT]], {{.*}}, %[[ARRAY]])
  exec.linear_nll %x, %g, %l, %r, %r, %s {ignore_index = -100 : i64, kernels = [#exec.product_kernel<@kernel0 range 7>, unit, unit, unit, unit, unit], operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0, 0, 0, 1>} : memref<8x4xf32>, memref<4x3xf32>, memref<8xi32>, memref<f32>, memref<f32>, memref<96xi8>
  // CHECK: %[[NULL:.*]] = llvm.mlir.zero
  // CHECK: llvm.call @dsopt_rt_linear_nll(%[[RT]], {{.*}}, %{{.*}})
  exec.linear_nll %x, %g, %l, %r, %r, %s {ignore_index = -100 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0, 0, 0, 1>} : memref<8x4xf32>, memref<4x3xf32>, memref<8xi32>, memref<f32>, memref<f32>, memref<96xi8>
  return
}

// Gradients in bf16: the order of rows needs scratch, a value is rounded as it is added.
// CHECK-LABEL: llvm.func @block2.W(
// CHECK-SAME: %[[RT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[TEMP:.*]]: !llvm.ptr, %[[ACC:.*]]: i64)
func.func private @block2.W(%d: memref<8x3xbf16>, %v: memref<8x3xf32>, %i: memref<8xi32>, %e: memref<5x3xbf16>,
                            %h: memref<8x3xbf16>) attributes {exec.segment, exec.temp_bytes = 64 : i64} {
  // CHECK: %[[SCRATCH:.*]] = llvm.getelementptr %[[TEMP]]
  %w = exec.temp at 0 : memref<64xi8>
  // CHECK: %[[DESCRIPTOR:.*]] = llvm.mlir.addressof @[[ROUNDS]]
  // CHECK: llvm.call @dsopt_rt_scatter_add(%[[RT]], %[[DESCRIPTOR]], {{.*}}, {{.*}}, {{.*}}, %[[SCRATCH]], %[[ACC]])
  exec.scatter_add %d, %i -> %e workspace %w {into_gradient} : memref<8x3xbf16>, memref<8xi32> -> memref<5x3xbf16> workspace memref<64xi8>
  // CHECK: %[[BF16:.*]] = llvm.mlir.constant(1 : i64)
  // CHECK: llvm.call @dsopt_rt_accumulate(%[[RT]], {{.*}}, {{.*}}, {{.*}}, %[[BF16]], %[[ACC]])
  exec.accumulate %v -> %h : memref<8x3xf32> -> memref<8x3xbf16>
  return
}

// Sums are added whatever the run's flag says.
// CHECK-LABEL: llvm.func @block4.W(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[TEMP:.*]]: !llvm.ptr, %{{.*}}: i64)
func.func private @block4.W(%d: memref<8x3xf32>, %i: memref<8xi32>, %e: memref<5x3xf32>) attributes {exec.segment, exec.temp_bytes = 64 : i64} {
  // CHECK: %[[SCRATCH:.*]] = llvm.getelementptr %[[TEMP]]
  %w = exec.temp at 0 : memref<64xi8>
  // CHECK: %[[DESCRIPTOR:.*]] = llvm.mlir.addressof @[[SUMS]]
  // CHECK: %[[NO:.*]] = llvm.mlir.constant(0 : i64)
  // CHECK: llvm.call @dsopt_rt_scatter_add(%{{.*}}, %[[DESCRIPTOR]], {{.*}}, {{.*}}, {{.*}}, %[[SCRATCH]], %[[NO]])
  exec.scatter_add %d, %i -> %e workspace %w {sums} : memref<8x3xf32>, memref<8xi32> -> memref<5x3xf32> workspace memref<64xi8>
  return
}

// CHECK-LABEL: llvm.func @block5.F(
func.func private @block5.F(%x: memref<1x3xf32, strided<[24, 1]>>, %w: memref<3x5xf32>, %y: memref<1x5xf32, strided<[8, 1]>>) attributes {exec.segment} {
  exec.gemm %x, %w -> %y : memref<1x3xf32, strided<[24, 1]>>, memref<3x5xf32> -> memref<1x5xf32, strided<[8, 1]>>
  return
}

// CHECK-LABEL: llvm.func @block3.F(
// CHECK: %[[KERNEL:.*]] = llvm.mlir.addressof @kernel1
// CHECK: llvm.call @dsopt_rt_launch(%{{.*}}, %[[KERNEL]],
module @kernels {
  llvm.func @kernel1(%lo: i64, %hi: i64, %args: !llvm.ptr) { llvm.return }
}
func.func private @block3.F(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.segment} {
  exec.launch @kernels::@kernel1 range 4 grain 1 (%x) -> (%y) : memref<4xf32> -> memref<4xf32>
  exec.launch @kernels::@kernel1 range 4 grain 1 (%y) -> (%x) : memref<4xf32> -> memref<4xf32>
  return
}

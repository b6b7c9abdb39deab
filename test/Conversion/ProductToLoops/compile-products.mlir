// RUN: dsopt-opt %s -split-input-file -compile-products | FileCheck %s

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
// CHECK-LABEL: module @one attributes
module @one attributes {dsopt.target = #target} {
  // CHECK: module @kernels
  // 40 rows are five blocks, 100 columns seven vectors: three panels. What only its operands' names tell apart is one.
  // CHECK-NEXT: func.func nested @product0(index, index, memref<1200xf32>, memref<3000xf32>, memref<4000xf32>) attributes {exec.product = #exec.product<m = 40, n = 100, k = 30, operands = f32, result = f32, lda = 30, ldb = 100, ldc = 100>, graph.range = array<i64: 35>}
  // An accumulating one reads a flag. Transposed operands are named as they lie.
  // CHECK-NEXT: func.func nested @product1(index, index, memref<1200xf32>, memref<3000xf32>, memref<4000xf32>, memref<1xi64>) attributes {exec.product = #exec.product<m = 40, n = 100, k = 30, operands = f32, result = f32, lda = 40, ldb = 30, ldc = 100, transpose_a = true, transpose_b = true, accumulates = true>
  // Columns of the result are rows of the transposed operands' product.
  // CHECK-NEXT: func.func nested @product2({{.*}} #exec.product<m = 100, n = 40, k = 30, operands = f32, result = f32, lda = 100, ldb = 30, ldc = 40, transpose_a = true, transpose_b = true>
  // A batch: dimensions that lie as one are one, and buffers go as far as the last matrix.
  // CHECK-NEXT: func.func nested @product3(index, index, memref<192xf32>, memref<290xf32>, memref<240xf32>) attributes {exec.product = #exec.product<m = 8, n = 5, k = 4, operands = f32, result = f32, lda = 4, ldb = 5, ldc = 5, batch = [6], strides_a = [32], strides_b = [54], strides_c = [40]>
  // A part of the contraction begins with another's sums.
  // CHECK-NEXT: func.func nested @product4({{.*}}, memref<80xf32>, memref<80xf32>) attributes {exec.product = #exec.product<{{.*}}, addend = true>
  // CHECK: @product5({{.*}} #exec.product<m = 192, n = 70000, k = 20, {{.*}}, lda = 20, ldb = 20, ldc = 70000, transpose_b = true>
  // CHECK: @product6({{.*}} #exec.product<m = 192, n = 20, k = 70000, {{.*}}, lda = 70000, ldb = 20, ldc = 20>
  // CHECK: @product7({{.*}} #exec.product<m = 70000, n = 20, k = 192, {{.*}}, lda = 70000, ldb = 20, ldc = 20, transpose_a = true, accumulates = true>
  // CHECK: @product8({{.*}} #exec.product<m = 72, n = 70000, k = 20
  // CHECK: @product9({{.*}} #exec.product<m = 72, n = 20, k = 70000
  // CHECK: @product10({{.*}} #exec.product<m = 70000, n = 20, k = 72
  module @kernels attributes {dsopt.target = #target} {}

  // CHECK-LABEL: func.func @segment
  func.func @segment(%a: memref<40x30xf32>, %b: memref<30x100xf32>, %c: memref<40x100xf32>, %at: memref<30x40xf32>, %bt: memref<100x30xf32>,
                     %turned: memref<40x100xf32, strided<[1, 40]>>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: exec.gemm %{{.*}} by <@kernels::@product0 range 35> :
    exec.gemm %a, %b -> %c : memref<40x30xf32>, memref<30x100xf32> -> memref<40x100xf32>
    // CHECK: exec.gemm %{{.*}} by <@kernels::@product1 range 35> {into_gradient, transpose_a, transpose_b}
    exec.gemm %at, %bt -> %c {into_gradient, transpose_a, transpose_b} : memref<30x40xf32>, memref<100x30xf32> -> memref<40x100xf32>
    // CHECK: by <@kernels::@product0 range 35>
    exec.gemm %a, %b -> %c : memref<40x30xf32>, memref<30x100xf32> -> memref<40x100xf32>
    // CHECK: by <@kernels::@product2 range 39>
    exec.gemm %a, %b -> %turned : memref<40x30xf32>, memref<30x100xf32> -> memref<40x100xf32, strided<[1, 40]>>
    return
  }
  func.func @batch(%a: memref<2x3x8x4xf32>, %b: memref<2x3x4x5xf32, strided<[162, 54, 5, 1]>>, %c: memref<2x3x8x5xf32>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: by <@kernels::@product3
    exec.gemm %a, %b -> %c : memref<2x3x8x4xf32>, memref<2x3x4x5xf32, strided<[162, 54, 5, 1]>> -> memref<2x3x8x5xf32>
    return
  }
  func.func @part(%a: memref<8x40xf32>, %b: memref<40x10xf32>, %c: memref<8x10xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: of [8, 10, 4096] by <@kernels::@product4
    exec.gemm %a, %b plus %c : memref<8x10xf32> -> %c of [8, 10, 4096] : memref<8x40xf32>, memref<40x10xf32> -> memref<8x10xf32>
    return
  }
  // Logits, gradients of x and of the weight, which other tiles have added to, for 192 rows and the last 72.
  // CHECK-LABEL: func.func @loss
  func.func @loss(%x: memref<264x20xf32>, %w: memref<70000x20xf32>, %y: memref<264x10xf32>, %v: memref<10x30xf32>, %l: memref<264xi32>, %g: memref<264xf32>, %s: memref<71680000xi8>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: exec.linear_nll {{.*}} kernels = [#exec.product_kernel<@kernels::@product5 range {{[0-9]*}}>, #exec.product_kernel<@kernels::@product6 range {{[0-9]*}}>, #exec.product_kernel<@kernels::@product7 range {{[0-9]*}}>, #exec.product_kernel<@kernels::@product8 range {{[0-9]*}}>, #exec.product_kernel<@kernels::@product9 range {{[0-9]*}}>, #exec.product_kernel<@kernels::@product10 range {{[0-9]*}}>]
    exec.linear_nll %x, %w, %l, %g, %g, %x, %w, %s {ignore_index = -100 : i64, transpose_b, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 1, 1, 0, 1>} : memref<264x20xf32>, memref<70000x20xf32>, memref<264xi32>, memref<264xf32>, memref<264xf32>, memref<264x20xf32>, memref<70000x20xf32>, memref<71680000xi8>
    // Without a gradient of the weight and with one tile.
    // CHECK: exec.linear_nll {{.*}} kernels = [#exec.product_kernel<@kernels::@product11 range {{[0-9]*}}>, unit, unit, unit, unit, unit]
    exec.linear_nll %y, %v, %l, %g, %g, %s {ignore_index = -100 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0, 0, 0, 1>} : memref<264x10xf32>, memref<10x30xf32>, memref<264xi32>, memref<264xf32>, memref<264xf32>, memref<71680000xi8>
    return
  }
  // The library's: other types.
  // CHECK-LABEL: func.func @library
  // CHECK-NOT: by <
  func.func @library(%d: memref<20x20xf64>, %h: memref<20x20xf16>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    exec.gemm %d, %d -> %d : memref<20x20xf64>, memref<20x20xf64> -> memref<20x20xf64>
    // Without F16C a library would extend each element.
    exec.gemm %h, %h -> %h : memref<20x20xf16>, memref<20x20xf16> -> memref<20x20xf16>
    return
  }
  // Few rows of a product with a transposed operand; a part of one with many has the same kernel.
  // CHECK-LABEL: func.func @rows
  func.func @rows(%x: memref<3x40xf32>, %y: memref<50x40xf32>, %z: memref<3x50xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: by <@kernels::@product12
    exec.gemm %x, %y -> %z {transpose_b} : memref<3x40xf32>, memref<50x40xf32> -> memref<3x50xf32>
    // CHECK: by <@kernels::@product12
    exec.gemm %x, %y -> %z of [2051, 50, 40] {transpose_b} : memref<3x40xf32>, memref<50x40xf32> -> memref<3x50xf32>
    return
  }
}

// -----

// A bias is one more buffer, of a value for each column; what else follows a product has no kernel.
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v4", threads = 2, vector_bits = 512, features = ["+avx512f", "+fma"]>
// CHECK-LABEL: module @bias
module @bias attributes {dsopt.target = #target} {
  // CHECK: @product0(index, index, memref<32xf32>, memref<64xf32>, memref<16xf32>, memref<128xf32>) attributes {exec.product = #exec.product<m = 8, n = 16, k = 4, {{.*}}, bias = true>
  module @kernels attributes {dsopt.target = #target} {}
  // CHECK-LABEL: func.func @segment
  func.func @segment(%a: memref<8x4xf32>, %b: memref<4x16xf32>, %bias: memref<16xf32>, %c: memref<8x16xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    // CHECK: exec.gemm_epilogue bias %{{.*}} by <@kernels::@product0 range 1> : memref<8x4xf32>
    exec.gemm_epilogue bias %a, %b, %bias -> %c : memref<8x4xf32>, memref<4x16xf32>, memref<16xf32> -> memref<8x16xf32>
    // CHECK: exec.gemm_epilogue bias_gelu %{{.*}} -> %{{[a-z0-9]*}} : memref<8x4xf32>
    exec.gemm_epilogue bias_gelu %a, %b, %bias -> %c : memref<8x4xf32>, memref<4x16xf32>, memref<16xf32> -> memref<8x16xf32>
    return
  }
}

// -----

// In bf16 with AVX-512 BF16; buffers are bits, a result is in bf16 or f32, an addend in f32.
#narrow = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "cooperlake", threads = 2, vector_bits = 512, features = ["+avx512f", "+avx512bf16", "+fma"]>
// CHECK-LABEL: module @narrow
module @narrow attributes {dsopt.target = #narrow} {
  // CHECK: @product0(index, index, memref<320xi16>, memref<400xi16>, memref<80xi16>) attributes {exec.product = #exec.product<m = 8, n = 10, k = 40, operands = bf16, result = bf16
  // CHECK: @product1(index, index, memref<320xi16>, memref<400xi16>, memref<80xf32>, memref<80xi16>) attributes {exec.product = #exec.product<m = 8, n = 10, k = 40, operands = bf16, result = bf16, {{.*}}, addend = true>
  // CHECK: @product2(index, index, memref<320xi16>, memref<400xi16>, memref<80xf32>) attributes {exec.product = #exec.product<m = 8, n = 10, k = 40, operands = bf16, result = f32
  module @kernels attributes {dsopt.target = #narrow} {}
  func.func @segment(%a: memref<8x40xbf16>, %b: memref<40x10xbf16>, %c: memref<8x10xbf16>, %d: memref<8x10xf32>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    exec.gemm %a, %b -> %c : memref<8x40xbf16>, memref<40x10xbf16> -> memref<8x10xbf16>
    exec.gemm %a, %b plus %d : memref<8x10xf32> -> %c of [8, 10, 4096] : memref<8x40xbf16>, memref<40x10xbf16> -> memref<8x10xbf16>
    exec.gemm %a, %b -> %d : memref<8x40xbf16>, memref<40x10xbf16> -> memref<8x10xf32>
    return
  }
}

// -----

// What the processor does not multiply.
#widened = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 2, vector_bits = 256, features = ["+avx2", "+f16c", "+fma"]>
// CHECK-LABEL: module @widened
module @widened attributes {dsopt.target = #widened} {
  // CHECK: @product0(index, index, memref<320xi16>, memref<400xi16>, memref<80xi16>) attributes {exec.product = #exec.product<m = 8, n = 10, k = 40, operands = bf16, result = bf16
  // CHECK: @product1(index, index, memref<400xi16>, memref<400xi16>, memref<400xf32>) attributes {exec.product = #exec.product<m = 20, n = 20, k = 20, operands = f16, result = f32
  module @kernels attributes {dsopt.target = #widened} {}
  func.func @segment(%a: memref<8x40xbf16>, %b: memref<40x10xbf16>, %c: memref<8x10xbf16>, %h: memref<20x20xf16>, %f: memref<20x20xf32>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    exec.gemm %a, %b -> %c : memref<8x40xbf16>, memref<40x10xbf16> -> memref<8x10xbf16>
    exec.gemm %h, %h -> %f : memref<20x20xf16>, memref<20x20xf16> -> memref<20x20xf32>
    return
  }
}

// -----

// A processor without fused multiplications and additions has the library's.
#old = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v2", threads = 2, vector_bits = 128, features = ["+sse4.2"]>
// CHECK-LABEL: module @old
// CHECK-NOT: exec.product
module @old attributes {dsopt.target = #old} {
  module @kernels attributes {dsopt.target = #old} {}
  func.func @segment(%a: memref<40x30xf32>, %b: memref<30x100xf32>, %c: memref<40x100xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    exec.gemm %a, %b -> %c : memref<40x30xf32>, memref<30x100xf32> -> memref<40x100xf32>
    return
  }
}

// -----

// Devices have their own library.
#device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_90", threads = 2, vector_bits = 128, features = []>
// CHECK-LABEL: module @device
// CHECK-NOT: exec.product
module @device attributes {dsopt.target = #device} {
  module @kernels attributes {dsopt.target = #device} {}
  func.func @segment(%a: memref<40x30xf32>, %b: memref<30x100xf32>, %c: memref<40x100xf32>) attributes {exec.segment, exec.temp_bytes = 0 : i64} {
    exec.gemm %a, %b -> %c : memref<40x30xf32>, memref<30x100xf32> -> memref<40x100xf32>
    return
  }
}

// What LLVM makes of a block of tiles: one configuration, eight tiles that stay where they are, and four products of them a step.
// RUN: dsopt-opt -lower-kernels %s | sed -E 's/^#target = .*|attributes \{dsopt.target = #target\} //' \
// RUN:   | mlir-translate --mlir-to-llvmir | llc -O3 -mcpu=sapphirerapids | FileCheck %s

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "sapphirerapids", threads = 2, vector_bits = 512, features = ["+amx-bf16", "+amx-tile", "+avx512bf16", "+avx512f", "+fma"]>
module attributes {dsopt.target = #target} {
  // CHECK-LABEL: product.body:
  // CHECK: ldtilecfg
  // CHECK-NOT: ldtilecfg
  // CHECK-COUNT-4: tilezero
  // CHECK: [[STEP:\.LBB[0-9_]+]]:
  // CHECK-NOT: tilestored
  // CHECK-COUNT-2: tileloadd
  // CHECK-NOT: tilestored
  // CHECK: tdpbf16ps
  // CHECK-NOT: tilestored
  // CHECK: tdpbf16ps
  // CHECK-NOT: tilestored
  // CHECK: tdpbf16ps
  // CHECK-NOT: tilestored
  // CHECK: tdpbf16ps
  // CHECK-NOT: tilestored
  // CHECK: j{{[a-z]+}} [[STEP]]
  // CHECK-COUNT-4: tilestored
  // CHECK-NOT: ldtilecfg
  // CHECK-NOT: tdpbf16ps
  // CHECK: tilerelease
  func.func nested @product(index, index, memref<32768xi16>, memref<32768xi16>, memref<16384xi16>) attributes
      {exec.product = #exec.product<m = 128, n = 128, k = 256, operands = bf16, result = bf16, lda = 256, ldb = 128, ldc = 128>, graph.range = array<i64: 32>}
}

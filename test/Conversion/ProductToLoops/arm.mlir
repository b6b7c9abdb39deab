// A block of 24 sums has the registers of NEON, and those of SVE with vectors of 256 bits, to itself.
// RUN: sed 's/BITS/128/; s/RANGE/24/' %s | dsopt-opt -lower-kernels | sed -E 's/^#target = .*|attributes \{dsopt.target = #target\} //' \
// RUN:   | mlir-translate --mlir-to-llvmir | llc -O3 -mtriple=aarch64-linux-gnu -mattr=+neon | FileCheck %s --check-prefix=NEON
// RUN: sed 's/BITS/256/; s/RANGE/12/' %s | dsopt-opt -lower-kernels | sed -E 's/^#target = .*|attributes \{dsopt.target = #target\} //' \
// RUN:   | mlir-translate --mlir-to-llvmir | llc -O3 -mtriple=aarch64-linux-gnu -mattr=+sve -aarch64-sve-vector-bits-min=256 | FileCheck %s --check-prefix=SVE

#target = #dsopt.target<cpu, triple = "aarch64-unknown-linux-gnu", arch = "generic", threads = 2, vector_bits = BITS, features = ["+neon", "+sve"]>
module attributes {dsopt.target = #target} {
  // NEON-LABEL: product.body:
  // NEON: fmla v{{[0-9]+}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}.s[0]
  // NEON-NOT: [sp
  // NEON-COUNT-23: fmla v{{[0-9]+}}.4s
  // SVE-LABEL: product.body:
  // SVE: fmla z{{[0-9]+}}.s
  // SVE-NOT: [sp
  // SVE-COUNT-23: fmla z{{[0-9]+}}.s
  func.func nested @product(index, index, memref<1024xf32>, memref<3072xf32>, memref<768xf32>) attributes
      {exec.product = #exec.product<m = 16, n = 48, k = 64, operands = f32, result = f32, lda = 64, ldb = 48, ldc = 48>, graph.range = array<i64: RANGE>}
}

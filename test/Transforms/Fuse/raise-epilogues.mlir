// RUN: dsopt-opt %s -split-input-file -raise-epilogues | FileCheck %s
// RUN: FileCheck %s --check-prefix=DOC < %source/include/dsopt/Transforms/Fuse/Passes.td
// DOC: %a = graph.matmul_epilogue bias %x, %w, %b : (tensor<8x64xf32>, tensor<64x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>

#device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 1, vector_bits = 128, features = []>
module attributes {dsopt.target = #device, dsopt.options = {precision = "bf16"}} {
  graph.parameter @b : tensor<32xf32> from "b" at 0 bytes 128
  graph.parameter @odd : tensor<30xf32> from "odd" at 0 bytes 120

  // A bias whose sum routines read, through movements too; from either side.
  // CHECK-LABEL: @bias
  // CHECK-SAME: %[[X:.*]]: tensor<8x64xf32>, %[[W:.*]]: tensor<64x32xf32>, %[[V:.*]]: tensor<8x32xf32>
  // CHECK-NEXT: %[[B:.*]] = graph.read @b
  // CHECK-NEXT: %[[A:.*]] = graph.matmul_epilogue bias %[[X]], %[[W]], %[[B]] {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<8x64xf32>, tensor<64x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  // CHECK-NEXT: %[[R:.*]] = graph.reshape %[[A]]
  // CHECK-NEXT: %[[T:.*]] = graph.transpose %[[R]]
  // CHECK-NEXT: graph.matmul %[[T]], %[[T]] {transpose_b}
  // CHECK-NEXT: graph.matmul %[[A]], %[[V]] {transpose_b}
  func.func @bias(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %v: tensor<8x32xf32>) -> (tensor<4x8x8xf32>, tensor<8x8xf32>) {
    %s = graph.matmul %x, %w {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %b = graph.read @b : tensor<32xf32>
    %a = graph.add %b, %s {graph.block = 1 : i64, graph.phase = #graph.phase<F>} : (tensor<32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
    %r = graph.reshape %a : (tensor<8x32xf32>) -> tensor<8x4x8xf32>
    %t = graph.transpose %r {perm = array<i64: 1, 0, 2>} : (tensor<8x4x8xf32>) -> tensor<4x8x8xf32>
    %y = graph.matmul %t, %t {transpose_b} : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %z = graph.matmul %a, %v {transpose_b} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x8xf32>
    return %y, %z : tensor<4x8x8xf32>, tensor<8x8xf32>
  }

  // Leading dimensions between product and bias.
  // CHECK-LABEL: @reshaped
  // CHECK: %[[A:.*]] = graph.matmul_epilogue bias %{{.*}} : (tensor<8x64xf32>, tensor<64x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  // CHECK-NEXT: graph.reshape %[[A]] : (tensor<8x32xf32>) -> tensor<2x4x32xf32>
  // CHECK-NOT: graph.matmul_epilogue
  func.func @reshaped(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>) -> (tensor<2x4x4xf32>, tensor<1x256x256xf32>) {
    %b = graph.read @b : tensor<32xf32>
    %s = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %r = graph.reshape %s : (tensor<8x32xf32>) -> tensor<2x4x32xf32>
    %a = graph.add %r, %b : (tensor<2x4x32xf32>, tensor<32xf32>) -> tensor<2x4x32xf32>
    %y = graph.matmul %a, %a {transpose_b} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x4xf32>
    // Its columns are others.
    %t = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %u = graph.reshape %t : (tensor<8x32xf32>) -> tensor<1x256x1xf32>
    %c = graph.add %u, %b : (tensor<1x256x1xf32>, tensor<32xf32>) -> tensor<1x256x32xf32>
    %z = graph.matmul %c, %c {transpose_b} : (tensor<1x256x32xf32>, tensor<1x256x32xf32>) -> tensor<1x256x256xf32>
    return %y, %z : tensor<2x4x4xf32>, tensor<1x256x256xf32>
  }

  // A kernel that reads the sum adds the bias itself.
  // CHECK-LABEL: @kernel
  // CHECK-NOT: graph.matmul_epilogue
  func.func @kernel(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>) -> (tensor<8x8xf32>, tensor<8x32xf32>) {
    %s = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %b = graph.read @b : tensor<32xf32>
    %a = graph.add %s, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %y = graph.matmul %a, %a {transpose_b} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x8xf32>
    %e = graph.exp %a : (tensor<8x32xf32>) -> tensor<8x32xf32>
    return %y, %e : tensor<8x8xf32>, tensor<8x32xf32>
  }

  // Sums that something else reads too, that are added up in chunks, in batches, or of another block; a row
  // for each of the result's rows; what is no parameter.
  // CHECK-LABEL: @others
  // CHECK-NOT: graph.matmul_epilogue
  func.func @others(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>, %u: tensor<32x4096xf32>, %v: tensor<4096x32xf32>, %p: tensor<2x32x64xf32>, %q: tensor<2x64x32xf32>, %c: tensor<32xf32>)
      -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<2x32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) {
    %b = graph.read @b : tensor<32xf32>
    %0 = graph.matmul %x, %w : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %1 = graph.add %0, %b : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
    %2 = graph.matmul %1, %0 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %3 = graph.matmul %u, %v : (tensor<32x4096xf32>, tensor<4096x32xf32>) -> tensor<32x32xf32>
    %4 = graph.add %3, %b : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
    %5 = graph.matmul %4, %4 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %6 = graph.matmul %p, %q : (tensor<2x32x64xf32>, tensor<2x64x32xf32>) -> tensor<2x32x32xf32>
    %7 = graph.add %6, %b : (tensor<2x32x32xf32>, tensor<32xf32>) -> tensor<2x32x32xf32>
    %8 = graph.matmul %7, %7 : (tensor<2x32x32xf32>, tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
    %9 = graph.matmul %x, %w {graph.block = 1 : i64} : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %10 = graph.add %9, %b {graph.block = 2 : i64} : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
    %11 = graph.matmul %10, %10 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %12 = graph.matmul %x, %w : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %13 = graph.reshape %b : (tensor<32xf32>) -> tensor<32x1xf32>
    %14 = graph.add %12, %13 : (tensor<32x32xf32>, tensor<32x1xf32>) -> tensor<32x32xf32>
    %15 = graph.matmul %14, %14 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %16 = graph.matmul %x, %w : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %17 = graph.add %16, %c : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
    %18 = graph.matmul %17, %17 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    return %2, %5, %8, %11, %15, %18, %18 : tensor<32x32xf32>, tensor<32x32xf32>, tensor<2x32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
  }

  // GELU and its gradient: the sum is kept, backward computes GELU again for the weight's gradient.
  // CHECK-LABEL: @gelu
  // CHECK-SAME: %[[X:.*]]: tensor<8x64xf32>, %[[W:.*]]: tensor<64x32xf32>, %[[V:.*]]: tensor<32x64xf32>, %[[D:.*]]: tensor<8x64xf32>
  // CHECK: %[[H:.*]], %[[S:.*]] = graph.matmul_epilogue bias_gelu %[[X]], %[[W]], %{{.*}} {graph.phase = #graph.phase<F>} : (tensor<8x64xf32>, tensor<64x32xf32>, tensor<32xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>)
  // CHECK: %[[S3:.*]] = graph.reshape %[[S]] {graph.phase = #graph.phase<F>}
  // CHECK: %[[H3:.*]] = graph.reshape %[[H]] {graph.phase = #graph.phase<F>}
  // CHECK: %[[H2:.*]] = graph.reshape %[[H3]] {graph.phase = #graph.phase<F>}
  // CHECK: graph.matmul %[[H2]], %[[V]] {graph.phase = #graph.phase<F>}
  // CHECK: %[[G3:.*]] = graph.gelu %[[S3]] {approximate_tanh, graph.phase = #graph.phase<B>}
  // CHECK: %[[G2:.*]] = graph.reshape %[[G3]] {graph.phase = #graph.phase<B>}
  // CHECK: graph.matmul %[[G2]], %[[D]] {graph.phase = #graph.phase<W>, transpose_a}
  // CHECK: graph.matmul_epilogue gelu_grad %[[D]], %[[V]], %[[S]] {graph.phase = #graph.phase<B>, transpose_b} : (tensor<8x64xf32>, tensor<32x64xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  // CHECK-NOT: graph.tanh
  // CHECK: return
  func.func @gelu(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %v: tensor<32x64xf32>, %d: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<32x64xf32>, tensor<8x32xf32>) {
    %p = graph.matmul %x, %w {graph.phase = #graph.phase<F>} : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %b = graph.read @b {graph.phase = #graph.phase<F>} : tensor<32xf32>
    %s = graph.add %p, %b {graph.phase = #graph.phase<F>} : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %r = graph.reshape %s {graph.phase = #graph.phase<F>} : (tensor<8x32xf32>) -> tensor<2x4x32xf32>
    %g = graph.gelu %r {approximate_tanh, graph.phase = #graph.phase<F>} : (tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %h = graph.reshape %g {graph.phase = #graph.phase<F>} : (tensor<2x4x32xf32>) -> tensor<8x32xf32>
    %y = graph.matmul %h, %v {graph.phase = #graph.phase<F>} : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    %dw = graph.matmul %h, %d {graph.phase = #graph.phase<W>, transpose_a} : (tensor<8x32xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>
    %dh = graph.matmul %d, %v {graph.phase = #graph.phase<B>, transpose_b} : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    %0 = graph.reshape %dh {graph.phase = #graph.phase<B>} : (tensor<8x32xf32>) -> tensor<2x4x32xf32>
    %1 = graph.mul %r, %r {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %c0 = graph.constant dense<4.471500e-02> : tensor<f32>
    %2 = graph.mul %1, %c0 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<f32>) -> tensor<2x4x32xf32>
    %c1 = graph.constant dense<1.000000e+00> : tensor<f32>
    %3 = graph.add %2, %c1 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<f32>) -> tensor<2x4x32xf32>
    %c2 = graph.constant dense<0.797884583> : tensor<f32>
    %4 = graph.mul %r, %c2 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<f32>) -> tensor<2x4x32xf32>
    %5 = graph.mul %4, %3 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %6 = graph.tanh %5 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %c3 = graph.constant dense<0.107032225> : tensor<f32>
    %7 = graph.mul %1, %c3 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<f32>) -> tensor<2x4x32xf32>
    %8 = graph.add %7, %c2 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<f32>) -> tensor<2x4x32xf32>
    %9 = graph.add %c1, %6 {graph.phase = #graph.phase<B>} : (tensor<f32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %c4 = graph.constant dense<5.000000e-01> : tensor<f32>
    %10 = graph.mul %c4, %9 {graph.phase = #graph.phase<B>} : (tensor<f32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %11 = graph.mul %c4, %r {graph.phase = #graph.phase<B>} : (tensor<f32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %12 = graph.mul %6, %6 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %13 = graph.sub %c1, %12 {graph.phase = #graph.phase<B>} : (tensor<f32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %14 = graph.mul %13, %8 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %15 = graph.mul %11, %14 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %16 = graph.add %10, %15 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %17 = graph.mul %0, %16 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %18 = graph.reshape %17 {graph.phase = #graph.phase<B>} : (tensor<2x4x32xf32>) -> tensor<8x32xf32>
    return %y, %dw, %18 : tensor<8x64xf32>, tensor<32x64xf32>, tensor<8x32xf32>
  }

  // Without backward nothing is kept.
  // CHECK-LABEL: @evaluation
  // CHECK: %{{.*}} = graph.matmul_epilogue bias_gelu %{{.*}} : (tensor<8x64xf32>, tensor<64x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  // CHECK-NOT: graph.gelu
  func.func @evaluation(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %v: tensor<32x64xf32>) -> tensor<8x64xf32> {
    %p = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %b = graph.read @b : tensor<32xf32>
    %s = graph.add %p, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %g = graph.gelu %s {approximate_tanh} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %y = graph.matmul %g, %v : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    return %y : tensor<8x64xf32>
  }

  // GELU by erf is none of the library's; lines are multiples of 8; a kernel that reads GELU computes it.
  // CHECK-LABEL: @gelus
  // CHECK-NOT: graph.matmul_epilogue
  func.func @gelus(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %w30: tensor<64x30xf32>, %v: tensor<32x64xf32>, %v30: tensor<30x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<30x30xf32>, tensor<8x32xf32>) {
    %b = graph.read @b : tensor<32xf32>
    %c = graph.read @odd : tensor<30xf32>
    %0 = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %1 = graph.add %0, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %2 = graph.gelu %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %3 = graph.matmul %2, %v : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    %4 = graph.matmul %x, %w30 {graph.phase = #graph.phase<F>} : (tensor<8x64xf32>, tensor<64x30xf32>) -> tensor<8x30xf32>
    %5 = graph.add %4, %c {graph.phase = #graph.phase<F>} : (tensor<8x30xf32>, tensor<30xf32>) -> tensor<8x30xf32>
    %6 = graph.gelu %5 {approximate_tanh, graph.phase = #graph.phase<F>} : (tensor<8x30xf32>) -> tensor<8x30xf32>
    %7 = graph.matmul %6, %v30 {graph.phase = #graph.phase<F>} : (tensor<8x30xf32>, tensor<30x64xf32>) -> tensor<8x64xf32>
    %8 = graph.matmul %6, %6 {graph.phase = #graph.phase<W>, transpose_a} : (tensor<8x30xf32>, tensor<8x30xf32>) -> tensor<30x30xf32>
    %9 = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %10 = graph.add %9, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %11 = graph.gelu %10 {approximate_tanh} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %12 = graph.exp %11 : (tensor<8x32xf32>) -> tensor<8x32xf32>
    return %3, %7, %8, %12 : tensor<8x64xf32>, tensor<8x64xf32>, tensor<30x30xf32>, tensor<8x32xf32>
  }
}

// -----

// In fp32 GELU has kernels.
#device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 1, vector_bits = 128, features = []>
module attributes {dsopt.target = #device} {
  graph.parameter @b : tensor<32xf32> from "b" at 0 bytes 128
  // CHECK-LABEL: @wide
  // CHECK-NOT: graph.matmul_epilogue
  // CHECK: graph.gelu
  func.func @wide(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %v: tensor<32x64xf32>) -> tensor<8x64xf32> {
    %p = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %b = graph.read @b : tensor<32xf32>
    %s = graph.add %p, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %g = graph.gelu %s {approximate_tanh} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %y = graph.matmul %g, %v : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    return %y : tensor<8x64xf32>
  }
}

// -----

// A host's kernels of products add biases that routines read, of any number of columns; GELU has kernels of its own, in
// bf16 too. What may be asked for in tiles stays a product: 4096 rows of a weight are, 4095 are not.
#host = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "cooperlake", threads = 1, vector_bits = 512, features = ["+fma", "+avx512bf16"]>
module attributes {dsopt.target = #host, dsopt.options = {precision = "bf16"}} {
  graph.parameter @b : tensor<30xf32> from "b" at 0 bytes 120
  graph.parameter @tiled : tensor<4096x64xf32> from "tiled" at 0 bytes 1048576
  graph.parameter @whole : tensor<4095x64xf32> from "whole" at 0 bytes 1048320
  graph.parameter @b4096 : tensor<4096xf32> from "b4096" at 0 bytes 16384
  graph.parameter @b4095 : tensor<4095xf32> from "b4095" at 0 bytes 16380
  // CHECK-LABEL: @host
  // CHECK: %[[A:.*]] = graph.matmul_epilogue bias %{{.*}} : (tensor<8x64xf32>, tensor<64x30xf32>, tensor<30xf32>) -> tensor<8x30xf32>
  // CHECK-NEXT: graph.matmul %[[A]]
  // CHECK: graph.add
  // CHECK-NEXT: graph.gelu
  func.func @host(%x: tensor<8x64xf32>, %w: tensor<64x30xf32>, %v: tensor<30x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %s = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x30xf32>) -> tensor<8x30xf32>
    %b = graph.read @b : tensor<30xf32>
    %a = graph.add %s, %b : (tensor<8x30xf32>, tensor<30xf32>) -> tensor<8x30xf32>
    %y = graph.matmul %a, %v : (tensor<8x30xf32>, tensor<30x8xf32>) -> tensor<8x8xf32>
    %t = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x30xf32>) -> tensor<8x30xf32>
    %c = graph.add %t, %b : (tensor<8x30xf32>, tensor<30xf32>) -> tensor<8x30xf32>
    %g = graph.gelu %c {approximate_tanh} : (tensor<8x30xf32>) -> tensor<8x30xf32>
    %z = graph.matmul %g, %v : (tensor<8x30xf32>, tensor<30x8xf32>) -> tensor<8x8xf32>
    return %y, %z : tensor<8x8xf32>, tensor<8x8xf32>
  }
  // CHECK-LABEL: @tiles
  // CHECK-NOT: graph.matmul_epilogue {{.*}}4096xf32>
  // CHECK: graph.matmul_epilogue bias %{{.*}}, %{{.*}}, %{{.*}} {transpose_b} : (tensor<8x64xf32>, tensor<4095x64xf32>, tensor<4095xf32>) -> tensor<8x4095xf32>
  // CHECK-NOT: graph.matmul_epilogue
  func.func @tiles(%x: tensor<8x64xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
    %w = graph.read @tiled : tensor<4096x64xf32>
    %b = graph.read @b4096 : tensor<4096xf32>
    %0 = graph.matmul %x, %w {transpose_b} : (tensor<8x64xf32>, tensor<4096x64xf32>) -> tensor<8x4096xf32>
    %1 = graph.add %0, %b : (tensor<8x4096xf32>, tensor<4096xf32>) -> tensor<8x4096xf32>
    %2 = graph.matmul %1, %1 {transpose_b} : (tensor<8x4096xf32>, tensor<8x4096xf32>) -> tensor<8x8xf32>
    %v = graph.read @whole : tensor<4095x64xf32>
    %c = graph.read @b4095 : tensor<4095xf32>
    %3 = graph.matmul %x, %v {transpose_b} : (tensor<8x64xf32>, tensor<4095x64xf32>) -> tensor<8x4095xf32>
    %4 = graph.add %3, %c : (tensor<8x4095xf32>, tensor<4095xf32>) -> tensor<8x4095xf32>
    %5 = graph.matmul %4, %4 {transpose_b} : (tensor<8x4095xf32>, tensor<8x4095xf32>) -> tensor<8x8xf32>
    %t = graph.transpose %w {perm = array<i64: 1, 0>} : (tensor<4096x64xf32>) -> tensor<64x4096xf32>
    %6 = graph.matmul %x, %t : (tensor<8x64xf32>, tensor<64x4096xf32>) -> tensor<8x4096xf32>
    %7 = graph.add %6, %b : (tensor<8x4096xf32>, tensor<4096xf32>) -> tensor<8x4096xf32>
    %8 = graph.matmul %7, %7 {transpose_b} : (tensor<8x4096xf32>, tensor<8x4096xf32>) -> tensor<8x8xf32>
    return %2, %5, %8 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
}

// -----

// Without fused multiplications products are the library's.
#host = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v2", threads = 1, vector_bits = 128, features = ["+sse4.2"]>
module attributes {dsopt.target = #host, dsopt.options = {precision = "bf16"}} {
  graph.parameter @b : tensor<32xf32> from "b" at 0 bytes 128
  // CHECK-LABEL: @library
  // CHECK-NOT: graph.matmul_epilogue
  func.func @library(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %v: tensor<32x8xf32>) -> tensor<8x8xf32> {
    %s = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %b = graph.read @b : tensor<32xf32>
    %a = graph.add %s, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %y = graph.matmul %a, %v : (tensor<8x32xf32>, tensor<32x8xf32>) -> tensor<8x8xf32>
    return %y : tensor<8x8xf32>
  }
}

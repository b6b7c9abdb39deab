// RUN: dsopt-opt %s -split-input-file "-place-values=shards=2 ranks=2" | FileCheck %s
// RUN: dsopt-opt %s -split-input-file "-place-values=shards=4 ranks=1" | FileCheck %s --check-prefix=ALONE
// RUN: dsopt-opt %s -split-input-file "-place-values=shards=1" | FileCheck %s --check-prefix=WHOLE

// Columns, then rows: a rank's shard of both, the sum of the pieces, and the bias once behind it. Which
// elements a shard has of the whole: rows of w1 follow each other, those of w2 are runs.

// CHECK-LABEL: module @perceptron
// CHECK: graph.parameter @w1 : tensor<8x16xf32>
// CHECK-NEXT: graph.parameter @w1.shard.0 : tensor<8x8xf32> {{.*}}part_begin = 0 : i64, part_of = @w1, part_runs = #graph.runs<8 every 16 step 8>
// CHECK: graph.parameter @b1.shard.0 : tensor<8xf32> {{.*}}part_runs = #graph.runs<8 every 16 step 8>
// CHECK: graph.parameter @w2.shard.0 : tensor<8x8xf32> {{.*}}part_runs = #graph.runs<64 every 128 step 64>
// CHECK: graph.parameter @b2 : tensor<8xf32>
// CHECK-NOT: @b2.shard
// CHECK: [[X:%.*]] = dist.shared %arg0 over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<4x8xf32> 1
// CHECK: [[H:%.*]] = graph.matmul [[X]], {{.*}}-> tensor<4x8xf32>
// CHECK: [[A:%.*]] = graph.add [[H]]
// CHECK: [[G:%.*]] = graph.gelu [[A]]
// CHECK: [[P:%.*]] = graph.matmul [[G]], {{.*}}{graph.block = 1 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT: [[Y:%.*]] = dist.all_reduce [[P]] over [tp] {dist.tensor, graph.block = 1 : i64} : tensor<4x8xf32>
// CHECK: graph.add [[Y]], {{.*}}b2

// Four shards of one rank: neighbours are added first, and nothing moves.
// ALONE-LABEL: module @perceptron
// ALONE: graph.parameter @w1.shard.3 : tensor<8x4xf32> {{.*}}part_begin = 12 : i64, part_of = @w1, part_runs = #graph.runs<4 every 16 step 16>
// ALONE: %{{.*}}:4 = dist.shared %arg0 over [] {{.*}} : tensor<4x8xf32> 4
// ALONE: [[P0:%.*]] = graph.matmul {{.*}}(tensor<4x4xf32>, tensor<4x8xf32>)
// ALONE-NEXT: [[P1:%.*]] = graph.matmul
// ALONE-NEXT: [[P2:%.*]] = graph.matmul
// ALONE-NEXT: [[P3:%.*]] = graph.matmul
// ALONE-NEXT: [[S0:%.*]] = graph.tree_add [[P0]], [[P1]]
// ALONE-NEXT: [[S1:%.*]] = graph.tree_add [[P2]], [[P3]]
// ALONE-NEXT: [[S:%.*]] = graph.tree_add [[S0]], [[S1]]
// ALONE-NOT: all_reduce

// WHOLE-LABEL: module @perceptron
// WHOLE-NOT: .shard.
module @perceptron {
  graph.parameter @w1 : tensor<8x16xf32> from "m" at 0 bytes 512
  graph.parameter @b1 : tensor<16xf32> from "m" at 512 bytes 64
  graph.parameter @w2 : tensor<16x8xf32> from "m" at 576 bytes 512
  graph.parameter @b2 : tensor<8xf32> from "m" at 1088 bytes 32
  func.func @forward(%x: tensor<4x8xf32>) -> tensor<f32> {
    %w1 = graph.read @w1 {graph.block = 0 : i64} : tensor<8x16xf32>
    %h = graph.matmul %x, %w1 {graph.block = 0 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %b1 = graph.read @b1 {graph.block = 0 : i64} : tensor<16xf32>
    %a = graph.add %h, %b1 {graph.block = 0 : i64} : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
    %g = graph.gelu %a {graph.block = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %w2 = graph.read @w2 {graph.block = 1 : i64} : tensor<16x8xf32>
    %y = graph.matmul %g, %w2 {graph.block = 1 : i64} : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %b2 = graph.read @b2 {graph.block = 1 : i64} : tensor<8xf32>
    %z = graph.add %y, %b2 {graph.block = 1 : i64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %loss = graph.reduce_sum %z {axes = array<i64: 0, 1>, graph.block = 1 : i64} : (tensor<4x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Queries, keys and values as columns of one product are cut within each of the three; heads follow. What is
// scaled by a constant is scaled by one of its shape.

// CHECK-LABEL: module @fused
// CHECK: graph.parameter @qkv.shard.0 : tensor<8x12xf32> {{.*}}part_runs = #graph.runs<4 every 8 step 4>
// CHECK: graph.parameter @out.shard.0 : tensor<4x8xf32> {{.*}}part_runs = #graph.runs<32 every 64 step 32>
// CHECK: graph.slice {{.*}}sizes = array<i64: 2, 3, 4>, starts = array<i64: 0, 0, 4>
// CHECK: graph.constant dense<5.000000e-01> : tensor<2x3x4xf32>
// CHECK: graph.reshape {{.*}}-> tensor<2x3x2x2xf32>
// CHECK: graph.attention {{.*}}tensor<2x2x3x2xf32>
// CHECK: dist.all_reduce


module @fused {
  graph.parameter @qkv : tensor<8x24xf32> from "m" at 0 bytes 768
  graph.parameter @out : tensor<8x8xf32> from "m" at 768 bytes 256
  func.func @forward(%x: tensor<6x8xf32>) -> tensor<f32> {
    %w = graph.read @qkv {graph.block = 0 : i64} : tensor<8x24xf32>
    %0 = graph.matmul %x, %w {graph.block = 0 : i64} : (tensor<6x8xf32>, tensor<8x24xf32>) -> tensor<6x24xf32>
    %1 = graph.reshape %0 {graph.block = 0 : i64} : (tensor<6x24xf32>) -> tensor<2x3x24xf32>
    %q = graph.slice %1 {sizes = array<i64: 2, 3, 8>, starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>, graph.block = 0 : i64} : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %k = graph.slice %1 {sizes = array<i64: 2, 3, 8>, starts = array<i64: 0, 0, 8>, steps = array<i64: 1, 1, 1>, graph.block = 0 : i64} : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %v = graph.slice %1 {sizes = array<i64: 2, 3, 8>, starts = array<i64: 0, 0, 16>, steps = array<i64: 1, 1, 1>, graph.block = 0 : i64} : (tensor<2x3x24xf32>) -> tensor<2x3x8xf32>
    %half = graph.constant dense<5.000000e-01> : tensor<2x3x8xf32>
    %s = graph.mul %q, %half {graph.block = 0 : i64} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %q4 = graph.reshape %s {graph.block = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
    %k4 = graph.reshape %k {graph.block = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
    %v4 = graph.reshape %v {graph.block = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
    %qt = graph.transpose %q4 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<2x4x3x2xf32>
    %kt = graph.transpose %k4 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<2x4x3x2xf32>
    %vt = graph.transpose %v4 {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<2x4x3x2xf32>
    %a, %lse = graph.attention %qt, %kt, %vt {scale = 5.000000e-01 : f64, graph.block = 0 : i64} : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> (tensor<2x4x3x2xf32>, tensor<2x4x3xf32>)
    %at = graph.transpose %a {perm = array<i64: 0, 2, 1, 3>, graph.block = 0 : i64} : (tensor<2x4x3x2xf32>) -> tensor<2x3x4x2xf32>
    %2 = graph.reshape %at {graph.block = 0 : i64} : (tensor<2x3x4x2xf32>) -> tensor<6x8xf32>
    %o = graph.read @out {graph.block = 0 : i64} : tensor<8x8xf32>
    %3 = graph.matmul %2, %o {graph.block = 0 : i64} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
    %loss = graph.reduce_sum %3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<6x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Channels of a convolution, with a running statistic of them: the image is shared, and each shard has windows of its own. The
// next convolution sums over its windows' channels, which are cut within each place of the kernel.

// CHECK-LABEL: module @channels
// CHECK: graph.parameter @a.shard.0 : tensor<2x3x3x3xf32> {{.*}}part_runs = #graph.runs<54 every 108 step 54>
// CHECK: graph.parameter @mean : tensor<4xf32>
// CHECK-NEXT: graph.parameter @mean.shard.0 : tensor<2xf32> {{.*}}part_of = @mean, part_runs = #graph.runs<2 every 4 step 2>, statistic
// CHECK: graph.parameter @b.shard.0 : tensor<2x2x3x3xf32> {{.*}}part_runs = #graph.runs<18 every 36 step 18>
// CHECK: func.func @forward({{.*}}) -> (tensor<f32>, tensor<2xf32> {graph.momentum = 9.000000e-01 : f64, graph.statistic = @mean.shard.0})
// CHECK: [[X:%.*]] = dist.shared %arg0 over [tp] {{.*}}tensor<2x5x5x3xf32> 1
// CHECK-NEXT: [[W:%.*]] = graph.windows [[X]]
// CHECK-NEXT: graph.reshape [[W]] {{.*}}-> tensor<50x27xf32>
// CHECK: [[M:%.*]] = graph.reduce_mean {{.*}}-> tensor<2xf32>
// CHECK: graph.windows {{.*}}-> tensor<2x5x5x3x3x2xf32>
// CHECK: graph.matmul {{.*}}(tensor<50x18xf32>, tensor<2x18xf32>) -> tensor<50x2xf32>
// CHECK-NEXT: dist.all_reduce
// CHECK: return {{.*}}, [[M]] : tensor<f32>, tensor<2xf32>

// ALONE-LABEL: module @channels
// ALONE: func.func @forward({{.*}}graph.statistic = @mean.shard.0}, {{.*}}graph.statistic = @mean.shard.1}, {{.*}}graph.statistic = @mean.shard.2}, {{.*}}graph.statistic = @mean.shard.3})
// ALONE: [[X:%.*]]:4 = dist.shared %arg0 over []
// ALONE: graph.windows [[X]]#0
// ALONE: graph.windows [[X]]#3
module @channels {
  graph.parameter @a : tensor<4x3x3x3xf32> from "m" at 0 bytes 432
  graph.parameter @mean : tensor<4xf32> from "m" at 432 bytes 16 frozen {statistic}
  graph.parameter @b : tensor<2x4x3x3xf32> from "m" at 448 bytes 288
  func.func @forward(%x: tensor<2x5x5x3xf32>) -> (tensor<f32>, tensor<4xf32> {graph.statistic = @mean, graph.momentum = 0.9 : f64}) {
    %0 = graph.windows %x {axis = 1 : i64, counts = array<i64: 5, 5>, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, lows = array<i64: 1, 1>, value = 0.0 : f32, graph.block = 0 : i64} : (tensor<2x5x5x3xf32>) -> tensor<2x5x5x3x3x3xf32>
    %1 = graph.reshape %0 {graph.block = 0 : i64} : (tensor<2x5x5x3x3x3xf32>) -> tensor<50x27xf32>
    %2 = graph.read @a {graph.block = 0 : i64} : tensor<4x3x3x3xf32>
    %3 = graph.transpose %2 {perm = array<i64: 0, 2, 3, 1>, graph.block = 0 : i64} : (tensor<4x3x3x3xf32>) -> tensor<4x3x3x3xf32>
    %4 = graph.reshape %3 {graph.block = 0 : i64} : (tensor<4x3x3x3xf32>) -> tensor<4x27xf32>
    %5 = graph.matmul %1, %4 {transpose_b, graph.block = 0 : i64} : (tensor<50x27xf32>, tensor<4x27xf32>) -> tensor<50x4xf32>
    %mean = graph.reduce_mean %5 {axes = array<i64: 0>, graph.block = 0 : i64} : (tensor<50x4xf32>) -> tensor<4xf32>
    %6 = graph.sub %5, %mean {graph.block = 0 : i64} : (tensor<50x4xf32>, tensor<4xf32>) -> tensor<50x4xf32>
    %7 = graph.relu %6 {graph.block = 0 : i64} : (tensor<50x4xf32>) -> tensor<50x4xf32>
    %8 = graph.reshape %7 {graph.block = 0 : i64} : (tensor<50x4xf32>) -> tensor<2x5x5x4xf32>
    %9 = graph.windows %8 {axis = 1 : i64, counts = array<i64: 5, 5>, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, lows = array<i64: 1, 1>, value = 0.0 : f32, graph.block = 0 : i64} : (tensor<2x5x5x4xf32>) -> tensor<2x5x5x3x3x4xf32>
    %10 = graph.reshape %9 {graph.block = 0 : i64} : (tensor<2x5x5x3x3x4xf32>) -> tensor<50x36xf32>
    %11 = graph.read @b {graph.block = 0 : i64} : tensor<2x4x3x3xf32>
    %12 = graph.transpose %11 {perm = array<i64: 0, 2, 3, 1>, graph.block = 0 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x3x3x4xf32>
    %13 = graph.reshape %12 {graph.block = 0 : i64} : (tensor<2x3x3x4xf32>) -> tensor<2x36xf32>
    %14 = graph.matmul %10, %13 {transpose_b, graph.block = 0 : i64} : (tensor<50x36xf32>, tensor<2x36xf32>) -> tensor<50x2xf32>
    %loss = graph.reduce_sum %14 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<50x2xf32>) -> tensor<f32>
    return %loss, %mean : tensor<f32>, tensor<4xf32>
  }
}

// -----

// What is concatenated along its channels is cut in parts of the smaller one's size, so that each shard has its own of both.

// CHECK-LABEL: module @joined
// CHECK: graph.parameter @a.shard.0 : tensor<4x8xf32> {{.*}}part_runs = #graph.runs<4 every 8 step 4>
// CHECK: graph.parameter @b.shard.0 : tensor<4x4xf32> {{.*}}part_runs = #graph.runs<4 every 8 step 4>
// CHECK: graph.parameter @c.shard.0 : tensor<12x4xf32> {{.*}}part_runs = #graph.runs<16 every 32 step 16>
// CHECK: graph.concat {{.*}}(tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x12xf32>
// CHECK: dist.all_reduce
module @joined {
  graph.parameter @a : tensor<4x16xf32> from "m" at 0 bytes 256
  graph.parameter @b : tensor<4x8xf32> from "m" at 256 bytes 128
  graph.parameter @c : tensor<24x4xf32> from "m" at 384 bytes 384
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<f32> {
    %a = graph.read @a {graph.block = 0 : i64} : tensor<4x16xf32>
    %0 = graph.matmul %x, %a {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>
    %b = graph.read @b {graph.block = 0 : i64} : tensor<4x8xf32>
    %1 = graph.matmul %x, %b {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %2 = graph.concat %0, %1 {axis = 1 : i64, graph.block = 0 : i64} : (tensor<2x16xf32>, tensor<2x8xf32>) -> tensor<2x24xf32>
    %c = graph.read @c {graph.block = 0 : i64} : tensor<24x4xf32>
    %3 = graph.matmul %2, %c {graph.block = 0 : i64} : (tensor<2x24xf32>, tensor<24x4xf32>) -> tensor<2x4xf32>
    %loss = graph.reduce_sum %3 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The pieces of a transposed convolution are added behind its windows' sums, which have fewer elements.

// CHECK-LABEL: module @transposed
// CHECK: [[P:%.*]] = graph.matmul {{.*}}-> tensor<8x12xf32>
// CHECK-NEXT: [[R:%.*]] = graph.reshape [[P]]
// CHECK-NEXT: [[S:%.*]] = graph.windows_sum [[R]]
// CHECK-NEXT: dist.all_reduce [[S]] over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x5x3xf32>
module @transposed {
  graph.parameter @a : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @b : tensor<8x12xf32> from "m" at 128 bytes 384
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<f32> {
    %a = graph.read @a {graph.block = 0 : i64} : tensor<4x8xf32>
    %0 = graph.matmul %x, %a {graph.block = 0 : i64} : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %b = graph.read @b {graph.block = 0 : i64} : tensor<8x12xf32>
    %1 = graph.matmul %0, %b {graph.block = 0 : i64} : (tensor<8x8xf32>, tensor<8x12xf32>) -> tensor<8x12xf32>
    %2 = graph.reshape %1 {graph.block = 0 : i64} : (tensor<8x12xf32>) -> tensor<2x4x4x3xf32>
    %3 = graph.windows_sum %2 {axis = 1 : i64, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>, graph.block = 0 : i64} : (tensor<2x4x4x3xf32>) -> tensor<2x5x3xf32>
    %loss = graph.reduce_sum %3 {axes = array<i64: 0, 1, 2>, graph.block = 0 : i64} : (tensor<2x5x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Of a constant that is not one number each shard takes its own, by its number.

// CHECK-LABEL: module @slopes
// CHECK: func.func @forward({{.*}}, [[C:%.*]]: tensor<7xi32> {graph.context, graph.name = "context"})
// CHECK: [[S:%.*]] = graph.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK: [[K:%.*]] = dist.shared [[C]]
// CHECK: graph.slice [[K]] {{.*}}starts = array<i64: 5>
// CHECK: [[N:%.*]] = dist.shared {{.*}}tensor<1xi32> 1
// CHECK: [[E:%.*]] = graph.constant dense<2> : tensor<i32>
// CHECK: [[O:%.*]] = graph.mul [[N]], [[E]]
// CHECK: [[F:%.*]] = graph.constant dense<[0, 1]> : tensor<2xi32>
// CHECK: [[P:%.*]] = graph.add [[F]], [[O]]
// CHECK: [[T:%.*]] = graph.gather [[S]], [[P]] {axis = 0 : i64, graph.block = 0 : i64}
// CHECK: graph.mul {{.*}}, [[T]]
module @slopes {
  graph.parameter @a : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @b : tensor<4x4xf32> from "m" at 64 bytes 64
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<f32> {
    %a = graph.read @a {graph.block = 0 : i64} : tensor<4x4xf32>
    %0 = graph.matmul %x, %a {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %s = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> {graph.block = 0 : i64}
    %1 = graph.mul %0, %s {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %b = graph.read @b {graph.block = 0 : i64} : tensor<4x4xf32>
    %2 = graph.matmul %1, %b {graph.block = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %loss = graph.reduce_sum %2 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Two heads that two others share each: halves have one of them each, quarters take the one that theirs reads.

// CHECK-LABEL: module @grouped
// CHECK: graph.parameter @k.shard.0 : tensor<4x2xf32>
// CHECK: graph.expand {{.*}}-> tensor<3x1x2x2xf32>
// CHECK-NEXT: graph.reshape {{.*}}-> tensor<3x2x2xf32>
// ALONE-LABEL: module @grouped
// ALONE: graph.parameter @q.shard.3 : tensor<4x2xf32>
// ALONE-NOT: @k.shard
// ALONE: [[K:%.*]]:4 = dist.shared {{.*}} : tensor<3x2x1x2xf32> 4
// ALONE: [[D:%.*]] = graph.constant dense<2> : tensor<i32>
// ALONE-NEXT: [[P:%.*]] = graph.div {{.*}}, [[D]]
// ALONE-NEXT: [[T:%.*]] = graph.gather [[K]]#0, [[P]] {axis = 1 : i64, graph.block = 0 : i64} : (tensor<3x2x1x2xf32>, tensor<1xi32>) -> tensor<3x1x1x2xf32>
// ALONE-NEXT: graph.reshape [[T]] {graph.block = 0 : i64} : (tensor<3x1x1x2xf32>) -> tensor<3x1x2xf32>
module @grouped {
  graph.parameter @q : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @k : tensor<4x4xf32> from "m" at 128 bytes 64
  graph.parameter @o : tensor<8x4xf32> from "m" at 192 bytes 128
  func.func @forward(%x: tensor<3x4xf32>) -> tensor<f32> {
    %q = graph.read @q {graph.block = 0 : i64} : tensor<4x8xf32>
    %0 = graph.matmul %x, %q {graph.block = 0 : i64} : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %1 = graph.reshape %0 {graph.block = 0 : i64} : (tensor<3x8xf32>) -> tensor<3x4x2xf32>
    %k = graph.read @k {graph.block = 0 : i64} : tensor<4x4xf32>
    %2 = graph.matmul %x, %k {graph.block = 0 : i64} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %3 = graph.reshape %2 {graph.block = 0 : i64} : (tensor<3x4xf32>) -> tensor<3x2x1x2xf32>
    %4 = graph.expand %3 {graph.block = 0 : i64} : (tensor<3x2x1x2xf32>) -> tensor<3x2x2x2xf32>
    %5 = graph.reshape %4 {graph.block = 0 : i64} : (tensor<3x2x2x2xf32>) -> tensor<3x4x2xf32>
    %6 = graph.mul %1, %5 {graph.block = 0 : i64} : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
    %7 = graph.reshape %6 {graph.block = 0 : i64} : (tensor<3x4x2xf32>) -> tensor<3x8xf32>
    %o = graph.read @o {graph.block = 0 : i64} : tensor<8x4xf32>
    %8 = graph.matmul %7, %o {graph.block = 0 : i64} : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
    %loss = graph.reduce_sum %8 {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Matrices that tokens choose: columns and rows are those of the experts.

// CHECK-LABEL: module @experts
// CHECK: graph.parameter @up.shard.0 : tensor<3x4x4xf32> {{.*}}part_runs = #graph.runs<16 every 32 step 16>
// CHECK: graph.parameter @down.shard.0 : tensor<3x4x4xf32> {{.*}}part_runs = #graph.runs<4 every 8 step 4>
// CHECK: graph.gather {{.*}}-> tensor<2x4x4xf32>
// CHECK: dist.all_reduce {{.*}} : tensor<2x4x1xf32>
module @experts {
  graph.parameter @up : tensor<3x8x4xf32> from "m" at 0 bytes 384
  graph.parameter @down : tensor<3x4x8xf32> from "m" at 384 bytes 384
  func.func @forward(%x: tensor<2x4x1xf32>, %best: tensor<2xi64>) -> tensor<f32> {
    %up = graph.read @up {graph.block = 0 : i64} : tensor<3x8x4xf32>
    %0 = graph.gather %up, %best {axis = 0 : i64, graph.block = 0 : i64} : (tensor<3x8x4xf32>, tensor<2xi64>) -> tensor<2x8x4xf32>
    %1 = graph.matmul %0, %x {graph.block = 0 : i64} : (tensor<2x8x4xf32>, tensor<2x4x1xf32>) -> tensor<2x8x1xf32>
    %2 = graph.relu %1 {graph.block = 0 : i64} : (tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
    %down = graph.read @down {graph.block = 0 : i64} : tensor<3x4x8xf32>
    %3 = graph.gather %down, %best {axis = 0 : i64, graph.block = 0 : i64} : (tensor<3x4x8xf32>, tensor<2xi64>) -> tensor<2x4x8xf32>
    %4 = graph.matmul %3, %2 {graph.block = 0 : i64} : (tensor<2x4x8xf32>, tensor<2x8x1xf32>) -> tensor<2x4x1xf32>
    %loss = graph.reduce_sum %4 {axes = array<i64: 0, 1, 2>, graph.block = 0 : i64} : (tensor<2x4x1xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

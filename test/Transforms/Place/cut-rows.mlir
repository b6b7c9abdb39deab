// RUN: dsopt-opt %s -split-input-file "-cut-rows=shards=2 ranks=2" | FileCheck %s
// RUN: dsopt-opt %s -split-input-file "-cut-rows=shards=4 ranks=2" | FileCheck %s --check-prefix=TWO
// RUN: dsopt-opt %s -split-input-file "-cut-rows=shards=4 ranks=1" | FileCheck %s --check-prefix=ALONE
// RUN: dsopt-opt %s -split-input-file "-cut-rows=shards=1" | FileCheck %s --check-prefix=WHOLE

// A sum is scattered, what follows it is computed for a rank's sequences, and what tensor shards read is
// gathered. The parameter's gradient is added over the ranks that have other rows.

// CHECK-LABEL: module @sequences
// CHECK: [[P:%.*]] = dist.shared %arg0 over [] {graph.block = 0 : i64} : tensor<4x8x64xf32> 1
// CHECK: [[Y:%.*]] = dist.reduce_scatter [[P]] over [tp] {graph.block = 0 : i64} : tensor<4x8x64xf32> to tensor<2x8x64xf32>
// CHECK: [[W:%.*]] = dist.shared %{{.*}} over [tp] {graph.block = 0 : i64} : tensor<64xf32> 1
// CHECK: [[R:%.*]] = graph.mul [[Y]], [[W]] {{.*}}-> tensor<2x8x64xf32>
// CHECK: [[F:%.*]] = graph.reshape [[R]] {{.*}}-> tensor<16x64xf32>
// CHECK: [[G:%.*]] = dist.all_gather [[F]] over [tp] {graph.block = 1 : i64} : tensor<16x64xf32> to tensor<32x64xf32>
// CHECK: [[S:%.*]] = dist.shared [[G]] over [] {graph.block = 1 : i64} : tensor<32x64xf32> 1
// CHECK: graph.matmul [[S]],
// CHECK: dist.all_reduce {{.*}} over [tp] {graph.block = 1 : i64} : tensor<f32>
// CHECK-NOT: dist.tensor

// Each of several shards of a rank is scattered and gathered by itself: of every rank's first ones, and so on.
// TWO-LABEL: module @sequences
// TWO: [[A:%.*]] = graph.reshape {{.*}}-> tensor<2x2x1x8x64xf32>
// TWO: graph.slice [[A]] {{.*}}starts = array<i64: 0, 0, 0, 0, 0>
// TWO: dist.reduce_scatter {{.*}} over [tp] {{.*}} : tensor<2x8x64xf32> to tensor<1x8x64xf32>
// TWO: graph.slice [[A]] {{.*}}starts = array<i64: 0, 1, 0, 0, 0>
// TWO: dist.reduce_scatter {{.*}} over [tp] {{.*}} : tensor<2x8x64xf32> to tensor<1x8x64xf32>
// TWO-COUNT-2: dist.all_gather {{.*}} over [tp] {{.*}} : tensor<8x64xf32> to tensor<16x64xf32>
// TWO: [[C:%.*]] = graph.concat {{.*}}axis = 1 {{.*}}-> tensor<2x2x8x64xf32>
// TWO: graph.reshape [[C]] {{.*}}-> tensor<32x64xf32>

// ALONE-LABEL: module @sequences
// ALONE-COUNT-4: dist.reduce_scatter {{.*}} over [] {{.*}} to tensor<1x8x64xf32>
// ALONE-COUNT-4: dist.all_gather {{.*}} over [] {{.*}} to tensor<8x64xf32>

// WHOLE-LABEL: module @sequences
// WHOLE-NOT: reduce_scatter
module @sequences {
  graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
  graph.parameter @v : tensor<64x16xf32> from "m" at 256 bytes 4096
  func.func @forward(%p: tensor<4x8x64xf32>) -> tensor<f32> {
    %y = dist.all_reduce %p over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<4x8x64xf32>
    %w = graph.read @w {graph.block = 0 : i64} : tensor<64xf32>
    %r = graph.mul %y, %w {graph.block = 0 : i64} : (tensor<4x8x64xf32>, tensor<64xf32>) -> tensor<4x8x64xf32>
    %f = graph.reshape %r {graph.block = 0 : i64} : (tensor<4x8x64xf32>) -> tensor<32x64xf32>
    %v = graph.read @v {graph.block = 1 : i64} : tensor<64x16xf32>
    %s = dist.shared %f over [tp] {dist.tensor, graph.block = 1 : i64} : tensor<32x64xf32> 1
    %a = graph.matmul %s, %v {graph.block = 1 : i64} : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
    %l = graph.reduce_sum %a {axes = array<i64: 0, 1>, graph.block = 1 : i64} : (tensor<32x16xf32>) -> tensor<f32>
    %loss = dist.all_reduce %l over [tp] {dist.tensor, graph.block = 1 : i64} : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Three sequences: each shard has some positions of all of them. Masks of dropout are those of the whole, and a
// table by position is taken in slices.

// CHECK-LABEL: module @positions
// CHECK: [[T:%.*]] = graph.transpose {{.*}}-> tensor<4x3x1x64xf32>
// CHECK: [[Y:%.*]] = dist.reduce_scatter [[T]] over [tp] {{.*}} to tensor<2x3x1x64xf32>
// CHECK: [[D:%.*]] = graph.dropout {{.*}}graph.block = 0 : i64, ratio = 5.000000e-01 : f64, runs = #graph.runs<128 every 256 step 128>}
// CHECK: [[E:%.*]] = dist.shared %{{.*}} over [tp] {{.*}} : tensor<1x4x64xf32> 1
// CHECK: [[P:%.*]] = graph.gather [[E]], {{.*}}-> tensor<1x2x64xf32>
// CHECK: graph.add [[D]], [[P]] {{.*}}-> tensor<3x2x64xf32>
// CHECK: dist.all_gather
module @positions {
  graph.parameter @e : tensor<1x4x64xf32> from "m" at 0 bytes 1024
  func.func @forward(%p: tensor<3x4x64xf32>, %context: tensor<7xi32> {graph.context, graph.name = "context"}) -> tensor<f32> {
    %n = graph.constant dense<[1, 2]> : tensor<2xi32> {graph.block = 0 : i64}
    %y = dist.all_reduce %p over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<3x4x64xf32>
    %d = graph.dropout %y, %context, %n {ratio = 0.5 : f64, graph.block = 0 : i64} : (tensor<3x4x64xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<3x4x64xf32>
    %e = graph.read @e {graph.block = 0 : i64} : tensor<1x4x64xf32>
    %r = graph.add %d, %e {graph.block = 0 : i64} : (tensor<3x4x64xf32>, tensor<1x4x64xf32>) -> tensor<3x4x64xf32>
    %s = dist.shared %r over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<3x4x64xf32> 1
    %l = graph.reduce_sum %s {axes = array<i64: 0, 1, 2>, graph.block = 0 : i64} : (tensor<3x4x64xf32>) -> tensor<f32>
    %loss = dist.all_reduce %l over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What all ranks compute alike of rows reads them gathered, and is no row's. There is little of it here.

// CHECK-LABEL: module @alike
// CHECK: dist.reduce_scatter
// CHECK: dist.reduce_scatter
// CHECK: [[R:%.*]] = graph.add {{.*}}-> tensor<1x2x64xf32>
// CHECK: [[H:%.*]] = graph.slice [[R]] {{.*}}-> tensor<1x1x64xf32>
// CHECK: dist.all_gather [[R]] over [tp] {graph.block = 0 : i64}
// CHECK: dist.all_gather [[H]] over [tp] {alike, graph.block = 0 : i64} : tensor<1x1x64xf32> to tensor<2x1x64xf32>
// CHECK: graph.matmul {{.*}}-> tensor<2x1x8xf32>
module @alike {
  graph.parameter @v : tensor<2x64x8xf32> from "m" at 0 bytes 4096
  func.func @forward(%p: tensor<2x2x64xf32>, %q: tensor<2x2x64xf32>) -> tensor<f32> {
    %x = dist.all_reduce %p over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x2x64xf32>
    %y = dist.all_reduce %q over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x2x64xf32>
    %r = graph.add %x, %y {graph.block = 0 : i64} : (tensor<2x2x64xf32>, tensor<2x2x64xf32>) -> tensor<2x2x64xf32>
    %h = graph.slice %r {starts = array<i64: 0, 1, 0>, sizes = array<i64: 2, 1, 64>, steps = array<i64: 1, 1, 1>, graph.block = 0 : i64} : (tensor<2x2x64xf32>) -> tensor<2x1x64xf32>
    %s = dist.shared %r over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x2x64xf32> 1
    %v = graph.read @v {graph.block = 0 : i64} : tensor<2x64x8xf32>
    %a = graph.matmul %h, %v {graph.block = 0 : i64} : (tensor<2x1x64xf32>, tensor<2x64x8xf32>) -> tensor<2x1x8xf32>
    %k = graph.reduce_sum %a {axes = array<i64: 0, 1, 2>, graph.block = 0 : i64} : (tensor<2x1x8xf32>) -> tensor<f32>
    %l = graph.reduce_sum %s {axes = array<i64: 0, 1, 2>, graph.block = 0 : i64} : (tensor<2x2x64xf32>) -> tensor<f32>
    %m = dist.all_reduce %l over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<f32>
    %loss = graph.add %m, %k {graph.block = 0 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What is no number does not travel.

// CHECK-LABEL: module @numbers
// CHECK-NOT: reduce_scatter
module @numbers {
  func.func @forward(%p: tensor<2x64xf32>) -> tensor<f32> {
    %zero = graph.constant dense<0.0> : tensor<f32> {graph.block = 0 : i64}
    %y = dist.all_reduce %p over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x64xf32>
    %m = graph.less %zero, %y {graph.block = 0 : i64} : (tensor<f32>, tensor<2x64xf32>) -> tensor<2x64xi1>
    %r = graph.where %m, %y, %zero {graph.block = 0 : i64} : (tensor<2x64xi1>, tensor<2x64xf32>, tensor<f32>) -> tensor<2x64xf32>
    %n = dist.shared %m over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x64xi1> 1
    %s = dist.shared %r over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x64xf32> 1
    %t = graph.where %n, %s, %zero {graph.block = 0 : i64} : (tensor<2x64xi1>, tensor<2x64xf32>, tensor<f32>) -> tensor<2x64xf32>
    %l = graph.reduce_sum %t {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x64xf32>) -> tensor<f32>
    %loss = dist.all_reduce %l over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What the shards do not divide stays, and so does what would be gathered and added beside: %a is whole, and so
// would its gradient be.

// CHECK-LABEL: module @left
// CHECK: dist.all_reduce %arg0 over [tp] {graph.block = 0 : i64} : tensor<3x5x64xf32>
// CHECK: dist.shared {{.*}} over [tp] {graph.block = 0 : i64} : tensor<3x5x64xf32> 1
// CHECK: dist.all_reduce %arg1 over [tp] {graph.block = 0 : i64} : tensor<2x64xf32>
// CHECK: dist.shared {{.*}} over [tp] {graph.block = 0 : i64} : tensor<2x64xf32> 1
// CHECK-NOT: reduce_scatter
module @left {
  graph.parameter @a : tensor<2x64xf32> from "m" at 0 bytes 512
  func.func @forward(%p: tensor<3x5x64xf32>, %q: tensor<2x64xf32>) -> tensor<f32> {
    %x = dist.all_reduce %p over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<3x5x64xf32>
    %g = graph.gelu %x {graph.block = 0 : i64} : (tensor<3x5x64xf32>) -> tensor<3x5x64xf32>
    %s = dist.shared %g over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<3x5x64xf32> 1
    %y = dist.all_reduce %q over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x64xf32>
    %a = graph.read @a {graph.block = 0 : i64} : tensor<2x64xf32>
    %z = graph.add %y, %a {graph.block = 0 : i64} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
    %t = dist.shared %z over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<2x64xf32> 1
    %k = graph.reduce_sum %s {axes = array<i64: 0, 1, 2>, graph.block = 0 : i64} : (tensor<3x5x64xf32>) -> tensor<f32>
    %l = graph.reduce_sum %t {axes = array<i64: 0, 1>, graph.block = 0 : i64} : (tensor<2x64xf32>) -> tensor<f32>
    %m = graph.add %k, %l {graph.block = 0 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %loss = dist.all_reduce %m over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<f32>
    return %loss : tensor<f32>
  }
}

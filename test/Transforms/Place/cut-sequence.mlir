// RUN: dsopt-opt %s -split-input-file "-cut-sequence=shards=2 ranks=2 method=ring" | FileCheck %s
// RUN: dsopt-opt %s -split-input-file "-cut-sequence=shards=4 ranks=1 method=ring" | FileCheck %s --check-prefix=ALONE
// RUN: dsopt-opt %s -split-input-file "-cut-sequence=shards=2 ranks=2 method=ulysses" | FileCheck %s --check-prefix=HEADS
// RUN: dsopt-opt %s -split-input-file "-cut-sequence=shards=2 ranks=2 method=ulysses" 2>&1 | FileCheck %s --check-prefix=SAYS
// RUN: dsopt-opt %s -split-input-file "-cut-sequence=shards=4 ranks=4 method=ulysses*2" | FileCheck %s --check-prefix=BOTH
// RUN: not dsopt-opt %s -split-input-file "-cut-sequence=shards=4 ranks=4 method=ulysses*3" 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: dsopt-opt %s -split-input-file "-cut-sequence=shards=1" | FileCheck %s --check-prefix=WHOLE

// Rows of queries stay with a rank, and so do keys, which go along the ring. Inputs are taken in slices, whole
// parameters are shared, a sum over all positions is added.

// CHECK-LABEL: module @attention
// CHECK: [[C:%.*]] = dist.shared %arg1 over []
// CHECK: graph.slice [[C]] {{.*}}starts = array<i64: 6>
// CHECK: [[X:%.*]] = graph.gather %arg0, {{.*}}{axis = 2 : i64, graph.block = 0 : i64} : (tensor<1x2x8x4xf32>, tensor<4xi32>) -> tensor<1x2x4x4xf32>
// CHECK: [[W:%.*]] = dist.shared {{.*}} over [] {exact, graph.block = 0 : i64} : tensor<4xf32> 1
// CHECK: [[Q:%.*]] = graph.mul [[X]], [[W]] {{.*}}-> tensor<1x2x4x4xf32>
// CHECK: dist.attention [[Q]], [[Q]], [[Q]] over [sp] {begin = 0 : i64, causal, entries = 1 : i64, graph.block = 0 : i64, {{.*}}pairs = 2 : i64, {{.*}}scale = 5.000000e-01 : f64, shards = 2 : i64}
// CHECK: [[P:%.*]] = graph.reduce_sum {{.*}}(tensor<1x2x4x4xf32>) -> tensor<f32>
// CHECK: dist.all_reduce [[P]] over [sp]

// Four shards of one rank meet there.
// ALONE-LABEL: module @attention
// ALONE: dist.attention {{.*}} over [] {{.*}}entries = 4 : i64, {{.*}}shards = 4 : i64} : (tensor<4x2x2x4xf32>, tensor<4x2x2x4xf32>, 
// ALONE: graph.tree_add
// ALONE: graph.tree_add
// ALONE: graph.tree_add
// ALONE-NOT: over [sp]

// One of two heads, and all positions: shards are batch entries.
// HEADS-LABEL: module @attention attributes {{.*}}graph.sequence_groups = [{attentions = 1 : i64, elements = array<i64: 128, 256>, group = 2 : i64, groups = array<i64: 2, 1>, picoseconds =
// HEADS: dist.all_to_all {{.*}} over [sp] {graph.block = 0 : i64} : tensor<8x1x1x4xf32>
// HEADS: dist.attention {{.*}} over [] {begin = 0 : i64, causal, entries = 2 : i64, graph.block = 0 : i64, {{.*}}pairs = 2 : i64, {{.*}}shards = 2 : i64} : (tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>)
// HEADS: dist.all_to_all {{.*}} over [sp] {graph.block = 0 : i64} : tensor<8x1x1x4xf32>
// HEADS-NOT: all_gather
// HEADS-LABEL: module @shifted

// SAYS: warning: has 1 heads and 1 of keys and values, which groups of 2 ranks do not divide: they are groups of 1, whatever -sp-method=ulysses asks for

// Two of four ranks exchange heads, and groups are a ring.
// BOTH-LABEL: module @attention
// BOTH: dist.all_to_all {{.*}} over [sp inner 2] {graph.block = 0 : i64} : tensor<4x1x1x4xf32>
// BOTH: dist.attention {{.*}} over [sp outer 2] {begin = 0 : i64, causal, entries = 2 : i64, graph.block = 0 : i64, {{.*}}pairs = 2 : i64, {{.*}}shards = 4 : i64} : (tensor<2x1x2x4xf32>, tensor<2x1x2x4xf32>, tensor<2x1x2x4xf32>)
// BOTH: dist.all_to_all {{.*}} over [sp inner 2] {graph.block = 0 : i64} : tensor<4x1x1x4xf32>

// REFUSED: error: -sp-method=ulysses*3 with -sp=4: expected a divisor of -sp

// WHOLE-LABEL: module @attention
// WHOLE-NOT: dist.
module @attention {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  func.func @forward(%x: tensor<1x2x8x4xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<4xf32>
    %q = graph.mul %x, %w {graph.block = 0 : i64} : (tensor<1x2x8x4xf32>, tensor<4xf32>) -> tensor<1x2x8x4xf32>
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64, causal, graph.block = 0 : i64} : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x8xf32>)
    %loss = graph.reduce_sum %a {axes = array<i64: 0, 1, 2, 3>, graph.block = 0 : i64} : (tensor<1x2x8x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A shifted loss: shards have all rows, of which those that the slice leaves out count nothing. What it is
// compared with is taken at the same places, within bounds.
// CHECK-LABEL: module @shifted
// CHECK: dist.attention
// CHECK: [[D:%.*]] = graph.sub {{.*}}-> tensor<1x1x4x2xf32>
// CHECK: [[Z:%.*]] = graph.where {{.*}}, [[D]], {{.*}}-> tensor<1x1x4x2xf32>
// CHECK: graph.reduce_sum [[Z]]
module @shifted {
  graph.parameter @w : tensor<2xf32> from "m" at 0 bytes 8
  func.func @forward(%x: tensor<1x1x8x2xf32>, %y: tensor<1x1x7x2xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<2xf32>
    %q = graph.mul %x, %w {graph.block = 0 : i64} : (tensor<1x1x8x2xf32>, tensor<2xf32>) -> tensor<1x1x8x2xf32>
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64, graph.block = 0 : i64} : (tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>) -> (tensor<1x1x8x2xf32>, tensor<1x1x8xf32>)
    %s = graph.slice %a {starts = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 1, 7, 2>, steps = array<i64: 1, 1, 1, 1>, graph.block = 0 : i64} : (tensor<1x1x8x2xf32>) -> tensor<1x1x7x2xf32>
    %d = graph.sub %s, %y {graph.block = 0 : i64} : (tensor<1x1x7x2xf32>, tensor<1x1x7x2xf32>) -> tensor<1x1x7x2xf32>
    %loss = graph.reduce_sum %d {axes = array<i64: 0, 1, 2, 3>, graph.block = 0 : i64} : (tensor<1x1x7x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// One row is of one shard, the others have zeros of it; what all ranks compute of it counts on the first.
// CHECK-LABEL: module @row
// CHECK: [[A:%.*]], %{{.*}} = dist.attention
// CHECK: [[L:%.*]] = graph.slice [[A]] {{.*}}sizes = array<i64: 1, 1, 4, 2>
// CHECK: [[R:%.*]] = graph.gather [[L]], {{.*}}-> tensor<1x1x1x2xf32>
// CHECK: [[O:%.*]] = graph.where {{.*}}, [[R]],
// CHECK: [[S:%.*]] = dist.all_reduce [[O]] over [sp]
// CHECK: [[W:%.*]] = graph.where {{.*}}, [[V:%.*]], {{%.*}} {graph.block = 0 : i64} : (tensor<1xi1>, tensor<2xf32>, tensor<2xf32>)
// CHECK: graph.mul [[S]], [[W]]
module @row {
  graph.parameter @w : tensor<2xf32> from "m" at 0 bytes 8
  graph.parameter @v : tensor<2xf32> from "m" at 8 bytes 8
  func.func @forward(%x: tensor<1x1x8x2xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<2xf32>
    %q = graph.mul %x, %w {graph.block = 0 : i64} : (tensor<1x1x8x2xf32>, tensor<2xf32>) -> tensor<1x1x8x2xf32>
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64, graph.block = 0 : i64} : (tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>) -> (tensor<1x1x8x2xf32>, tensor<1x1x8xf32>)
    %s = graph.slice %a {starts = array<i64: 0, 0, 5, 0>, sizes = array<i64: 1, 1, 1, 2>, steps = array<i64: 1, 1, 1, 1>, graph.block = 0 : i64} : (tensor<1x1x8x2xf32>) -> tensor<1x1x1x2xf32>
    %v = graph.read @v {graph.block = 0 : i64} : tensor<2xf32>
    %h = graph.mul %s, %v {graph.block = 0 : i64} : (tensor<1x1x1x2xf32>, tensor<2xf32>) -> tensor<1x1x1x2xf32>
    %loss = graph.reduce_sum %h {axes = array<i64: 0, 1, 2, 3>, graph.block = 0 : i64} : (tensor<1x1x1x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A window of three positions, the last of which is the row's: each shard reads two rows of the one before, which are
// gathered with those of all others; the first one has nothing before it.
// CHECK-LABEL: module @windows
// CHECK: [[A:%.*]], %{{.*}} = dist.attention
// CHECK: [[E:%.*]] = graph.slice [[A]] {{.*}}sizes = array<i64: 1, 1, 2, 2>, starts = array<i64: 0, 0, 2, 0>
// CHECK: [[R:%.*]] = graph.reshape [[E]]
// CHECK: [[G:%.*]] = dist.all_gather [[R]] over [sp] {{.*}}: tensor<2x2xf32> to tensor<4x2xf32>
// CHECK: [[F:%.*]] = graph.reshape [[G]] {{.*}}-> tensor<1x1x4x2xf32>
// CHECK: [[S:%.*]] = dist.shared [[F]] over [] {graph.block = 0 : i64} : tensor<1x1x4x2xf32> 1
// CHECK: graph.constant {{.*}}dense<[-2, -1]>
// CHECK: [[B:%.*]] = graph.gather [[S]], {{.*}}{axis = 2 : i64
// CHECK: [[V:%.*]] = graph.constant {{.*}}dense<5.000000e-01>
// CHECK: [[N:%.*]] = graph.where {{%.*}}, [[B]], [[V]]
// CHECK: [[J:%.*]] = graph.concat [[N]], [[A]] {axis = 2 : i64, graph.block = 0 : i64} : (tensor<1x1x2x2xf32>, tensor<1x1x4x2xf32>) -> tensor<1x1x6x2xf32>
// CHECK: graph.windows [[J]] {axis = 2 : i64, counts = array<i64: 4>, {{.*}}lows = array<i64: 0>, {{.*}}-> tensor<1x1x4x3x2xf32>
module @windows {
  graph.parameter @w : tensor<2xf32> from "m" at 0 bytes 8
  func.func @forward(%x: tensor<1x1x8x2xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64} : tensor<2xf32>
    %q = graph.mul %x, %w {graph.block = 0 : i64} : (tensor<1x1x8x2xf32>, tensor<2xf32>) -> tensor<1x1x8x2xf32>
    %a, %l = graph.attention %q, %q, %q {scale = 0.5 : f64, graph.block = 0 : i64} : (tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>) -> (tensor<1x1x8x2xf32>, tensor<1x1x8xf32>)
    %p = graph.windows %a {axis = 2, counts = array<i64: 8>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 2>, value = 0.5 : f32, graph.block = 0 : i64} : (tensor<1x1x8x2xf32>) -> tensor<1x1x8x3x2xf32>
    %loss = graph.reduce_sum %p {axes = array<i64: 0, 1, 2, 3, 4>, graph.block = 0 : i64} : (tensor<1x1x8x3x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

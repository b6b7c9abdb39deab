// RUN: dsopt-opt %s -split-input-file "-place-values=shards=2 ranks=2" | FileCheck %s
// RUN: dsopt-opt %s -split-input-file "-place-values=shards=2 ranks=1" | FileCheck %s --check-prefix=ALONE

// One table for words and classes, of an odd number of rows: the second shard has one of zeros. Each shard looks for its own words and
// gives zeros for others; of the loss it has a place of its own for the logarithm of its sum, and the label's term where it has the label. Nothing is computed
// of what shards share for several of them at once.

// CHECK-LABEL: module @tied
// CHECK: graph.parameter @table.shard.0 : tensor<21x2xf32> {{.*}}part_begin = 0 : i64, part_of = @table, part_runs = #graph.runs<42 every 84 step 42>
// CHECK: func.func @forward(%arg0: tensor<3xi64>, %arg1: tensor<3xi64>, [[CONTEXT:%.*]]: tensor<7xi32> {graph.context, graph.name = "context"})
// CHECK: [[IDS:%.*]] = dist.shared %arg0 over [tp]
// CHECK: [[MINE:%.*]] = dist.shared [[CONTEXT]] over [tp]
// CHECK: graph.slice [[MINE]] {{.*}}starts = array<i64: 5>
// CHECK: [[NUMBER:%.*]] = dist.shared {{.*}} over [] {graph.block = 0 : i64} : tensor<1xi64> 1
// CHECK: [[BEGIN:%.*]] = graph.mul [[NUMBER]]
// CHECK: [[LOCAL:%.*]] = graph.sub {{.*}}, [[BEGIN]]
// CHECK: [[READABLE:%.*]] = graph.where [[OWN:%.*]], [[LOCAL]], {{.*}}
// CHECK: [[ROWS:%.*]] = graph.gather {{.*}}, [[READABLE]] {axis = 0 : i64, graph.block = 0 : i64} : (tensor<21x2xf32>, tensor<3xi64>)
// CHECK: [[PIECE:%.*]] = graph.where {{.*}}, [[ROWS]], {{.*}}graph.block = 0
// CHECK: dist.all_reduce [[PIECE]] over [tp] {dist.tensor, graph.block = 0 : i64} : tensor<3x2xf32>
// CHECK: [[LOGITS:%.*]] = graph.matmul {{.*}}(tensor<3x2xf32>, tensor<21x2xf32>) -> tensor<3x21xf32>
// CHECK-NOT: graph.linear_nll
// CHECK: graph.constant dense<41> : tensor<i64>
// CHECK: [[REAL:%.*]] = graph.where {{.*}}, [[LOGITS]], {{.*}}(tensor<1x21xi1>, tensor<3x21xf32>, tensor<f32>)
// CHECK: graph.nll [[REAL]], {{.*}} {graph.block = 1 : i64, ignore_index = -1 : i64}
// CHECK: dist.all_reduce {{.*}} over [tp] {dist.tensor, graph.block = 1 : i64} : tensor<3x2xf32>
// CHECK: dist.all_reduce {{.*}} over [tp] {dist.tensor, graph.block = 1 : i64} : tensor<3xf32>
// CHECK: graph.stop_gradient

// A rank that has both adds their pieces, and asks for its place all the same.
// ALONE-LABEL: module @tied
// ALONE: graph.parameter @table.shard.1 : tensor<21x2xf32> {{.*}}part_begin = 42 : i64, part_of = @table, part_runs = #graph.runs<42 every 84 step 84>
// ALONE: graph.slice {{.*}}starts = array<i64: 5>
// ALONE: graph.tree_add {{.*}}tensor<3x2xf32>
// ALONE: graph.tree_add {{.*}}tensor<3x2xf32>
// ALONE: graph.tree_add {{.*}}tensor<3xf32>
// ALONE-NOT: all_reduce
module @tied {
  graph.parameter @table : tensor<41x2xf32> from "m" at 0 bytes 328
  func.func @forward(%ids: tensor<3xi64>, %labels: tensor<3xi64>) -> tensor<f32> {
    %words = graph.read @table {graph.block = 0 : i64} : tensor<41x2xf32>
    %x = graph.gather %words, %ids {axis = 0 : i64, graph.block = 0 : i64} : (tensor<41x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
    %classes = graph.read @table {graph.block = 1 : i64} : tensor<41x2xf32>
    %nll = graph.linear_nll %x, %classes, %labels {transpose_b, ignore_index = -100 : i64, graph.block = 1 : i64} : (tensor<3x2xf32>, tensor<41x2xf32>, tensor<3xi64>) -> tensor<3xf32>
    %loss = graph.reduce_sum %nll {axes = array<i64: 0>, graph.block = 1 : i64} : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A table that is read nearly whole stays whole, and so does a loss whose classes shards cannot have in equal columns: it is no other than
// without shards.

// CHECK-LABEL: module @whole
// CHECK: graph.parameter @places : tensor<4x2xf32> {{.*}}uncut = "'graph.gather' takes more than a quarter of its elements"
// CHECK: graph.parameter @table : tensor<40x2xf32>
// CHECK: graph.parameter @table.shard.0 : tensor<20x2xf32>
// CHECK: graph.parameter @head : tensor<2x5xf32> {{.*}}uncut = "5 are not divided by 2"
// CHECK: graph.linear_nll {{.*}} {graph.block = 1 : i64, ignore_index = -100 : i64} : (tensor<3x2xf32>, tensor<2x5xf32>, tensor<3xi64>) -> tensor<3xf32>
module @whole {
  graph.parameter @places : tensor<4x2xf32> from "m" at 0 bytes 32
  graph.parameter @table : tensor<40x2xf32> from "m" at 32 bytes 320
  graph.parameter @head : tensor<2x5xf32> from "m" at 352 bytes 40
  func.func @forward(%ids: tensor<3xi64>, %labels: tensor<3xi64>) -> tensor<f32> {
    %places = graph.read @places {graph.block = 0 : i64} : tensor<4x2xf32>
    %p = graph.gather %places, %ids {axis = 0 : i64, graph.block = 0 : i64} : (tensor<4x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
    %words = graph.read @table {graph.block = 0 : i64} : tensor<40x2xf32>
    %w = graph.gather %words, %ids {axis = 0 : i64, padding_index = 1 : i64, graph.block = 0 : i64} : (tensor<40x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
    %x = graph.add %p, %w {graph.block = 0 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %head = graph.read @head {graph.block = 1 : i64} : tensor<2x5xf32>
    %nll = graph.linear_nll %x, %head, %labels {ignore_index = -100 : i64, graph.block = 1 : i64} : (tensor<3x2xf32>, tensor<2x5xf32>, tensor<3xi64>) -> tensor<3xf32>
    %loss = graph.reduce_sum %nll {axes = array<i64: 0>, graph.block = 1 : i64} : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

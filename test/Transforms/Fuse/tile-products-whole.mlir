// RUN: dsopt-opt %s -split-input-file -tile-products=elements=6144 --remarks-filter-missed=overlap --remark-format=emitRemark -verify-diagnostics | FileCheck %s
// CHECK-NOT: matmul_part
// CHECK-NOT: tile.0

// What the product's block cannot be cut around, and gradients that are more than a product.
#F = #graph.phase<F>
#W = #graph.phase<W>
module attributes {graph.blocks = 1 : i64} {
  // expected-remark@+1 {{@w has 15000 elements and is not cut into tiles: @v is read in front of its product and behind it}}
  graph.parameter @w : tensor<5000x3xf32> from "m" at 0 bytes 60000 frozen
  graph.parameter @v : tensor<3x3xf32> from "m" at 0 bytes 36 frozen
  func.func @micro_batch(%x: tensor<8x3xf32>) -> tensor<8x5000xf32> {
    %v = graph.read @v {graph.block = 0 : i64, graph.phase = #F} : tensor<3x3xf32>
    %h = graph.matmul %x, %v {graph.block = 0 : i64, graph.phase = #F} : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #F} : tensor<5000x3xf32>
    %y = graph.matmul %h, %w {graph.block = 0 : i64, graph.phase = #F, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    %z = graph.matmul %h, %v {graph.block = 0 : i64, graph.phase = #F} : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
    return %y : tensor<8x5000xf32>
  }
}

// -----

#F = #graph.phase<F>
#W = #graph.phase<W>
module attributes {graph.blocks = 1 : i64} {
  // expected-remark@+1 {{@w has 15000 elements and is not cut into tiles: its gradient is not one product}}
  graph.parameter @w : tensor<5000x3xf32> from "m" at 0 bytes 60000
  graph.state @w.grad : tensor<5000x3xf32> gradient of @w block 0
  func.func @micro_batch(%x: tensor<8x3xf32>, %dy: tensor<8x5000xf32>) -> tensor<8x5000xf32> {
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #F} : tensor<5000x3xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64, graph.phase = #F, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    %0 = graph.matmul %dy, %x {graph.block = 0 : i64, graph.phase = #W, transpose_a} : (tensor<8x5000xf32>, tensor<8x3xf32>) -> tensor<5000x3xf32>
    %1 = graph.neg %0 {graph.block = 0 : i64, graph.phase = #W} : (tensor<5000x3xf32>) -> tensor<5000x3xf32>
    graph.accumulate @w.grad, %1 {graph.block = 0 : i64, graph.phase = #W} : tensor<5000x3xf32>
    return %y : tensor<8x5000xf32>
  }
}

// -----

// A kernel adds up for a parameter behind the product what is known in front of it alone.
#F = #graph.phase<F>
#B = #graph.phase<B>
#W = #graph.phase<W>
module attributes {graph.blocks = 1 : i64} {
  // expected-remark@+1 {{@w has 15000 elements and is not cut into tiles: operations of its block need each other across it}}
  graph.parameter @w : tensor<5000x3xf32> from "m" at 0 bytes 60000 frozen
  graph.parameter @b : tensor<8x3xf32> from "m" at 0 bytes 96
  graph.state @b.grad : tensor<8x3xf32> gradient of @b block 0
  func.func @micro_batch(%x: tensor<8x3xf32>, %dy: tensor<8x5000xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>) {
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #F} : tensor<5000x3xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64, graph.phase = #F, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    %b = graph.read @b {graph.block = 0 : i64, graph.phase = #F} : tensor<8x3xf32>
    %z = graph.add %x, %b {graph.block = 0 : i64, graph.phase = #F} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    %w_1 = graph.read @w {graph.block = 0 : i64, graph.phase = #B} : tensor<5000x3xf32>
    %dx = graph.matmul %dy, %w_1 {graph.block = 0 : i64, graph.phase = #B} : (tensor<8x5000xf32>, tensor<5000x3xf32>) -> tensor<8x3xf32>
    %db = graph.neg %dx {graph.block = 0 : i64, graph.phase = #W} : (tensor<8x3xf32>) -> tensor<8x3xf32>
    graph.accumulate @b.grad, %db {graph.block = 0 : i64, graph.phase = #W} : tensor<8x3xf32>
    return %z, %dx : tensor<8x3xf32>, tensor<8x3xf32>
  }
}

// -----

#F = #graph.phase<F>
module attributes {graph.blocks = 1 : i64} {
  // expected-remark@+1 {{@w has 15000 elements and is not cut into tiles: its update sees it whole}}
  graph.parameter @w : tensor<5000x3xf32> from "m" at 0 bytes 60000
  graph.state @w.momentum : tensor<5000x3xf32> optimizer "momentum" of @w
  func.func @micro_batch(%x: tensor<8x3xf32>) -> tensor<8x5000xf32> {
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #F} : tensor<5000x3xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64, graph.phase = #F, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    return %y : tensor<8x5000xf32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %w = graph.read @w : tensor<5000x3xf32>
    %m = graph.read @w.momentum : tensor<5000x3xf32>
    %0:2 = graph.muon %w, %w, %m, %s {functions = #graph.functions<matrix = @muon.5000x3>} : (tensor<5000x3xf32>, tensor<5000x3xf32>, tensor<5000x3xf32>, tensor<16xf32>) -> (tensor<5000x3xf32>, tensor<5000x3xf32>)
    graph.write @w, %0#0 : tensor<5000x3xf32>
    return
  }
}

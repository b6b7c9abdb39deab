// RUN: dsopt-opt %s -tile-products=elements=6144 --remarks-filter-missed=overlap --remark-format=emitRemark -verify-diagnostics -o /dev/null
// RUN: sed /expected/d %s | dsopt-opt -tile-products=elements=6144 2>/dev/null | FileCheck %s
// RUN: sed /expected/d %s | dsopt-opt -tile-products=elements=6144 -form-blocks 2>/dev/null | FileCheck %s --check-prefix=BLOCKS
// RUN: sed /expected/d %s | dsopt-opt -tile-products 2>/dev/null | FileCheck %s --check-prefix=NONE

// A weight of 5000 rows in tiles of 2048: forward gives columns of the result, backward adds over tiles, so that the last block has
// the first of them. What is behind the product is a block behind the tiles, the next block follows.
// CHECK: graph.blocks = 5
// NONE: graph.blocks = 2
// NONE-NOT: tile
#F = #graph.phase<F>
#B = #graph.phase<B>
#W = #graph.phase<W>
#E = #graph.phase<E>
module attributes {graph.blocks = 2 : i64} {
  // CHECK: graph.parameter @w : tensor<5000x3xf32> from "m" at 100 bytes 60000 {lr_scale = 2.0{{.*}}}
  // CHECK-NEXT: graph.parameter @w.tile.0 : tensor<2048x3xf32> from "m" at 100 bytes 24576 {lr_scale = 2.0{{.*}}, name = "w", part_begin = 0 : i64, part_of = @w}
  // CHECK-NEXT: graph.parameter @w.tile.1 : tensor<2048x3xf32> from "m" at 24676 bytes 24576 {{.*}}part_begin = 6144 : i64
  // CHECK-NEXT: graph.parameter @w.tile.2 : tensor<904x3xf32> from "m" at 49252 bytes 10848 {{.*}}part_begin = 12288 : i64
  graph.parameter @w : tensor<5000x3xf32> from "m" at 100 bytes 60000 {lr_scale = 2.0 : f64}
  graph.parameter @b : tensor<5000xf32> from "m" at 60100 bytes 20000
  // expected-remark@+1 {{@short has 12285 elements and is not cut into tiles: it has fewer than 4096 rows}}
  graph.parameter @short : tensor<4095x3xf32> from "m" at 0 bytes 49140 frozen
  // expected-remark@+1 {{@table has 15000 elements and is not cut into tiles: 'graph.gather' reads it}}
  graph.parameter @table : tensor<5000x3xf32> from "m" at 0 bytes 60000 frozen
  // expected-remark@+1 {{@twice has 15000 elements and is not cut into tiles: several products take it}}
  graph.parameter @twice : tensor<5000x3xf32> from "m" at 0 bytes 60000 frozen
  // expected-remark@+1 {{@row has 15000 elements and is not cut into tiles: its product is not one of matrices of several rows and columns}}
  graph.parameter @row : tensor<5000x3xf32> from "m" at 0 bytes 60000 frozen
  // CHECK: graph.state @w.grad.tile.0 : tensor<2048x3xf32> gradient of @w.tile.0 block 2
  // CHECK-NEXT: graph.state @w.grad.tile.1 : tensor<2048x3xf32> gradient of @w.tile.1 block 1
  // CHECK-NEXT: graph.state @w.grad.tile.2 : tensor<904x3xf32> gradient of @w.tile.2 block 0
  // CHECK-NEXT: graph.state @b.grad : tensor<5000xf32> gradient of @b block 3
  // CHECK-NEXT: graph.state @w.m.tile.0 : tensor<2048x3xf32> optimizer "m" of @w.tile.0
  // CHECK-NOT: graph.state @w.grad :
  graph.state @w.grad : tensor<5000x3xf32> gradient of @w block 0
  graph.state @b.grad : tensor<5000xf32> gradient of @b block 0
  graph.state @w.m : tensor<5000x3xf32> optimizer "m" of @w

  // CHECK-LABEL: func.func @micro_batch
  // CHECK: %[[W2:.*]] = graph.read @w.tile.2 {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  // CHECK-NEXT: %[[Y2:.*]] = graph.matmul_part %arg0, %[[W2]] {graph.block = 0 : i64, {{.*}}transpose_b, whole = array<i64: 8, 5000, 3>} : (tensor<8x3xf32>, tensor<904x3xf32>) -> tensor<8x904xf32>
  // CHECK: %[[Y1:.*]] = graph.matmul_part %arg0, %{{.*}} {graph.block = 1 : i64, {{.*}} -> tensor<8x2952xf32>
  // CHECK: %[[Y0:.*]] = graph.matmul_part %arg0, %{{.*}} {graph.block = 2 : i64, {{.*}} -> tensor<8x2952xf32>
  // CHECK: %[[Y:.*]] = graph.kernel @concat(%[[Y0]], %[[Y1]], %[[Y2]]) {graph.block = 2 : i64, graph.phase = #graph.phase<F>}
  // CHECK: graph.kernel @bias(%[[Y]], %{{.*}}) {graph.block = 3 : i64, graph.phase = #graph.phase<F>}
  // CHECK: graph.kernel @loss(%{{.*}}) {graph.block = 4 : i64, graph.phase = #graph.phase<F>}
  // CHECK: %[[DY:.*]] = graph.kernel @grad(%{{.*}}) {graph.block = 3 : i64, graph.phase = #graph.phase<B>}
  // CHECK: %[[D0:.*]] = graph.slice %[[DY]] {graph.block = 2 : i64, {{.*}}sizes = array<i64: 8, 2048>, starts = array<i64: 0, 0>, {{.*}}view = #graph.view<read>}
  // CHECK: %[[X0:.*]] = graph.matmul_part %[[D0]], %{{.*}} {graph.block = 2 : i64, graph.phase = #graph.phase<B>, whole = array<i64: 8, 3, 5000>}
  // CHECK: %[[X1:.*]] = graph.matmul_part %{{.*}}, %{{.*}}, %[[X0]] {graph.block = 1 : i64, graph.phase = #graph.phase<B>, whole = array<i64: 8, 3, 5000>}
  // CHECK: %[[X2:.*]] = graph.matmul_part %{{.*}}, %{{.*}}, %[[X1]] {graph.block = 0 : i64, graph.phase = #graph.phase<B>, whole = array<i64: 8, 3, 5000>}
  // CHECK: %[[G:.*]] = graph.matmul_part %{{.*}}, %arg0 {graph.block = 0 : i64, graph.phase = #graph.phase<W>, transpose_a, whole = array<i64: 5000, 3, 8>} {{.*}} -> tensor<904x3xf32>
  // CHECK: graph.accumulate @w.grad.tile.2, %[[G]] {graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  // CHECK: graph.accumulate @w.grad.tile.0
  // CHECK: graph.accumulate @b.grad, %{{.*}} {graph.block = 3 : i64, graph.phase = #graph.phase<W>}
  // CHECK: return %{{.*}}, %[[X2]]
  // BLOCKS: func.func private @block0.F
  // BLOCKS: func.func private @block4.F
  // BLOCKS-NOT: @block5
  func.func @micro_batch(%x: tensor<8x3xf32>) -> (tensor<f32>, tensor<8x3xf32>) {
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #F} : tensor<5000x3xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64, graph.phase = #F, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    %b = graph.read @b {graph.block = 0 : i64, graph.phase = #F} : tensor<5000xf32>
    %z = graph.kernel @bias(%y, %b) {graph.block = 0 : i64, graph.phase = #F} : (tensor<8x5000xf32>, tensor<5000xf32>) -> tensor<8x5000xf32>
    %loss = graph.kernel @loss(%z) {graph.block = 1 : i64, graph.phase = #F} : (tensor<8x5000xf32>) -> tensor<f32>
    %dy = graph.kernel @grad(%z) {graph.block = 0 : i64, graph.phase = #B} : (tensor<8x5000xf32>) -> tensor<8x5000xf32>
    %w_1 = graph.read @w {graph.block = 0 : i64, graph.phase = #B} : tensor<5000x3xf32>
    %dx = graph.matmul %dy, %w_1 {graph.block = 0 : i64, graph.phase = #B} : (tensor<8x5000xf32>, tensor<5000x3xf32>) -> tensor<8x3xf32>
    %dw = graph.matmul %dy, %x {graph.block = 0 : i64, graph.phase = #W, transpose_a} : (tensor<8x5000xf32>, tensor<8x3xf32>) -> tensor<5000x3xf32>
    graph.accumulate @w.grad, %dw {graph.block = 0 : i64, graph.phase = #W} : tensor<5000x3xf32>
    %db = graph.kernel @sum(%dy) {graph.block = 0 : i64, graph.phase = #W} : (tensor<8x5000xf32>) -> tensor<5000xf32>
    graph.accumulate @b.grad, %db {graph.block = 0 : i64, graph.phase = #W} : tensor<5000xf32>
    return %loss, %dx : tensor<f32>, tensor<8x3xf32>
  }

  // CHECK-LABEL: func.func @evaluate
  // CHECK: graph.matmul_part {{.*}}graph.phase = #graph.phase<E>
  // CHECK: graph.kernel @concat
  func.func @evaluate(%x: tensor<8x3xf32>, %i: tensor<8xi64>, %r: tensor<1x3xf32>, %v: tensor<8x4095xf32>) -> tensor<f32> {
    %w = graph.read @w {graph.block = 0 : i64, graph.phase = #E} : tensor<5000x3xf32>
    %y = graph.matmul %x, %w {graph.block = 0 : i64, graph.phase = #E, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    %short = graph.read @short {graph.block = 1 : i64, graph.phase = #E} : tensor<4095x3xf32>
    %s = graph.matmul %v, %short {graph.block = 1 : i64, graph.phase = #E} : (tensor<8x4095xf32>, tensor<4095x3xf32>) -> tensor<8x3xf32>
    %table = graph.read @table {graph.block = 1 : i64, graph.phase = #E} : tensor<5000x3xf32>
    %g = graph.gather %table, %i {axis = 0 : i64, graph.block = 1 : i64, graph.phase = #E} : (tensor<5000x3xf32>, tensor<8xi64>) -> tensor<8x3xf32>
    %twice = graph.read @twice {graph.block = 1 : i64, graph.phase = #E} : tensor<5000x3xf32>
    %t = graph.matmul %x, %twice {graph.block = 1 : i64, graph.phase = #E, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    %u = graph.matmul %s, %twice {graph.block = 1 : i64, graph.phase = #E, transpose_b} : (tensor<8x3xf32>, tensor<5000x3xf32>) -> tensor<8x5000xf32>
    %row = graph.read @row {graph.block = 1 : i64, graph.phase = #E} : tensor<5000x3xf32>
    %q = graph.matmul %r, %row {graph.block = 1 : i64, graph.phase = #E, transpose_b} : (tensor<1x3xf32>, tensor<5000x3xf32>) -> tensor<1x5000xf32>
    %loss = graph.kernel @loss(%y) {graph.block = 1 : i64, graph.phase = #E} : (tensor<8x5000xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }

  // CHECK-LABEL: func.func @update
  // CHECK: graph.read @b
  // CHECK: %[[P0:.*]] = graph.read @w.tile.0 : tensor<2048x3xf32>
  // CHECK: %[[NP:.*]], %{{.*}} = graph.momentum %[[P0]], %{{.*}}functions = #graph.functions<kernel = @flat>} : (tensor<2048x3xf32>
  // CHECK: graph.write @w.tile.0, %[[NP]] : tensor<2048x3xf32>
  // CHECK: graph.write @w.m.tile.0
  // CHECK: graph.write @w.m.tile.2
  func.func @update(%scalars: tensor<16xf32>) {
    %b = graph.read @b : tensor<5000xf32>
    %bg = graph.read @b.grad : tensor<5000xf32>
    %nb = graph.sgd %b, %bg, %scalars : (tensor<5000xf32>, tensor<5000xf32>, tensor<16xf32>) -> tensor<5000xf32>
    graph.write @b, %nb : tensor<5000xf32>
    %w = graph.read @w : tensor<5000x3xf32>
    %g = graph.read @w.grad : tensor<5000x3xf32>
    %m = graph.read @w.m : tensor<5000x3xf32>
    %nw, %nm = graph.momentum %w, %g, %m, %scalars {functions = #graph.functions<kernel = @flat>} : (tensor<5000x3xf32>, tensor<5000x3xf32>, tensor<5000x3xf32>, tensor<16xf32>) -> (tensor<5000x3xf32>, tensor<5000x3xf32>)
    graph.write @w, %nw : tensor<5000x3xf32>
    graph.write @w.m, %nm : tensor<5000x3xf32>
    return
  }

  func.func private @flat(%p: tensor<64xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>} {
    return %p : tensor<64xf32>
  }
  func.func private @bias(%y: tensor<8x5000xf32>, %b: tensor<5000xf32>) -> tensor<8x5000xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
    %0 = graph.add %y, %b : (tensor<8x5000xf32>, tensor<5000xf32>) -> tensor<8x5000xf32>
    return %0 : tensor<8x5000xf32>
  }
  func.func private @grad(%y: tensor<8x5000xf32>) -> tensor<8x5000xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
    %0 = graph.neg %y : (tensor<8x5000xf32>) -> tensor<8x5000xf32>
    return %0 : tensor<8x5000xf32>
  }
  func.func private @sum(%y: tensor<8x5000xf32>) -> tensor<5000xf32> attributes {graph.iterate = #graph.iteration<columns>, graph.range = array<i64: 5000>} {
    %0 = graph.reduce_sum %y {axes = array<i64: 0>} : (tensor<8x5000xf32>) -> tensor<5000xf32>
    return %0 : tensor<5000xf32>
  }
  func.func private @loss(%y: tensor<8x5000xf32>) -> tensor<f32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
    %0 = graph.reduce_sum %y {axes = array<i64: 0, 1>} : (tensor<8x5000xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  // CHECK: func.func private @concat(%[[A0:.*]]: tensor<8x2952xf32>, %{{.*}}: tensor<8x2952xf32>, %{{.*}}: tensor<8x904xf32>) -> tensor<8x5000xf32>
  // CHECK: graph.slice %[[A0]] {sizes = array<i64: 8, 2048>
  // CHECK: graph.concat {{.*}}axis = 1
}

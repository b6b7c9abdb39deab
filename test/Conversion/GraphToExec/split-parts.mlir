// RUN: dsopt-opt %s -split-input-file -split-parts | FileCheck %s

// What needs no collective's result comes first, and hands on what is read behind it; reads and views are made
// where they are used. The last value is that of the last part, another one of the first.

// CHECK-LABEL: func.func private @block0.F(
// CHECK-SAME: %arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>}
// CHECK: [[A:%.*]] = graph.kernel @k(%arg0)
// CHECK: [[P:%.*]] = graph.matmul [[A]],
// CHECK: return [[P]], [[A]]
// CHECK-LABEL: func.func private @block0.F.1(
// CHECK-SAME: %arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: [[V:%.*]] = graph.reshape %arg0
// CHECK: graph.kernel @j([[V]], %arg1)
// CHECK-LABEL: func.func @micro_batch
// CHECK: [[R:%.*]]:2 = graph.run @block0.F(%arg0)
// CHECK-NEXT: [[S:%.*]] = dist.all_reduce [[R]]#0 over [tp] : tensor<4x8xf32>
// CHECK-NEXT: [[T:%.*]] = graph.run @block0.F.1([[S]], [[R]]#1)
// CHECK-NEXT: return [[T]], [[R]]#1
module {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 2]
  graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
  func.func private @k(tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>}
  func.func private @j(tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>}
  func.func private @block0.F(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %a = graph.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %w = graph.read @w : tensor<8x8xf32>
    %p = graph.matmul %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %y = dist.all_reduce %p over [tp] : tensor<4x8xf32>
    %v = graph.reshape %y : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %z = graph.kernel @j(%v, %a) : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %z, %a : tensor<4x8xf32>, tensor<4x8xf32>
  }
  func.func @micro_batch(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0:2 = graph.run @block0.F(%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %0#0, %0#1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// The sum itself leaves the block, and what travels lies under another shape: no part is left behind it. Two
// collectives that do not need each other stand behind one part.

// CHECK-LABEL: func.func private @block0.B(
// CHECK: [[A:%.*]] = graph.kernel
// CHECK: [[B:%.*]] = graph.kernel
// CHECK: [[V:%.*]] = graph.reshape [[B]] : (tensor<4x8xf32>) -> tensor<32xf32>
// CHECK: return [[A]], [[V]] : tensor<4x8xf32>, tensor<32xf32>
// CHECK-NOT: block0.B.1
// CHECK-LABEL: func.func @micro_batch
// CHECK: [[R:%.*]]:2 = graph.run @block0.B(
// CHECK-NEXT: [[S:%.*]] = dist.all_reduce [[R]]#0
// CHECK-NEXT: [[T:%.*]] = dist.all_reduce [[R]]#1 over [tp] : tensor<32xf32>
// CHECK-NEXT: return [[S]], [[T]]
module {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 2]
  func.func private @k(tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>}
  func.func private @block0.B(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<B>} {
    %a = graph.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = dist.all_reduce %a over [tp] : tensor<4x8xf32>
    %b = graph.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %v = graph.reshape %b : (tensor<4x8xf32>) -> tensor<32xf32>
    %z = dist.all_reduce %v over [tp] : tensor<32xf32>
    return %y, %z : tensor<4x8xf32>, tensor<32xf32>
  }
  func.func @micro_batch(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>) {
    %0:2 = graph.run @block0.B(%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>)
    return %0#0, %0#1 : tensor<4x8xf32>, tensor<32xf32>
  }
}

// -----

// What another block made travels under another shape, and so does what is handed on: it is shown between the
// runs.

// CHECK-LABEL: func.func private @block0.B(
// CHECK-SAME: -> tensor<4x8xf32>
// CHECK-NOT: graph.reshape
// CHECK: return
// CHECK-LABEL: func.func private @block0.B.1(
// CHECK: graph.kernel @k
// CHECK-LABEL: func.func @micro_batch
// CHECK: [[R:%.*]] = graph.run @block0.B(%arg0)
// CHECK-NEXT: [[X:%.*]] = graph.reshape %arg0 : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
// CHECK-NEXT: dist.all_gather [[X]] over [tp]
// CHECK-NEXT: [[Y:%.*]] = graph.reshape [[R]] : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
// CHECK-NEXT: [[G:%.*]] = dist.all_gather [[Y]] over [tp]
// CHECK: return [[R]],
module {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 2]
  func.func private @k(tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>}
  func.func private @block0.B(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x8xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<B>} {
    %u = graph.reshape %x : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
    %s = dist.all_gather %u over [tp] : tensor<2x2x8xf32> to tensor<4x2x8xf32>
    %a = graph.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %v = graph.reshape %a : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
    %y = dist.all_gather %v over [tp] : tensor<2x2x8xf32> to tensor<4x2x8xf32>
    %w = dist.all_reduce %a over [tp] : tensor<4x8xf32>
    %b = graph.kernel @k(%w) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %a, %s, %y, %b : tensor<4x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x8xf32>
  }
  func.func @micro_batch(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x8xf32>) {
    %0:4 = graph.run @block0.B(%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x8xf32>)
    return %0#0, %0#1, %0#2, %0#3 : tensor<4x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x8xf32>
  }
}

// -----

// A view of what was gathered travels on.

// CHECK-LABEL: func.func @micro_batch
// CHECK-NEXT: [[G:%.*]] = dist.all_gather %arg0 over [sp]
// CHECK-NEXT: [[V:%.*]] = graph.reshape [[G]] : (tensor<8x8xf32>) -> tensor<64xf32>
// CHECK-NEXT: dist.all_reduce [[V]] over [sp]
module {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 2, tp = 1]
  func.func private @block0.F(%x: tensor<4x8xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %y = dist.all_gather %x over [sp] : tensor<4x8xf32> to tensor<8x8xf32>
    %v = graph.reshape %y : (tensor<8x8xf32>) -> tensor<64xf32>
    %z = dist.all_reduce %v over [sp] : tensor<64xf32>
    return %z : tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<4x8xf32>) -> tensor<64xf32> {
    %0 = graph.run @block0.F(%x) : (tensor<4x8xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}

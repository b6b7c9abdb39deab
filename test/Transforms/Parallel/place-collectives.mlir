// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero=stage=3 -place-collectives -split-stages -verify-dist | FileCheck %s --check-prefixes=CHECK,SLICED
// RUN: dsopt-opt %s -declare-grid=dp=2 -partition-zero=stage=2 -place-collectives -split-stages -verify-dist | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: dsopt-opt %s | sed -e 's/^module {/module attributes {dsopt.options = {reduction = "fast"}} {/' | dsopt-opt -declare-grid=dp=2 -partition-zero=stage=2 -place-collectives | FileCheck %s --check-prefix=FAST
// RUN: dsopt-opt %s -declare-grid=dp=1 -partition-zero=stage=3 -place-collectives -split-stages -verify-dist | FileCheck %s --check-prefix=ALONE

graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
graph.parameter @b : tensor<8xf32> from "m" at 256 bytes 32
graph.state @w.grad.0 : tensor<8x8xf32> gradient of @w block 0
graph.state @b.grad.0 : tensor<8xf32> gradient of @b block 0

// Of slices a block gets what was gathered; what is whole it reads.
// SLICED-LABEL: @block0.F
// SLICED-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<8x8xf32>
// SLICED-NOT: graph.read
// SLICED: graph.matmul %[[X]], %[[W]]
// SLICED: graph.matmul %{{.*}}, %[[W]]
// WHOLE-LABEL: @block0.F
// WHOLE: graph.read @w
func.func private @block0.F(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %b = graph.read @b : tensor<8xf32>
  %w = graph.read @w : tensor<8x8xf32>
  %0 = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = graph.add %0, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %again = graph.read @w : tensor<8x8xf32>
  %2 = graph.matmul %1, %again : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

func.func private @block0.W(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>, %db: tensor<8xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
  %dw = graph.matmul %x, %dy {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  graph.accumulate @w.grad.0, %dw : tensor<8x8xf32>
  graph.accumulate @b.grad.0, %db : tensor<8xf32>
  return
}

// CHECK-LABEL: @micro_batch
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[DB:.*]]: tensor<8xf32>
// SLICED-NEXT: %b, %w = dist.gather @b0 [@b, @w] over [edp, ep, sp] : tensor<8xf32>, tensor<8x8xf32>
// SLICED-NEXT: %[[Y:.*]] = graph.run @block0.F(%[[X]], %b, %w)
// SLICED-NEXT: dist.release %b, %w
// WHOLE-NEXT: %[[Y:.*]] = graph.run @block0.F(%[[X]])
// CHECK-NEXT: graph.run @block0.W(%[[X]], %[[Y]], %[[DB]])
// CHECK-NEXT: dist.reduce @b0 use 0 of [@w.grad.0, @b.grad.0] over [edp, ep, sp] as f32
// CHECK-NEXT: return
// FAST: dist.reduce @b0 use 0 of [@w.grad.0, @b.grad.0] over [edp, ep, sp] as f32 order fast
// ALONE-NOT: dist.gather
// ALONE-NOT: dist.reduce
func.func @micro_batch(%x: tensor<4x8xf32>, %db: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = graph.run @block0.F(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  graph.run @block0.W(%x, %y, %db) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> ()
  return %y : tensor<4x8xf32>
}

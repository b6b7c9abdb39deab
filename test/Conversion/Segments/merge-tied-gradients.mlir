// RUN: sed -e 's/MICRO/1/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -merge-tied-gradients -insert-waits -plan-memory -verify-exec | FileCheck %s
// RUN: sed -e 's/MICRO/2/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -merge-tied-gradients -insert-waits -plan-memory -verify-exec | FileCheck %s --check-prefix=TWO
// RUN: sed -e 's/MICRO/1/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step | sed 's/.*exec.norm @tied.q.*/exec.transform @whole of @tied.q [@tied.q.grad.0, @tied.q.grad.1] elements 64 temp @temp.100 on @compute\n&/' | dsopt-opt -merge-tied-gradients -insert-waits -plan-memory | FileCheck %s --check-prefix=OTHERS

// Blocks 0 and 1 share @t: one looks rows up, the other multiplies by it. Forward of block 1 has its gradient.
// @q is shared in the same way, but block 0 adds what is no scatter.
module attributes {dsopt.options = {dp = 1 : i64, pp = 1 : i64, micro_batches = MICRO : i64, schedule = "1f1b"}} {
  graph.parameter @t : tensor<8x16xf32> from "m" at 0 bytes 512
  graph.parameter @q : tensor<64xf32> from "m" at 512 bytes 256
  graph.state @t.grad.0 : tensor<8x16xf32> gradient of @t block 0
  graph.state @t.grad.1 : tensor<8x16xf32> gradient of @t block 1
  graph.state @q.grad.0 : tensor<64xf32> gradient of @q block 0
  graph.state @q.grad.1 : tensor<64xf32> gradient of @q block 1
  dist.bucket @tied.t : f32 of [0, 1] [#dist.range<@t, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 0 states [#dist.state<"m" : f32>]
  dist.bucket @tied.q : f32 of [0, 1] [#dist.range<@q, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 0 states [#dist.state<"m" : f32>]
  func.func private @block0.F(memref<5xi64> {exec.access = #exec.access<read>}, memref<80xf32> {exec.access = #exec.access<write>}, memref<8x16xf32> {exec.access = #exec.access<read>, exec.parameter = @t}, memref<64xf32> {exec.access = #exec.access<read>, exec.parameter = @q}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.F(memref<80xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<80xf32> {exec.access = #exec.access<write>}, memref<f32> {exec.access = #exec.access<write>}, memref<8x16xf32> {exec.access = #exec.access<read>, exec.parameter = @t}, memref<8x16xf32> {exec.access = #exec.access<update>, exec.gradient = @t.grad.1}, memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @q.grad.1}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}

  // The copy adds to one gradient always, to the other where its run accumulates; the original is gone.
  // CHECK-NOT: func.func private @block0.W(
  // CHECK: func.func private @block0.W.tied.2(%{{.*}}: memref<5xi64>
  // CHECK-SAME: %[[T:[a-z0-9]*]]: memref<8x16xf32> {exec.access = #exec.access<add>, exec.gradient = @t.grad.0}
  // CHECK-SAME: memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @q.grad.0}
  // CHECK-SAME: exec.temp_bytes = 168 : i64
  // CHECK: %[[V:.*]] = exec.view %[[T]]
  // CHECK: %[[ORDER:.*]] = exec.temp at 128 : memref<40xi8>
  // CHECK: exec.scatter_add %{{.*}}, %{{.*}} -> %[[V]] workspace %[[ORDER]] {sums}
  // TWO: func.func private @block0.W(
  // TWO-NOT: @block0.W.tied
  func.func private @block0.W(%i: memref<5xi64> {exec.access = #exec.access<read>}, %d: memref<80xf32> {exec.access = #exec.access<read>}, %t: memref<8x16xf32> {exec.access = #exec.access<update>, exec.gradient = @t.grad.0}, %q: memref<64xf32> {exec.access = #exec.access<update>, exec.gradient = @q.grad.0}) attributes {exec.segment, exec.temp_bytes = 100 : i64, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
    %rows = exec.view %d : memref<80xf32> to memref<5x16xf32>
    %v = exec.view %t : memref<8x16xf32> to memref<8x16xf32>
    exec.scatter_add %rows, %i -> %v {into_gradient} : memref<5x16xf32>, memref<5xi64> -> memref<8x16xf32>
    %s = exec.temp at 0 : memref<64xf32>
    exec.accumulate %s -> %q : memref<64xf32> -> memref<64xf32>
    return
  }
  func.func private @whole(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.temp_bytes = 100 : i64}
  func.func private @update.momentum(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m : tensor<64xf32>, tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<5xi64> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h = graph.run @block0.F(%x) : (tensor<5xi64>) -> tensor<80xf32>
    %g, %loss = graph.run @block1.F(%h, %seed) : (tensor<80xf32>, tensor<f32>) -> (tensor<80xf32>, tensor<f32>)
    graph.run @block0.W(%x, %g) : (tensor<5xi64>, tensor<80xf32>) -> ()
    return %loss : tensor<f32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @t : tensor<8x16xf32>
    %q = graph.read @q : tensor<64xf32>
    %0:2 = graph.momentum %p, %p, %p, %s {functions = #graph.functions<kernel = @update.momentum>} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    %1:2 = graph.momentum %q, %q, %q, %s {functions = #graph.functions<kernel = @update.momentum>} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>)
    graph.write @t, %0#0 : tensor<8x16xf32>
    graph.write @q, %1#0 : tensor<64xf32>
    return
  }
}

// One accumulator of @t from the start, no addition, scratch of the copy's size.
// CHECK-LABEL: exec.program @position0
// CHECK-NOT: exec.buffer @tied.t.grad.1
// CHECK-NOT: exec.buffer @temp.100
// CHECK: exec.run @block1.F [{{.*}}, @tied.t.grad.0, @tied.q.grad.1] micro_batch 0
// CHECK: exec.run @block0.W.tied.2 [{{.*}}, @tied.t.grad.0, @tied.q.grad.0] temp @temp.168 micro_batch 0
// CHECK-NOT: exec.add @tied.t
// CHECK: exec.norm @tied.t.grad.0
// CHECK: exec.update @update.momentum of @tied.t [@tied.t.param, @tied.t.grad.0, @tied.t.m]
// CHECK: exec.add @tied.q.grad.0, @tied.q.grad.1 elements 64

// What updates whole matrices may compute in scratch of the same size, which stays.
// OTHERS: exec.buffer @temp.100
// OTHERS: exec.run @block0.W.tied.2 [{{.*}}] temp @temp.168
// OTHERS: exec.transform @whole of @tied.q {{.*}} temp @temp.100

// A gradient that is a sum over micro-batches is one before it is added.
// TWO-LABEL: exec.program @position0
// TWO: exec.run @block0.W [{{.*}}, @tied.t.grad.0, @tied.q.grad.0] temp @temp.100 micro_batch 1 accumulate
// TWO: exec.add @tied.t.grad.0, @tied.t.grad.1 elements 128

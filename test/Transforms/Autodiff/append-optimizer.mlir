// RUN: dsopt-opt %s -split-input-file -append-optimizer | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -append-optimizer=optimizer=adam | FileCheck %s --check-prefix=ADAM

// The default is AdamW. A tied parameter's gradients are added in the order of
// their blocks; frozen parameters have no update.

// CHECK-LABEL: module @adamw
// CHECK: graph.state @w.m : tensor<4xf32> optimizer "m" of @w
// CHECK: graph.state @w.v : tensor<4xf32> optimizer "v" of @w
// CHECK: func @update(%[[S:.*]]: tensor<16xf32>)
// CHECK-NEXT: %[[P:.*]] = graph.read @w : tensor<4xf32>
// CHECK-NEXT: %[[G0:.*]] = graph.read @w.grad.0
// CHECK-NEXT: %[[G1:.*]] = graph.read @w.grad.1
// CHECK-NEXT: %[[G:.*]] = graph.add %[[G0]], %[[G1]]
// CHECK-NEXT: %[[M:.*]] = graph.read @w.m
// CHECK-NEXT: %[[V:.*]] = graph.read @w.v
// CHECK-NEXT: %[[P1:.*]], %[[M1:.*]], %[[V1:.*]] = graph.adam %[[P]], %[[G]], %[[M]], %[[V]], %[[S]] {decoupled}
// CHECK-NEXT: graph.write @w, %[[P1]]
// CHECK-NEXT: graph.write @w.m, %[[M1]]
// CHECK-NEXT: graph.write @w.v, %[[V1]]
// CHECK-NEXT: return
// What a pass is told is the module's option from then on.
// ADAM-LABEL: module @adamw attributes {dsopt.options = {optimizer = "adam"}}
// ADAM: graph.adam
// ADAM-NOT: decoupled
// ADAM: graph.write
module @adamw {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.parameter @f : tensor<4xf32> from "m" at 0 bytes 16 frozen
  graph.state @w.grad.1 : tensor<4xf32> gradient of @w block 1
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// CHECK-LABEL: module @sgd
// CHECK-NOT: "momentum"
// CHECK: graph.sgd
module @sgd attributes {dsopt.options = {optimizer = "sgd", momentum = 0 : i64}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// CHECK-LABEL: module @momentum
// CHECK: graph.state @w.momentum : tensor<4xf32> optimizer "momentum" of @w
// CHECK: %[[P:.*]], %[[M:.*]] = graph.momentum
// CHECK: graph.write @w, %[[P]]
// CHECK: graph.write @w.momentum, %[[M]]
module @momentum attributes {dsopt.options = {optimizer = "sgd", momentum = 1 : i64}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// Groups: a later entry wins, and no decay over some. A name is no pattern.

// CHECK-LABEL: module @groups
// CHECK: graph.parameter @h.0.weight {{.*}}{decay_scale = 5.000000e-01 : f64, lr_scale = 5.000000e-01 : f64}
// CHECK: graph.parameter @h.1.weight {{.*}}{decay_scale = 0.000000e+00 : f64, lr_scale = 2.500000e-01 : f64}
// CHECK: graph.parameter @h.1.bias {{.*}}{decay_scale = 0.000000e+00 : f64, lr_scale = 2.500000e-01 : f64}
module @groups attributes {dsopt.options = {lr_scale = ["h.*=0.5", "h.1.*=0.25"], decay_scale = ["h.*=0.5", "h[2=0.25"], no_decay = ["rank1", "h.1.w*"]}} {
  graph.parameter @h.0.weight : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @h.1.weight : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @h.1.bias : tensor<4xf32> from "m" at 0 bytes 16
  // CHECK: graph.parameter @"h[2" {{.*}}{decay_scale = 2.500000e-01 : f64}
  graph.parameter @"h[2" : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.state @h2.grad : tensor<4x4xf32> gradient of @"h[2" block 0
  graph.state @h.0.weight.grad.0 : tensor<4x4xf32> gradient of @h.0.weight block 0
  graph.state @h.1.weight.grad.0 : tensor<4x4xf32> gradient of @h.1.weight block 0
  graph.state @h.1.bias.grad.0 : tensor<4xf32> gradient of @h.1.bias block 0
}

// -----

// CHECK-LABEL: module @lion
// CHECK: graph.state @w.m : tensor<4xf32> optimizer "m" of @w
// CHECK: %[[P:.*]], %[[M:.*]] = graph.lion
// CHECK: graph.write @w, %[[P]]
// CHECK: graph.write @w.m, %[[M]]
module @lion attributes {dsopt.options = {optimizer = "lion"}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// CHECK-LABEL: module @adagrad
// CHECK: graph.state @w.sum : tensor<4xf32> optimizer "sum" of @w
// CHECK: %[[P:.*]], %[[S:.*]] = graph.adagrad
// CHECK: graph.write @w, %[[P]]
// CHECK: graph.write @w.sum, %[[S]]
module @adagrad attributes {dsopt.options = {optimizer = "adagrad"}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// CHECK-LABEL: module @lamb
// CHECK: graph.state @w.m : tensor<4xf32> optimizer "m" of @w
// CHECK: graph.state @w.v : tensor<4xf32> optimizer "v" of @w
// CHECK: %[[P:.*]], %[[M:.*]], %[[V:.*]] = graph.lamb
// CHECK: graph.write @w, %[[P]]
// CHECK: graph.write @w.m, %[[M]]
// CHECK: graph.write @w.v, %[[V]]
module @lamb attributes {dsopt.options = {optimizer = "lamb"}} {
  graph.parameter @w : tensor<4xf32> from "m" at 0 bytes 16
  graph.state @w.grad.0 : tensor<4xf32> gradient of @w block 0
}

// -----

// Muon updates matrices that products alone read, but for that of the output; AdamW everything else.

// CHECK-LABEL: module @muon
// CHECK-DAG: graph.state @a.momentum : tensor<4x6xf32> optimizer "momentum" of @a
// CHECK-DAG: graph.state @w.momentum
// CHECK-DAG: graph.state @given.m :
// CHECK-DAG: graph.state @c.m :
// CHECK-DAG: graph.state @added.v :
// CHECK-DAG: graph.state @b.v :
// CHECK-LABEL: func.func @update
// CHECK: graph.muon {{.*}} {rows_are_inputs} : (tensor<4x6xf32>
// CHECK: graph.muon %{{[^{]*}} : (tensor<5x6xf32>
// CHECK: graph.adam {{.*}}(tensor<5x5xf32>
// CHECK: graph.adam {{.*}}(tensor<6xf32>
// CHECK: graph.adam {{.*}}(tensor<5x5xf32>
// CHECK: graph.adam {{.*}}(tensor<5x3xf32>
module @muon attributes {dsopt.options = {optimizer = "muon", muon_except = ["giv*"]}} {
  graph.parameter @a : tensor<4x6xf32> from "m" at 0 bytes 96
  graph.parameter @w : tensor<5x6xf32> from "m" at 0 bytes 120
  graph.parameter @given : tensor<5x5xf32> from "m" at 0 bytes 100
  graph.parameter @c : tensor<6xf32> from "m" at 0 bytes 24
  graph.parameter @added : tensor<5x5xf32> from "m" at 0 bytes 100
  graph.parameter @b : tensor<5x3xf32> from "m" at 0 bytes 60
  graph.state @a.grad.0 : tensor<4x6xf32> gradient of @a block 0
  graph.state @w.grad.0 : tensor<5x6xf32> gradient of @w block 0
  graph.state @given.grad.0 : tensor<5x5xf32> gradient of @given block 0
  graph.state @c.grad.0 : tensor<6xf32> gradient of @c block 0
  graph.state @added.grad.0 : tensor<5x5xf32> gradient of @added block 0
  graph.state @b.grad.0 : tensor<5x3xf32> gradient of @b block 0
  func.func @micro_batch(%x: tensor<5x4xf32>) -> tensor<5x3xf32> {
    %a = graph.read @a : tensor<4x6xf32>
    %c = graph.read @c : tensor<6xf32>
    %w = graph.read @w : tensor<5x6xf32>
    %given = graph.read @given : tensor<5x5xf32>
    %added = graph.read @added : tensor<5x5xf32>
    %b = graph.read @b : tensor<5x3xf32>
    %0 = graph.matmul %x, %a {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<4x6xf32>) -> tensor<5x6xf32>
    %1 = graph.add %0, %c {graph.phase = #graph.phase<F>} : (tensor<5x6xf32>, tensor<6xf32>) -> tensor<5x6xf32>
    %wt = graph.transpose %w {perm = array<i64: 1, 0>, graph.phase = #graph.phase<F>} : (tensor<5x6xf32>) -> tensor<6x5xf32>
    %2 = graph.matmul %1, %wt {graph.phase = #graph.phase<F>} : (tensor<5x6xf32>, tensor<6x5xf32>) -> tensor<5x5xf32>
    %3 = graph.matmul %2, %given {graph.phase = #graph.phase<F>} : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
    %4 = graph.matmul %3, %added {graph.phase = #graph.phase<F>} : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
    %5 = graph.add %4, %added {graph.phase = #graph.phase<F>} : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
    %6 = graph.matmul %5, %b {graph.phase = #graph.phase<F>} : (tensor<5x5xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
    %7 = graph.matmul %6, %b {transpose_b, graph.phase = #graph.phase<B>} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x5xf32>
    %8 = graph.matmul %7, %given {transpose_b, graph.phase = #graph.phase<B>} : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
    return %6 : tensor<5x3xf32>
  }
}

// -----

// Tensor shards go by what they are part of: all of them are the output's, or an exception.

// CHECK-LABEL: module @muon_shards
// CHECK-DAG: graph.state @w.shard.0.momentum
// CHECK-DAG: graph.state @w.shard.1.momentum
// CHECK-DAG: graph.state @given.shard.0.m :
// CHECK-DAG: graph.state @given.shard.1.m :
// CHECK-DAG: graph.state @b.shard.0.m :
// CHECK-DAG: graph.state @b.shard.1.m :
// CHECK-LABEL: func.func @update
// CHECK-COUNT-2: graph.muon
// CHECK-NOT: graph.muon
// CHECK: return
module @muon_shards attributes {dsopt.options = {optimizer = "muon", muon_except = ["giv*"]}} {
  graph.parameter @w : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @w.shard.0 : tensor<4x4xf32> from "m" at 0 bytes 64 {name = "w", part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 8>}
  graph.parameter @w.shard.1 : tensor<4x4xf32> from "m" at 0 bytes 64 {name = "w", part_of = @w, part_begin = 4 : i64, part_runs = #graph.runs<4 every 8 step 8>}
  graph.parameter @given : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @given.shard.0 : tensor<4x4xf32> from "m" at 0 bytes 64 {name = "given", part_of = @given, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 8>}
  graph.parameter @given.shard.1 : tensor<4x4xf32> from "m" at 0 bytes 64 {name = "given", part_of = @given, part_begin = 4 : i64, part_runs = #graph.runs<4 every 8 step 8>}
  graph.parameter @b : tensor<4x8xf32> from "m" at 0 bytes 128
  graph.parameter @b.shard.0 : tensor<4x4xf32> from "m" at 0 bytes 64 {name = "b", part_of = @b, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 8>}
  graph.parameter @b.shard.1 : tensor<4x4xf32> from "m" at 0 bytes 64 {name = "b", part_of = @b, part_begin = 4 : i64, part_runs = #graph.runs<4 every 8 step 8>}
  graph.state @w.shard.0.grad.0 : tensor<4x4xf32> gradient of @w.shard.0 block 0
  graph.state @w.shard.1.grad.0 : tensor<4x4xf32> gradient of @w.shard.1 block 0
  graph.state @given.shard.0.grad.0 : tensor<4x4xf32> gradient of @given.shard.0 block 0
  graph.state @given.shard.1.grad.0 : tensor<4x4xf32> gradient of @given.shard.1 block 0
  graph.state @b.shard.0.grad.0 : tensor<4x4xf32> gradient of @b.shard.0 block 0
  graph.state @b.shard.1.grad.0 : tensor<4x4xf32> gradient of @b.shard.1 block 0
  func.func @micro_batch(%x: tensor<5x4xf32>) -> tensor<5x4xf32> {
    %w0 = graph.read @w.shard.0 : tensor<4x4xf32>
    %w0p = graph.matmul %x, %w0 {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %w1 = graph.read @w.shard.1 : tensor<4x4xf32>
    %w1p = graph.matmul %x, %w1 {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %given0 = graph.read @given.shard.0 : tensor<4x4xf32>
    %given0p = graph.matmul %w0p, %given0 {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %given1 = graph.read @given.shard.1 : tensor<4x4xf32>
    %given1p = graph.matmul %w1p, %given1 {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %b0 = graph.read @b.shard.0 : tensor<4x4xf32>
    %b0p = graph.matmul %given0p, %b0 {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %b1 = graph.read @b.shard.1 : tensor<4x4xf32>
    %b1p = graph.matmul %given1p, %b1 {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %sum = graph.add %b0p, %b1p {graph.phase = #graph.phase<F>} : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
    return %sum : tensor<5x4xf32>
  }
}

// -----

// Adafactor updates all parameters, and keeps nothing of their elements.

// CHECK-LABEL: module @adafactor
// CHECK-NOT: optimizer "
// CHECK: graph.adafactor %{{.*}} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<16xf32>) -> tensor<4x6xf32>
// CHECK: graph.adafactor %{{.*}} : (tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> tensor<4xf32>
module @adafactor attributes {dsopt.options = {optimizer = "adafactor"}} {
  graph.parameter @w : tensor<4x6xf32> from "m" at 0 bytes 96
  graph.parameter @b : tensor<4xf32> from "m" at 96 bytes 16
  graph.state @w.grad.0 : tensor<4x6xf32> gradient of @w block 0
  graph.state @b.grad.0 : tensor<4xf32> gradient of @b block 0
}

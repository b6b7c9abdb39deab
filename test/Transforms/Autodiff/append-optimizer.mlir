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
// CHECK: graph.parameter @h.0.weight {{.*}}{graph.decay_scale = 5.000000e-01 : f64, graph.lr_scale = 5.000000e-01 : f64}
// CHECK: graph.parameter @h.1.weight {{.*}}{graph.decay_scale = 0.000000e+00 : f64, graph.lr_scale = 2.500000e-01 : f64}
// CHECK: graph.parameter @h.1.bias {{.*}}{graph.decay_scale = 0.000000e+00 : f64, graph.lr_scale = 2.500000e-01 : f64}
module @groups attributes {dsopt.options = {lr_scale = ["h.*=0.5", "h.1.*=0.25"], decay_scale = ["h.*=0.5", "h[2=0.25"], no_decay = ["rank1", "h.1.w*"]}} {
  graph.parameter @h.0.weight : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @h.1.weight : tensor<4x4xf32> from "m" at 0 bytes 64
  graph.parameter @h.1.bias : tensor<4xf32> from "m" at 0 bytes 16
  // CHECK: graph.parameter @"h[2" {{.*}}{graph.decay_scale = 2.500000e-01 : f64}
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

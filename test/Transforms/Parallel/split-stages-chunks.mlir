// RUN: dsopt-opt %s -declare-grid=pp=2 -split-stages="schedule=interleaved" | FileCheck %s
// RUN: dsopt-opt %s -declare-grid=pp=1 -split-stages="schedule=interleaved" | FileCheck %s --check-prefix=ONE
// RUN: dsopt-opt %s -declare-grid=pp=2 -split-stages="schedule=interleaved{chunks=1}" | FileCheck %s --check-prefix=SINGLE
// RUN: not dsopt-opt %s -declare-grid=pp=2 -split-stages="schedule=interleaved{chunks=3}" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not dsopt-opt %s -declare-grid=pp=2 -split-stages="schedule=interleaved{chunks=0}" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not dsopt-opt %s -declare-grid=pp=2 -split-stages="schedule=mine" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Two chunks a stage: every second one, of balanced cost.

// CHECK: module attributes {dsopt.options = {pp = 2 : i64, schedule = "interleaved"}}
// CHECK: func private @block0.F({{.*}}dist.chunk = 0 : i64, dist.stage = 0
// CHECK: func private @block1.F({{.*}}dist.chunk = 1 : i64, dist.stage = 1
// CHECK: func private @block2.F({{.*}}dist.chunk = 2 : i64, dist.stage = 0
// CHECK: func private @block3.F({{.*}}dist.chunk = 3 : i64, dist.stage = 1
// CHECK: func private @block4.F({{.*}}dist.chunk = 3 : i64, dist.stage = 1
// ONE-COUNT-2: dist.chunk = 0 : i64, dist.stage = 0
// ONE-COUNT-3: dist.chunk = 1 : i64, dist.stage = 0
// SINGLE-NOT: dist.chunk
// SINGLE-COUNT-2: dist.stage = 0
// SINGLE-COUNT-3: dist.stage = 1
// MANY: error: cannot cut 5 blocks into the 6 chunks that schedule interleaved{chunks=3} has on 2 pipeline stages: fewer chunks or stages (-pp) are needed
// NONE: error: schedule interleaved{chunks=0} got chunks=0, expected 1 to 65536
// UNKNOWN: error: schedule is "mine", expected one of 1f1b, gpipe, interleaved
func.func private @block0.F(%x: tensor<4x64xf32>) -> tensor<4x64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.tanh %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
func.func private @block1.F(%x: tensor<4x64xf32>) -> tensor<4x64xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.tanh %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
func.func private @block2.F(%x: tensor<4x64xf32>) -> tensor<4x64xf32> attributes {graph.block = 2 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.tanh %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
func.func private @block3.F(%x: tensor<4x32xf32>) -> tensor<4x32xf32> attributes {graph.block = 3 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.tanh %x : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}
func.func private @block4.F(%x: tensor<4x32xf32>) -> tensor<4x32xf32> attributes {graph.block = 4 : i64, graph.phase = #graph.phase<F>} {
  %y = graph.tanh %x : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

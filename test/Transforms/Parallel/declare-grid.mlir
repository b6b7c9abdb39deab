// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -declare-grid | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics "-declare-grid=pp=4 dp=8" | FileCheck %s --check-prefix=GIVEN

// As the options say; the pass's own go before the module's, which has them from here on.
// CHECK: dp = 4 : i64, pp = 2 : i64
// CHECK-NEXT: dist.grid @grid [pp = 2, edp = 4, ep = 1, sp = 1, tp = 1]
// GIVEN: dp = 8 : i64, pp = 4 : i64
// GIVEN-NEXT: dist.grid @grid [pp = 4, edp = 8, ep = 1, sp = 1, tp = 1]
module attributes {dsopt.options = {dp = 4 : i64, pp = 2 : i64}} {
}

// -----

// A rank alone where nothing is said. A parameter that is called so makes way, and keeps its name in the model.
// CHECK: dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 1]
// CHECK-NEXT: graph.parameter @"grid~" {{.*}}name = "grid"
module {
  graph.parameter @grid : tensor<4xf32> from "m" at 0 bytes 16
}

// -----

// A grid that is there stays.
// CHECK: module {
// CHECK-NEXT: dist.grid @mine [pp = 1, edp = 2, ep = 1, sp = 1, tp = 3]
// CHECK-NOT: dist.grid
// GIVEN: dist.grid @mine [pp = 1, edp = 2, ep = 1, sp = 1, tp = 3]
// GIVEN-NOT: dist.grid
module {
  dist.grid @mine [pp = 1, edp = 2, ep = 1, sp = 1, tp = 3]
}

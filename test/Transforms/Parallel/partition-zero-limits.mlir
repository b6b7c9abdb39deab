// RUN: dsopt-opt %s -declare-grid=dp=2 "-partition-zero=stage=3 param-persistence-threshold=100" | FileCheck %s --check-prefix=WHOLE
// RUN: dsopt-opt %s -declare-grid=dp=2 "-partition-zero=stage=2 param-persistence-threshold=100" | FileCheck %s --check-prefix=BELOW
// RUN: dsopt-opt %s -verify-diagnostics -declare-grid=dp=2 "-partition-zero=stage=3 gather-bucket-size=250" | FileCheck %s --check-prefix=GATHER
// RUN: sed 's/{{-gather-bucket/{{-reduce-bucket/' %s | dsopt-opt -verify-diagnostics -declare-grid=dp=2 "-partition-zero=stage=0 reduce-bucket-size=250" | FileCheck %s --check-prefix=REDUCE
// RUN: dsopt-opt %s -declare-grid=dp=1 "-partition-zero=stage=3 gather-bucket-size=250 param-persistence-threshold=100" | FileCheck %s --check-prefix=ONE

// Parameters of so many elements and fewer are cut as at stage 2, which gathers them behind their update; one that
// is shared has a bucket of its own as always.
// WHOLE: param_persistence_threshold = 100 : i64
// WHOLE-DAG: dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 200>, #dist.range<@v, 256, 101>] elements 384 padded 384 over [edp, ep, sp] zero 3
// WHOLE-DAG: dist.bucket @b0.whole : f32 of [0] [#dist.range<@b, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero 2
// WHOLE-DAG: dist.bucket @tied.e : f32 of [0, 1] [#dist.range<@e, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2
// WHOLE-DAG: dist.bucket @b1.frozen.whole : f32 of [1] [#dist.range<@f, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2 frozen
// Below stage 3 everything is whole.
// BELOW-DAG: dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 200>, #dist.range<@b, 256, 100>, #dist.range<@v, 384, 101>]
// BELOW-NOT: whole

// No bucket has more elements than a collective may take, where parameters are no larger. What is frozen is not
// gathered below stage 3, and never reduced.
// GATHER-DAG: dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 200>]
// GATHER-DAG: dist.bucket @b0.1 : f32 of [0] [#dist.range<@b, 0, 100>, #dist.range<@v, 128, 101>]
// GATHER-DAG: dist.bucket @b1 : f32 of [1] [#dist.range<@large, 0, 300>]
// GATHER-DAG: dist.bucket @b1.1 : f32 of [1] [#dist.range<@small, 0, 10>]
// GATHER-DAG: dist.bucket @b1.frozen.1 : f32 of [1] [#dist.range<@g, 0, 192>]
// REDUCE-DAG: dist.bucket @b0.1 : f32 of [0] [#dist.range<@b, 0, 100>, #dist.range<@v, 128, 101>]
// REDUCE-DAG: dist.bucket @b1.frozen : f32 of [1] [#dist.range<@f, 0, 64>, #dist.range<@g, 64, 192>]
// One rank sends nothing.
// ONE-DAG: dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 200>, #dist.range<@b, 256, 100>, #dist.range<@v, 384, 101>]
module {
graph.parameter @w : tensor<200xf32> from "m" at 0 bytes 800
graph.parameter @b : tensor<100xf32> from "m" at 800 bytes 400
graph.parameter @v : tensor<101xf32> from "m" at 1200 bytes 404
graph.parameter @e : tensor<64xf32> from "m" at 1604 bytes 256
// expected-warning @below {{-gather-bucket-size=250, but 1 parameter has more elements (@large 300): a parameter is not cut, each of them is a bucket of its own}}
graph.parameter @large : tensor<300xf32> from "m" at 1860 bytes 1200
graph.parameter @small : tensor<10xf32> from "m" at 3060 bytes 40
graph.parameter @f : tensor<64xf32> from "m" at 3100 bytes 256 frozen
graph.parameter @g : tensor<192xf32> from "m" at 3356 bytes 768 frozen
func.func private @block0.F() -> (tensor<200xf32>, tensor<100xf32>, tensor<101xf32>, tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  %w = graph.read @w : tensor<200xf32>
  %b = graph.read @b : tensor<100xf32>
  %v = graph.read @v : tensor<101xf32>
  %e = graph.read @e : tensor<64xf32>
  return %w, %b, %v, %e : tensor<200xf32>, tensor<100xf32>, tensor<101xf32>, tensor<64xf32>
}
func.func private @block1.F() -> (tensor<64xf32>, tensor<300xf32>, tensor<10xf32>, tensor<64xf32>, tensor<192xf32>) attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
  %e = graph.read @e : tensor<64xf32>
  %large = graph.read @large : tensor<300xf32>
  %small = graph.read @small : tensor<10xf32>
  %f = graph.read @f : tensor<64xf32>
  %g = graph.read @g : tensor<192xf32>
  return %e, %large, %small, %f, %g : tensor<64xf32>, tensor<300xf32>, tensor<10xf32>, tensor<64xf32>, tensor<192xf32>
}
func.func @micro_batch() -> tensor<200xf32> {
  %0:4 = graph.run @block0.F() : () -> (tensor<200xf32>, tensor<100xf32>, tensor<101xf32>, tensor<64xf32>)
  return %0#0 : tensor<200xf32>
}
}

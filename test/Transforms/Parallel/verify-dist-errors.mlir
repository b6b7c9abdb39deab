// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -verify-dist

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
// expected-note@+1 {{the other is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
// expected-error@+1 {{holds @w, which lies in another too}}
dist.bucket @b1 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
}
// -----

// expected-error@+1 {{has no pipeline stage, expected the attribute dist.stage}}
func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
  return
}
// -----

// expected-error@+1 {{is on stage 2, expected 0 or 1: stages are runs of blocks}}
func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 2 : i64} {
  return
}

// -----

// expected-error@+1 {{is on stage 1, expected the stage of its block's other phases, 0}}
func.func private @block0.W() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 1 : i64} {
  return
}
// expected-note@+1 {{the other phase is here}}
func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return
}

// -----

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
func.func private @block0.F() -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  // expected-error@+1 {{reads @w, which no bucket holds}}
  %w = graph.read @w : tensor<64xf32>
  return %w : tensor<64xf32>
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F() -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  // expected-error@+1 {{reads @w, of which each of 2 ranks holds a slice, expected a value of dist.gather as an argument}}
  %w = graph.read @w : tensor<64xf32>
  return %w : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [1] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2
func.func private @block0.F() -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  // expected-error@+1 {{is in block 0, which its bucket does not list}}
  %w = graph.read @w : tensor<64xf32>
  return %w : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{is never released}}
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  %y = graph.run @block0.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  %y = graph.run @block0.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  // expected-note@+1 {{the first release is here}}
  dist.release %w : tensor<64xf32>
  // expected-error@+1 {{releases @b0 a second time}}
  dist.release %w : tensor<64xf32>
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 2
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{gathers what is whole on every rank}}
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  %y = graph.run @block0.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  dist.release %w : tensor<64xf32>
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-note@+1 {{the gather is here}}
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  dist.release %w : tensor<64xf32>
  // expected-error@+1 {{uses a value of a gather behind its release}}
  %y = graph.run @block0.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-note@+1 {{the gather is here}}
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  // expected-error@+1 {{uses a value of a gather outside of a run}}
  %z = graph.neg %w : (tensor<64xf32>) -> tensor<64xf32>
  dist.release %w : tensor<64xf32>
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [1] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  // expected-error@+1 {{takes values of @b0, which does not list block 0}}
  %y = graph.run @block0.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  dist.release %w : tensor<64xf32>
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0, 1] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func private @block1.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>, dist.stage = 1 : i64} {
  return %x : tensor<64xf32>
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{serves stages 1 and 0, expected one: each stage gathers for itself}}
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64xf32>
  %y = graph.run @block0.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  %z = graph.run @block1.F(%w) : (tensor<64xf32>) -> tensor<64xf32>
  dist.release %w : tensor<64xf32>
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{adds to @w.grad.0, which is never reduced}}
  graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{takes @w.grad.0, which no run before it adds to}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
  graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
  return %x : tensor<64xf32>
}
}

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 128 over [edp, ep, sp] zero 3
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) -> tensor<64xf32> {
  graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
  // expected-note@+1 {{the reduction is here}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
  // expected-error@+1 {{adds to @w.grad.0 behind its reduction}}
  graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
  return %x : tensor<64xf32>
}
}

// -----

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.state @w.grad.0 : tensor<64xf32> gradient of @w block 0
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  return %x : tensor<64xf32>
}
func.func private @block0.W(%x: tensor<64xf32>) attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64} {
  graph.accumulate @w.grad.0, %x : tensor<64xf32>
  return
}
func.func @micro_batch(%x: tensor<64xf32>) {
  // expected-error@+1 {{adds to @w.grad.0, the gradient of what no bucket holds}}
  graph.run @block0.W(%x) : (tensor<64xf32>) -> ()
  return
}

// -----

func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64, dist.chunk = 0 : i64} {
  return
}
// expected-error@+1 {{is on chunk 2, expected 0 or 1: chunks are runs of blocks}}
func.func private @block1.F() attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64, dist.chunk = 2 : i64} {
  return
}

// -----

func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64, dist.chunk = 0 : i64} {
  return
}
// expected-error@+1 {{is on stage 1, but its chunk 0 is on stage 0, expected one}}
func.func private @block1.F() attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>, dist.stage = 1 : i64, dist.chunk = 0 : i64} {
  return
}

// -----

func.func private @block0.F() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64, dist.chunk = 0 : i64} {
  return
}
// expected-error@+1 {{is of chunk 1, expected the chunk of its block's other phases, 0}}
func.func private @block0.W() attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>, dist.stage = 0 : i64, dist.chunk = 1 : i64} {
  return
}

// -----

graph.parameter @w : tensor<128xf32> from "m" at 0 bytes 512
graph.parameter @w.t0 : tensor<64xf32> from "m" at 0 bytes 256 {part_begin = 0 : i64, part_of = @w}
graph.parameter @w.t1 : tensor<64xf32> from "m" at 256 bytes 256 {part_begin = 64 : i64, part_of = @w}
func.func private @block0.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  %y = graph.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
// expected-note@+1 {{the first is here}}
func.func private @block1.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>, dist.stage = 0 : i64} {
  %w = graph.read @w.t0 : tensor<64xf32>
  %y = graph.add %x, %w : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
// expected-error@+1 {{is on stage 1 and has a tile of @w, expected the stage of the first, as lamb sees norms of whole parameters}}
func.func private @block2.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 2 : i64, graph.phase = #graph.phase<F>, dist.stage = 1 : i64} {
  %w = graph.read @w.t1 : tensor<64xf32>
  %y = graph.add %x, %w : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func private @block3.F(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.block = 3 : i64, graph.phase = #graph.phase<F>, dist.stage = 1 : i64} {
  %y = graph.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @update(%s: tensor<16xf32>) {
  %pt0 = graph.read @w.t0 : tensor<64xf32>
  %t0:3 = graph.lamb %pt0, %pt0, %pt0, %pt0, %s : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  %pt1 = graph.read @w.t1 : tensor<64xf32>
  %t1:3 = graph.lamb %pt1, %pt1, %pt1, %pt1, %s : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}

// -----

graph.parameter @mean : tensor<64xf32> from "m" at 0 bytes 256 frozen {statistic}
graph.parameter @f : tensor<64xf32> from "m" at 256 bytes 256 frozen
// expected-error@+1 {{'dist.bucket' op holds @mean and @f, which differ in statistic: expected one bucket of each}}
dist.bucket @b0 : f32 of [0] [#dist.range<@mean, 0, 64>, #dist.range<@f, 64, 64>] elements 128 padded 128 over [edp, ep, sp] zero 0 frozen

// -----

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256 {branch}
graph.parameter @v : tensor<64xf32> from "m" at 256 bytes 256
// expected-error@+1 {{'dist.bucket' op holds @w and @v, which differ in branch: expected one bucket of each}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>, #dist.range<@v, 64, 64>] elements 128 padded 128 over [edp, ep, sp] zero 0

// -----

graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
graph.parameter @w.shard.0 : tensor<8x4xf32> from "m" at 0 bytes 128 {part_of = @w, part_begin = 0 : i64, part_runs = #graph.runs<4 every 8 step 4>}
// expected-error@+1 {{holds @w.shard.0, of which ranks along tp have shards: expected it to be distinct over [tp]}}
dist.bucket @b : f32 of [0] [#dist.range<@w.shard.0, 0, 32>] elements 64 padded 64 over [edp, ep, sp] zero 0

// -----

graph.parameter @w : tensor<8x8xf32> from "m" at 0 bytes 256
// expected-error@+1 {{holds @w, of which ranks along tp have the same: expected it not to be distinct}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] distinct over [tp] zero 0

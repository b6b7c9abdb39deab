// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{parameter @w starts at element 8, expected a multiple of 64}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 8, 64>] elements 128 padded 128 over [edp, ep, sp] zero 3

// -----

// expected-error@+1 {{parameter @w starts at element 64, before the end of the one in front of it (100)}}
dist.bucket @b : f32 of [0] [#dist.range<@v, 0, 100>, #dist.range<@w, 64, 64>] elements 128 padded 128 over [edp, ep, sp] zero 3

// -----

// expected-error@+1 {{has 128 elements, expected 64 rounded up to a multiple of 64}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 128 padded 128 over [edp, ep, sp] zero 3

// -----

module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  // expected-error@+1 {{is padded to 64 elements, expected 64 rounded up to a multiple of 128 (2 ranks x 64)}}
  dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
}

// -----

// The grid of a module in a module is that around it.
module attributes {dsopt.options = {dp = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  module {
    // expected-error@+1 {{is padded to 192 elements, expected 64 rounded up to a multiple of 128 (2 ranks x 64)}}
    dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 192 over [edp, ep, sp] zero 3
  }
}

// -----

// expected-error@+1 {{is cut over the axes [pp], expected none of them to be pp: a position has its own buckets}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [pp] zero 3

// -----

// expected-error@+1 {{expected an axis: pp, edp, ep, sp or tp}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over ["dp"] zero 3

// -----

// expected-error@+1 {{got axis 'dp', expected pp, edp, ep, sp or tp}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [dp] zero 3

// -----

// expected-error@+1 {{axes 'ep' and 'edp' are not in the order pp, edp, ep, sp, tp, each once}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [ep, edp] zero 3

// -----

// expected-error@+1 {{axis part 'edp inner 0' has a count below 1}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp inner 0] zero 3

// -----

module {
  dist.grid @grid [pp = 1, edp = 6, ep = 1, sp = 1, tp = 1]
  // expected-error@+1 {{is over [edp outer 4], but axis edp has 6 ranks, expected a multiple of 4}}
  dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp outer 4] zero 3
}

// -----

// expected-error@+1 {{has 0 ranks along sp, expected 1 or more}}
dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 0, tp = 1]

// -----

// expected-error@+1 {{has more than 268435456 ranks}}
dist.grid @grid [pp = 1, edp = 4294967296, ep = 4294967296, sp = 1, tp = 1]

// -----

// expected-error@+1 {{has 2 axes, expected pp, edp, ep, sp and tp}}
dist.grid @grid [pp = 1, edp = 2]

// -----

// expected-error@+1 {{got axis 'dp', expected pp, edp, ep, sp and tp in this order}}
dist.grid @grid [pp = 1, dp = 2]

// -----

// expected-note@+1 {{the first one is here}}
dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
// expected-error@+1 {{is the second grid of its module, expected one}}
dist.grid @other [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]

// -----

// expected-error@+1 {{has zero stage 4, expected 0 to 3}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 4

// -----

dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{names 0 parameters for 0 values, expected one or more, and a value of each}}
  "dist.gather"() {bucket = @b0, parameters = [], axes = #dist<axes[edp, ep, sp]>} : () -> ()
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{is over the axes [tp], but the bucket is cut over [edp, ep, sp]}}
  %w = dist.gather @b0 [@w] over [tp] : tensor<64xf32>
  return
}

// -----

dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{names @b1, which is no bucket of this module}}
  %w = dist.gather @b1 [@w] over [edp, ep, sp] : tensor<64xf32>
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{gathers @v, which does not lie in the bucket}}
  %w = dist.gather @b0 [@v] over [edp, ep, sp] : tensor<64xf32>
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{yields @w as 'tensor<32xf32>', expected 64 elements of 'f32'}}
  %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<32xf32>
  return
}

// -----

dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{takes values that are not all those of one dist.gather, in their order}}
  dist.release %x : tensor<64xf32>
  return
}

// -----

dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{names no gradients, expected those of the block}}
  dist.reduce @b0 use 0 of [] over [edp, ep, sp] as f32
  return
}

// -----

dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{asks for the order fast by all_to_all, where owners add along the canonical tree}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32 by all_to_all order fast
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{is over the axes [edp, tp], but the bucket is cut over [edp, ep, sp]}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, tp] as f32
  return
}

// -----

dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{names @b1, which is no bucket of this module}}
  dist.reduce @b1 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{reduces use 1, but the bucket has 1}}
  dist.reduce @b0 use 1 of [@w.grad.0] over [edp, ep, sp] as f32
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{sends 'f16', but the bucket's parameters are 'f32'}}
  %w = dist.gather @b0 [@w] over [edp, ep, sp] as f16 : tensor<64xf32>
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{sends 'f16', but the bucket's gradients are 'f32'}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f16
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3 gradient bf16
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{sends 'f32', but the bucket's gradients are 'bf16'}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
  return
}

// -----

dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{expected string or keyword containing one of the following enum values for attribute 'method' [reduce_scatter, all_to_all]}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32 by ring
  return
}

// -----

// expected-note@+1 {{the bucket is here}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 3
func.func @f(%x: tensor<64xf32>) {
  // expected-error@+1 {{sends 'i4', but the bucket's gradients are 'f32'}}
  dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as i4
  return
}

// -----

// expected-error@+1 {{'dist.bucket' op keeps #dist.state<"master" : f32>, expected another name: master is the copy of the parameters}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, ep, sp] zero 0 states [#dist.state<"master" : f32>]

// -----

// expected-error@+1 {{is distinct over [ep], expected [tp]}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp] distinct over [ep] zero 3

// -----

// expected-error@+1 {{is cut over [edp, tp] and distinct over [tp], expected no axis in both}}
dist.bucket @b : f32 of [0] [#dist.range<@w, 0, 64>] elements 64 padded 64 over [edp, tp] distinct over [tp] zero 3

// -----

func.func @shared_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{has results 'tensor<4xf32>', 'tensor<2xf32>', expected one or more of 'tensor<4xf32>'}}
  %0:2 = "dist.shared"(%x) {axes = #dist<axes[tp]>} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  return
}

// -----

func.func @shared_none(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected one or more of 'tensor<4xf32>'}}
  dist.shared %x over [tp] : tensor<4xf32> 0
  return
}

// -----

dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 3]
func.func @factor(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{tp inner 2}}
  %0 = dist.all_reduce %x over [tp inner 2] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

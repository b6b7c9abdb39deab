// RUN: dsopt-opt %s -kernel-to-threads -split-input-file -verify-diagnostics

// expected-error @below {{has a kernel over [4], but an operation over [8, 64]}}
func.func private @range(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 4>} {
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

func.func private @joined(%x: tensor<8x64xf32>) -> tensor<8xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{a reduction is more than one operation on a total and a value: threads cannot join their totals}}
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %h = arith.mulf %o, %a : f32
    %n = arith.addf %o, %h : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

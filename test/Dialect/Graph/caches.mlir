// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

graph.cache @k : tensor<3x2x16x8xf32>
graph.cache @v : tensor<3x2x16x4xf32>
func.func @good(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x4xf32>, %rows: tensor<5xi64>, %mask: tensor<1x1x5x16xf32>) -> tensor<1x4x5x4xf32> {
  %y = graph.cached_attention %q, %k, %v, %rows, %rows, %mask in @k, @v {scale = 1.0 : f64} : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x4xf32>, tensor<5xi64>, tensor<5xi64>, tensor<1x1x5x16xf32>) -> tensor<1x4x5x4xf32>
  return %y : tensor<1x4x5x4xf32>
}

// -----

graph.cache @k : tensor<3x2x16x8xf32>
func.func @heads(%q: tensor<1x3x5x8xf32>, %k: tensor<1x2x5x8xf32>, %rows: tensor<5xi64>) -> tensor<1x3x5x8xf32> {
  // expected-error@+1 {{has operands of types 'tensor<1x3x5x8xf32>', 'tensor<1x2x5x8xf32>' and 'tensor<1x2x5x8xf32>', expected [1, heads, R, D], [1, key heads, R, D] and [1, key heads, R, E], key heads dividing heads}}
  %y = graph.cached_attention %q, %k, %k, %rows, %rows in @k, @k {scale = 1.0 : f64} : (tensor<1x3x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<1x3x5x8xf32>
  return %y : tensor<1x3x5x8xf32>
}

// -----

graph.cache @k : tensor<3x2x16x8xf32>
func.func @places(%q: tensor<1x2x5x8xf32>, %rows: tensor<4xi64>) -> tensor<1x2x5x8xf32> {
  // expected-error@+1 {{has rows placed by 'tensor<4xi64>', expected 'tensor<5xi64>'}}
  %y = graph.cached_attention %q, %q, %q, %rows, %rows in @k, @k {scale = 1.0 : f64} : (tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<4xi64>, tensor<4xi64>) -> tensor<1x2x5x8xf32>
  return %y : tensor<1x2x5x8xf32>
}

// -----

func.func @missing(%q: tensor<1x2x5x8xf32>, %rows: tensor<5xi64>) -> tensor<1x2x5x8xf32> {
  // expected-error@+1 {{names @k, which is no cache of this module}}
  %y = graph.cached_attention %q, %q, %q, %rows, %rows in @k, @k {scale = 1.0 : f64} : (tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<1x2x5x8xf32>
  return %y : tensor<1x2x5x8xf32>
}

// -----

graph.cache @k : tensor<3x2x16x8xf32>
graph.cache @v : tensor<3x2x16x4xf32>
func.func @kept(%q: tensor<1x2x5x8xf32>, %rows: tensor<5xi64>) -> tensor<1x2x5x8xf32> {
  // expected-error@+1 {{keeps rows of 'tensor<1x2x5x8xf32>' in @v of type 'tensor<3x2x16x4xf32>', expected [slots, 2, positions, 8]}}
  %y = graph.cached_attention %q, %q, %q, %rows, %rows in @k, @v {scale = 1.0 : f64} : (tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<1x2x5x8xf32>
  return %y : tensor<1x2x5x8xf32>
}

// -----

graph.cache @k : tensor<3x2x16x8xf32>
graph.cache @v : tensor<3x2x12x8xf32>
func.func @lengths(%q: tensor<1x2x5x8xf32>, %rows: tensor<5xi64>) -> tensor<1x2x5x8xf32> {
  // expected-error@+1 {{has 3 slots of 16 positions for keys, but 3 of 12 for values}}
  %y = graph.cached_attention %q, %q, %q, %rows, %rows in @k, @v {scale = 1.0 : f64} : (tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<1x2x5x8xf32>
  return %y : tensor<1x2x5x8xf32>
}

// -----

graph.cache @k : tensor<3x2x16x8xf32>
func.func @mask(%q: tensor<1x2x5x8xf32>, %rows: tensor<5xi64>, %m: tensor<1x1x4x16xf32>) -> tensor<1x2x5x8xf32> {
  // expected-error@+1 {{has a mask of type 'tensor<1x1x4x16xf32>', expected [1, 1 or 2, 1 or 5, 16]}}
  %y = graph.cached_attention %q, %q, %q, %rows, %rows, %m in @k, @k {scale = 1.0 : f64} : (tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<5xi64>, tensor<5xi64>, tensor<1x1x4x16xf32>) -> tensor<1x2x5x8xf32>
  return %y : tensor<1x2x5x8xf32>
}

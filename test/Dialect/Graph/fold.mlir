// Every family of operations on constants: the reference interpreter.
// RUN: dsopt-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @unary()
// CHECK-DAG: graph.constant dense<[2.000000e+00, -0.000000e+00, -4.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[2.000000e+00, 0.000000e+00, 4.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[-1.000000e+00, 0.000000e+00, 1.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[0.000000e+00, 0.000000e+00, 4.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[1.000000e+00, 2.000000e+00, 5.000000e-01]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[1.000000e+00, 2.500000e-01, 4.000000e+00]> : tensor<3xf32>
func.func @unary() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %x = graph.constant dense<[-2.0, 0.0, 4.0]> : tensor<3xf32>
  %p = graph.constant dense<[1.0, 4.0, 0.25]> : tensor<3xf32>
  %r0 = graph.neg %x : (tensor<3xf32>) -> tensor<3xf32>
  %r1 = graph.abs %x : (tensor<3xf32>) -> tensor<3xf32>
  %r2 = graph.sign %x : (tensor<3xf32>) -> tensor<3xf32>
  %r3 = graph.relu %x : (tensor<3xf32>) -> tensor<3xf32>
  %r4 = graph.sqrt %p : (tensor<3xf32>) -> tensor<3xf32>
  %r5 = graph.reciprocal %p : (tensor<3xf32>) -> tensor<3xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// Rounded once from double.
// CHECK-LABEL: @functions()
// CHECK-DAG: graph.constant dense<[1.000000e+00, 2.71828175]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<[0.000000e+00, 0.761594176]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<[0.000000e+00, 0.842700779]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<[5.000000e-01, 0.731058597]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<[0xFF800000, 0.000000e+00]> : tensor<2xf32>
func.func @functions() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %x = graph.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %r0 = graph.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %r1 = graph.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  %r2 = graph.erf %x : (tensor<2xf32>) -> tensor<2xf32>
  %r3 = graph.sigmoid %x : (tensor<2xf32>) -> tensor<2xf32>
  %r4 = graph.log %x : (tensor<2xf32>) -> tensor<2xf32>
  return %r0, %r1, %r2, %r3, %r4 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// Division truncates, sums wrap around.
// CHECK-LABEL: @integers()
// CHECK-DAG: graph.constant dense<[7, 0, -7]> : tensor<3xi64>
// CHECK-DAG: graph.constant dense<[7, 0, 7]> : tensor<3xi64>
// CHECK-DAG: graph.constant dense<[-3, 0, -3]> : tensor<3xi64>
// CHECK-DAG: graph.constant dense<[-14, 0, -14]> : tensor<3xi64>
// CHECK-DAG: graph.constant dense<[2, 3, 7]> : tensor<3xi64>
// CHECK-DAG: graph.constant dense<[-7, 0, -2]> : tensor<3xi64>
// CHECK-DAG: graph.constant dense<-2147483648> : tensor<i32>
func.func @integers() -> (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<i32>) {
  %x = graph.constant dense<[-7, 0, 7]> : tensor<3xi64>
  %y = graph.constant dense<[2, 3, -2]> : tensor<3xi64>
  %m = graph.constant dense<2147483647> : tensor<i32>
  %one = graph.constant dense<1> : tensor<i32>
  %r0 = graph.neg %x : (tensor<3xi64>) -> tensor<3xi64>
  %r1 = graph.abs %x : (tensor<3xi64>) -> tensor<3xi64>
  %r2 = graph.div %x, %y : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %r3 = graph.mul %x, %y : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %r4 = graph.max %x, %y : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %r5 = graph.min %x, %y : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %r6 = graph.add %m, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6 : tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<i32>
}

// CHECK-LABEL: @powers()
// CHECK-DAG: graph.constant dense<[1.41421354, 1.73205078, 2.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}8, 1], [27, 1]]> : tensor<2x2xi64>
func.func @powers() -> (tensor<3xf32>, tensor<2x2xi64>) {
  %x = graph.constant dense<[2.0, 3.0, 4.0]> : tensor<3xf32>
  %h = graph.constant dense<0.5> : tensor<f32>
  %y = graph.constant dense<[[2], [3]]> : tensor<2x1xi64>
  %z = graph.constant dense<[3, 0]> : tensor<2xi64>
  %r0 = graph.pow %x, %h : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %r1 = graph.pow %y, %z : (tensor<2x1xi64>, tensor<2xi64>) -> tensor<2x2xi64>
  return %r0, %r1 : tensor<3xf32>, tensor<2x2xi64>
}

// CHECK-LABEL: @broadcast()
// CHECK-DAG: graph.constant dense<{{\[\[}}9.000000e+00, 1.900000e+01, 3.900000e+01], [8.000000e+00, 1.800000e+01, 3.800000e+01]]> : tensor<2x3xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}1.000000e-01, 5.000000e-02, 2.500000e-02], [2.000000e-01, 1.000000e-01, 5.000000e-02]]> : tensor<2x3xf32>
// CHECK-DAG: graph.constant dense<6.000000e+00> : tensor<f32>
func.func @broadcast() -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) {
  %x = graph.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %y = graph.constant dense<[10.0, 20.0, 40.0]> : tensor<3xf32>
  %s = graph.constant dense<3.0> : tensor<f32>
  %r0 = graph.sub %y, %x : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %r1 = graph.div %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %r2 = graph.add %s, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %r0, %r1, %r2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>
}

// NaN propagates.
// CHECK-LABEL: @nans()
// CHECK-DAG: graph.constant dense<[0x7FC00000, 0x7FC00000, 2.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[0x7FC00000, 0x7FC00000, 0.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[true, false, false]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<0x7FC00000> : tensor<f32>
// CHECK-DAG: graph.constant dense<[0x7FC00000, 1.000000e+00, 2.000000e+00]> : tensor<3xf32>
func.func @nans() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<f32>, tensor<3xf32>) {
  %x = graph.constant dense<[0x7FC00000, 1.0, 2.0]> : tensor<3xf32>
  %y = graph.constant dense<[5.0, 0x7FC00000, 0.0]> : tensor<3xf32>
  %r0 = graph.max %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %r1 = graph.min %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %r2 = graph.isnan %x : (tensor<3xf32>) -> tensor<3xi1>
  %r3 = graph.reduce_max %x {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %r4 = graph.relu %x : (tensor<3xf32>) -> tensor<3xf32>
  return %r0, %r1, %r2, %r3, %r4 : tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<f32>, tensor<3xf32>
}

// CHECK-LABEL: @compare()
// CHECK-DAG: graph.constant dense<[false, true, false]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<[true, false, false]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<[true, true, false]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<[false, false, true]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<[false, true, true]> : tensor<3xi1>
func.func @compare() -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>) {
  %x = graph.constant dense<[1, 2, 3]> : tensor<3xi64>
  %y = graph.constant dense<2> : tensor<i64>
  %r0 = graph.equal %x, %y : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %r1 = graph.less %x, %y : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %r2 = graph.less_equal %x, %y : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %r3 = graph.greater %x, %y : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %r4 = graph.greater_equal %x, %y : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  return %r0, %r1, %r2, %r3, %r4 : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>
}

// CHECK-LABEL: @logical()
// CHECK-DAG: graph.constant dense<[true, false, false]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<[true, true, false]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<[false, true, true]> : tensor<3xi1>
// CHECK-DAG: graph.constant dense<[true, false, true]> : tensor<3xi1>
func.func @logical() -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>) {
  %p = graph.constant dense<[true, true, false]> : tensor<3xi1>
  %q = graph.constant dense<[true, false, false]> : tensor<3xi1>
  %r0 = graph.and %p, %q : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %r1 = graph.or %p, %q : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %r2 = graph.not %q : (tensor<3xi1>) -> tensor<3xi1>
  %r3 = graph.equal %p, %q : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  return %r0, %r1, %r2, %r3 : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>
}

// CHECK-LABEL: @where()
// CHECK-DAG: graph.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00], [0xFF800000, 0xFF800000, 0xFF800000]]> : tensor<2x3xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}true, false, true], [true, true, true]]> : tensor<2x3xi1>
func.func @where() -> (tensor<2x3xf32>, tensor<2x3xi1>) {
  %c = graph.constant dense<[[true], [false]]> : tensor<2x1xi1>
  %x = graph.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %y = graph.constant dense<0xFF800000> : tensor<f32>
  %p = graph.constant dense<[true, false, true]> : tensor<3xi1>
  %t = graph.constant dense<true> : tensor<i1>
  %r0 = graph.where %c, %x, %y : (tensor<2x1xi1>, tensor<3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %r1 = graph.where %c, %p, %t : (tensor<2x1xi1>, tensor<3xi1>, tensor<i1>) -> tensor<2x3xi1>
  return %r0, %r1 : tensor<2x3xf32>, tensor<2x3xi1>
}

// Truncation; out of range as x86 does.
// CHECK-LABEL: @casts()
// CHECK-DAG: graph.constant dense<[-1, 0, 2, 300]> : tensor<4xi64>
// CHECK-DAG: graph.constant dense<[true, false, true, true]> : tensor<4xi1>
// CHECK-DAG: graph.constant dense<[-1.500000e+00, 0.000000e+00, 2.900000095367431{{[0-9]*}}, 3.000000e+02]> : tensor<4xf64>
// CHECK-DAG: graph.constant dense<[1.000000e+00, 0.000000e+00]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<[0x4B800000, -1.000000e+00]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<[16777217, -1]> : tensor<2xi32>
// CHECK-DAG: graph.constant dense<[-1.500000e+00, 0.000000e+00, 2.906250e+00, 3.000000e+02]> : tensor<4xbf16>
// CHECK-DAG: graph.constant dense<[-1.500000e+00, 0.000000e+00, 2.900390e+00, 3.000000e+02]> : tensor<4xf16>
// CHECK-DAG: graph.constant dense<-2147483648> : tensor<2xi32>
func.func @casts() -> (tensor<4xi64>, tensor<4xi1>, tensor<4xf64>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<4xbf16>, tensor<4xf16>, tensor<2xi32>) {
  %x = graph.constant dense<[-1.5, 0.0, 2.9, 300.0]> : tensor<4xf32>
  %b = graph.constant dense<[true, false]> : tensor<2xi1>
  %i = graph.constant dense<[16777217, -1]> : tensor<2xi64>
  %n = graph.constant dense<[0x7FC00000, 1.0e10]> : tensor<2xf32>
  %r0 = graph.cast %x : (tensor<4xf32>) -> tensor<4xi64>
  %r1 = graph.cast %x : (tensor<4xf32>) -> tensor<4xi1>
  %r2 = graph.cast %x : (tensor<4xf32>) -> tensor<4xf64>
  %r3 = graph.cast %b : (tensor<2xi1>) -> tensor<2xf32>
  %r4 = graph.cast %i : (tensor<2xi64>) -> tensor<2xf32>
  %r5 = graph.cast %i : (tensor<2xi64>) -> tensor<2xi32>
  %r6 = graph.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
  %r7 = graph.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  %r8 = graph.cast %n : (tensor<2xf32>) -> tensor<2xi32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8 : tensor<4xi64>, tensor<4xi1>, tensor<4xf64>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<4xbf16>, tensor<4xf16>, tensor<2xi32>
}

// Computed in float, rounded once to even.
// CHECK-LABEL: @halves()
// CHECK-DAG: graph.constant dense<1.007810e+00> : tensor<bf16>
// CHECK-DAG: graph.constant dense<[2.000000e+00, 2.048000e+03]> : tensor<2xf16>
func.func @halves() -> (tensor<bf16>, tensor<2xf16>) {
  %x = graph.constant dense<[1.0, 0.0078125]> : tensor<2xbf16>
  %h = graph.constant dense<[1.0, 2048.0]> : tensor<2xf16>
  %o = graph.constant dense<1.0> : tensor<f16>
  %r0 = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<2xbf16>) -> tensor<bf16>
  %r1 = graph.add %h, %o : (tensor<2xf16>, tensor<f16>) -> tensor<2xf16>
  return %r0, %r1 : tensor<bf16>, tensor<2xf16>
}

// CHECK-LABEL: @reductions()
// CHECK-DAG: graph.constant dense<[6.000000e+00, 1.800000e+01]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}2.500000e+00, 3.500000e+00, 6.000000e+00]]> : tensor<1x3xf32>
// CHECK-DAG: graph.constant dense<9.000000e+00> : tensor<f32>
// CHECK-DAG: graph.constant dense<{{\[\[}}1.000000e+00], [4.000000e+00]]> : tensor<2x1xf32>
func.func @reductions() -> (tensor<2xf32>, tensor<1x3xf32>, tensor<f32>, tensor<2x1xf32>) {
  %x = graph.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]]> : tensor<2x3xf32>
  %r0 = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  %r1 = graph.reduce_mean %x {axes = array<i64: 0>, keepdims} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %r2 = graph.reduce_max %x {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %r3 = graph.reduce_min %x {axes = array<i64: 1>, keepdims} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %r0, %r1, %r2, %r3 : tensor<2xf32>, tensor<1x3xf32>, tensor<f32>, tensor<2x1xf32>
}

// CHECK-LABEL: @sum_in_double()
// CHECK-DAG: graph.constant dense<2.000000e+00> : tensor<f32>
func.func @sum_in_double() -> (tensor<f32>) {
  %x = graph.constant dense<[1.0e8, 1.0, 1.0, -1.0e8]> : tensor<4xf32>
  %r0 = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %r0 : tensor<f32>
}

// CHECK-LABEL: @cumsum()
// CHECK-DAG: graph.constant dense<{{\[\[}}1, 3, 6], [4, 9, 15]]> : tensor<2x3xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}0, 1, 3], [0, 4, 9]]> : tensor<2x3xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}6, 5, 3], [15, 11, 6]]> : tensor<2x3xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}5, 3, 0], [11, 6, 0]]> : tensor<2x3xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}1, 2, 3], [5, 7, 9]]> : tensor<2x3xi64>
func.func @cumsum() -> (tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>) {
  %x = graph.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %r0 = graph.cumsum %x {axis = 1 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %r1 = graph.cumsum %x {axis = 1 : i64, exclusive} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %r2 = graph.cumsum %x {axis = 1 : i64, reverse} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %r3 = graph.cumsum %x {axis = 1 : i64, exclusive, reverse} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %r4 = graph.cumsum %x {axis = 0 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  return %r0, %r1, %r2, %r3, %r4 : tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>
}

// CHECK-LABEL: @matmul()
// CHECK-DAG: graph.constant dense<{{\[\[}}4.000000e+00, 5.000000e+00], [1.300000e+01, 1.400000e+01]]> : tensor<2x2xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}1.000000e+00, 4.000000e+00, 5.000000e+00], [2.000000e+00, 5.000000e+00, 7.000000e+00], [3.000000e+00, 9.000000e+00, 1.200000e+01]]> : tensor<3x3xf32>
func.func @matmul() -> (tensor<2x2xf32>, tensor<3x3xf32>) {
  %x = graph.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]]> : tensor<2x3xf32>
  %y = graph.constant dense<[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]> : tensor<3x2xf32>
  %r0 = graph.matmul %x, %y : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %r1 = graph.matmul %x, %y {transpose_a, transpose_b} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<3x3xf32>
  return %r0, %r1 : tensor<2x2xf32>, tensor<3x3xf32>
}

// A splat stays one, however large.
// CHECK-LABEL: @views()
// CHECK-DAG: graph.constant dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}true, false]]> : tensor<1x2xi1>
// CHECK-DAG: graph.constant dense<7.000000e+00> : tensor<6x1xf32>
// CHECK-DAG: graph.constant dense<{{\[\[\[}}1, 1], [2, 2]], {{\[\[}}1, 1], [2, 2]]]> : tensor<2x2x2xi64>
// CHECK-DAG: graph.constant dense<7.000000e+00> : tensor<1000x1000x1000x2x3xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}1, 4], [2, 5], [3, 6]]> : tensor<3x2xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}6, 4]]> : tensor<1x2xi64>
// CHECK-DAG: graph.constant dense<> : tensor<2x0xi64>
func.func @views() -> (tensor<6xi64>, tensor<1x2xi1>, tensor<6x1xf32>, tensor<2x2x2xi64>, tensor<1000x1000x1000x2x3xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<2x0xi64>) {
  %x = graph.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %b = graph.constant dense<[[true], [false]]> : tensor<2x1xi1>
  %s = graph.constant dense<7.0> : tensor<2x3xf32>
  %r = graph.constant dense<[[1], [2]]> : tensor<2x1xi64>
  %r0 = graph.reshape %x : (tensor<2x3xi64>) -> tensor<6xi64>
  %r1 = graph.reshape %b : (tensor<2x1xi1>) -> tensor<1x2xi1>
  %r2 = graph.reshape %s : (tensor<2x3xf32>) -> tensor<6x1xf32>
  %r3 = graph.expand %r : (tensor<2x1xi64>) -> tensor<2x2x2xi64>
  %r4 = graph.expand %s : (tensor<2x3xf32>) -> tensor<1000x1000x1000x2x3xf32>
  %r5 = graph.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xi64>) -> tensor<3x2xi64>
  %r6 = graph.slice %x {starts = array<i64: 1, 2>, sizes = array<i64: 1, 2>, steps = array<i64: 1, -2>} : (tensor<2x3xi64>) -> tensor<1x2xi64>
  %r7 = graph.slice %x {starts = array<i64: 0, 3>, sizes = array<i64: 2, 0>, steps = array<i64: 1, 1>} : (tensor<2x3xi64>) -> tensor<2x0xi64>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7 : tensor<6xi64>, tensor<1x2xi1>, tensor<6x1xf32>, tensor<2x2x2xi64>, tensor<1000x1000x1000x2x3xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<2x0xi64>
}

// CHECK-LABEL: @parts()
// CHECK-DAG: graph.constant dense<{{\[\[}}1, 2, 3, 7], [4, 5, 6, 8]]> : tensor<2x4xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}9, 9, 9], [2, 3, 9], [5, 6, 9]]> : tensor<3x3xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}0, 8], [0, 0], [0, 7]]> : tensor<3x2xi64>
func.func @parts() -> (tensor<2x4xi64>, tensor<3x3xi64>, tensor<3x2xi64>) {
  %x = graph.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %e = graph.constant dense<> : tensor<2x0xi64>
  %y = graph.constant dense<[[7], [8]]> : tensor<2x1xi64>
  %r0 = graph.concat %x, %e, %y {axis = 1 : i64} : (tensor<2x3xi64>, tensor<2x0xi64>, tensor<2x1xi64>) -> tensor<2x4xi64>
  %r1 = graph.pad %x {lows = array<i64: 1, -1>, highs = array<i64: 0, 1>, value = 9 : i64} : (tensor<2x3xi64>) -> tensor<3x3xi64>
  %r2 = graph.slice_grad %y {starts = array<i64: 2, 1>, steps = array<i64: -2, 1>} : (tensor<2x1xi64>) -> tensor<3x2xi64>
  return %r0, %r1, %r2 : tensor<2x4xi64>, tensor<3x3xi64>, tensor<3x2xi64>
}

// CHECK-LABEL: @gathers()
// CHECK-DAG: graph.constant dense<{{\[\[}}3, 1], [6, 4]]> : tensor<2x2xi64>
// CHECK-DAG: graph.constant dense<{{\[\[\[}}3], [1]], {{\[\[}}6], [4]]]> : tensor<2x2x1xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}3], [4]]> : tensor<2x1xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}2.000000e+00], [5.000000e+00]]> : tensor<2x1xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}1.000000e+00, 0.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, 1.000000e+00], [0.000000e+00, 0.000000e+00, 0.000000e+00]]> : tensor<3x3xf32>
func.func @gathers() -> (tensor<2x2xi64>, tensor<2x2x1xi64>, tensor<2x1xi64>, tensor<2x1xf32>, tensor<3x3xf32>) {
  %x = graph.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %i = graph.constant dense<[-1, 0]> : tensor<2xi64>
  %j = graph.constant dense<[[2], [-3]]> : tensor<2x1xi32>
  %g = graph.constant dense<[[1.0], [2.0], [4.0]]> : tensor<3x1xf32>
  %l = graph.constant dense<[1, 0, -1]> : tensor<3xi64>
  %h = graph.constant dense<[0, 2, 3]> : tensor<3xi64>
  %r0 = graph.gather %x, %i {axis = 1 : i64} : (tensor<2x3xi64>, tensor<2xi64>) -> tensor<2x2xi64>
  %r1 = graph.gather %x, %j {axis = 1 : i64} : (tensor<2x3xi64>, tensor<2x1xi32>) -> tensor<2x2x1xi64>
  %r2 = graph.gather_elements %x, %j {axis = 1 : i64} : (tensor<2x3xi64>, tensor<2x1xi32>) -> tensor<2x1xi64>
  %r3 = graph.gather_grad %g, %l {axis = 0 : i64} : (tensor<3x1xf32>, tensor<3xi64>) -> tensor<2x1xf32>
  %r4 = graph.one_hot %h {depth = 3 : i64} : (tensor<3xi64>) -> tensor<3x3xf32>
  return %r0, %r1, %r2, %r3, %r4 : tensor<2x2xi64>, tensor<2x2x1xi64>, tensor<2x1xi64>, tensor<2x1xf32>, tensor<3x3xf32>
}

// CHECK-LABEL: @composites()
// CHECK-DAG: graph.constant dense<{{\[\[}}5.000000e-01, 5.000000e-01], [0.000000e+00, 1.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: graph.constant dense<0.841344{{[0-9]*}}> : tensor<1xf32>
// CHECK-DAG: graph.constant dense<8.411920e-01> : tensor<1xf32>
// CHECK-DAG: graph.constant dense<0.731058{{[0-9]*}}> : tensor<1xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}6.000000e-01, 1.600000e+00]]> : tensor<1x2xf32>
// CHECK-DAG: graph.constant dense<2.000000e-01> : tensor<1x1xf32>
func.func @composites() -> (tensor<2x2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x2xf32>, tensor<1x1xf32>) {
  %x = graph.constant dense<[[0.0, 0.0], [1.0, 1001.0]]> : tensor<2x2xf32>
  %y = graph.constant dense<1.0> : tensor<1xf32>
  %r0 = graph.softmax %x {axis = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %r1 = graph.gelu %y : (tensor<1xf32>) -> tensor<1xf32>
  %r2 = graph.gelu %y {approximate_tanh} : (tensor<1xf32>) -> tensor<1xf32>
  %r3 = graph.silu %y : (tensor<1xf32>) -> tensor<1xf32>
  %v = graph.constant dense<[[3.0, 4.0]]> : tensor<1x2xf32>
  %s = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r4:2 = graph.rms_norm %v, %s {axis = 1 : i64, epsilon = 12.5 : f64} : (tensor<1x2xf32>, tensor<2xf32>) -> (tensor<1x2xf32>, tensor<1x1xf32>)
  return %r0, %r1, %r2, %r3, %r4#0, %r4#1 : tensor<2x2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x2xf32>, tensor<1x1xf32>
}

// CHECK-LABEL: @several()
// CHECK-DAG: graph.constant dense<{{\[\[}}-1.000000e+00, 3.000000e+00]]> : tensor<1x2xf32>
// CHECK-DAG: graph.constant dense<3.000000e+00> : tensor<1x1xf32>
// CHECK-DAG: graph.constant dense<5.000000e-01> : tensor<1x1xf32>
// CHECK-DAG: graph.constant dense<[0.000000e+00, 0.693147182]> : tensor<2xf32>
// CHECK-DAG: graph.constant dense<0.693147182> : tensor<2xf32>
func.func @several() -> (tensor<1x2xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<2xf32>, tensor<2xf32>) {
  %x = graph.constant dense<[[1.0, 5.0]]> : tensor<1x2xf32>
  %s = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = graph.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %n:3 = graph.layer_norm %x, %s, %b {axis = 1 : i64, epsilon = 0.0 : f64} : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2xf32>, tensor<1x1xf32>, tensor<1x1xf32>)
  %z = graph.constant dense<0.0> : tensor<2x2xf32>
  %l = graph.constant dense<[-100, 1]> : tensor<2xi64>
  %o:2 = graph.nll %z, %l {ignore_index = -100 : i64} : (tensor<2x2xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  return %n#0, %n#1, %n#2, %o#0, %o#1 : tensor<1x2xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<2xf32>, tensor<2xf32>
}

// What would be large, and what has no value.
// CHECK-LABEL: @left_alone()
// CHECK-DAG: graph.matmul
// CHECK-DAG: graph.add {{.*}} -> tensor<5000x5000xf32>
// CHECK-DAG: graph.div
// CHECK-DAG: graph.gather
// CHECK-DAG: graph.nll
func.func @left_alone() -> (tensor<1024x1024xf32>, tensor<5000x5000xf32>, tensor<2xi64>, tensor<2xi64>, tensor<1xf32>) {
  %m = graph.constant dense<1.0> : tensor<1024x1024xf32>
  %0 = graph.matmul %m, %m : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %i = graph.constant dense<[0, 5]> : tensor<2xi64>
  %one = graph.constant dense<1> : tensor<5000xi64>
  %c = graph.cumsum %one {axis = 0 : i64} : (tensor<5000xi64>) -> tensor<5000xi64>
  %f = graph.cast %c : (tensor<5000xi64>) -> tensor<5000xf32>
  %column = graph.reshape %f : (tensor<5000xf32>) -> tensor<5000x1xf32>
  %1 = graph.add %column, %f : (tensor<5000x1xf32>, tensor<5000xf32>) -> tensor<5000x5000xf32>
  %2 = graph.div %i, %i : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %3 = graph.gather %i, %i {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %z = graph.constant dense<0.0> : tensor<1x2xf32>
  %l = graph.constant dense<2> : tensor<1xi64>
  %4:2 = graph.nll %z, %l {ignore_index = -100 : i64} : (tensor<1x2xf32>, tensor<1xi64>) -> (tensor<1xf32>, tensor<1xf32>)
  return %0, %1, %2, %3, %4#0 : tensor<1024x1024xf32>, tensor<5000x5000xf32>, tensor<2xi64>, tensor<2xi64>, tensor<1xf32>
}

// CHECK-LABEL: @rounding()
// CHECK-DAG: graph.constant dense<[-3.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[-2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[-2.000000e+00, 2.000000e+00, 4.000000e+00]> : tensor<3xf32>
// CHECK-DAG: graph.constant dense<[-1, 1, 0]> : tensor<3xi64>
// CHECK-DAG: graph.constant dense<-2.187500e+01> : tensor<f32>
func.func @rounding() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi64>, tensor<f32>) {
  %x = graph.constant dense<[-2.5, 2.5, 3.5]> : tensor<3xf32>
  %i = graph.constant dense<[-7, 7, 7]> : tensor<3xi64>
  %j = graph.constant dense<[3, -3, -1]> : tensor<3xi64>
  %0 = graph.floor %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = graph.ceil %x : (tensor<3xf32>) -> tensor<3xf32>
  %2 = graph.round %x : (tensor<3xf32>) -> tensor<3xf32>
  %3 = graph.rem %i, %j : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %4 = graph.reduce_prod %x {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi64>, tensor<f32>
}

// Windows of 2 that move by 2 over 5 elements with one of padding before; then back.
// CHECK-LABEL: @windows()
// CHECK-DAG: graph.constant dense<{{\[\[}}9.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00]]> : tensor<3x2xf32>
// CHECK-DAG: graph.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00]> : tensor<5xf32>
// CHECK-DAG: graph.constant dense<{{\[\[}}0.000000e+00, 1.000000e+00], [2.000000e+00, 0.000000e+00], [0.000000e+00, 3.000000e+00], [4.000000e+00, 0.000000e+00], [0.000000e+00, 5.000000e+00]]> : tensor<5x2xf32>
func.func @windows() -> (tensor<3x2xf32>, tensor<5xf32>, tensor<5x2xf32>) {
  %x = graph.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %0 = graph.windows %x {axis = 0, counts = array<i64: 3>, kernel = array<i64: 2>, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 9.0 : f32} : (tensor<5xf32>) -> tensor<3x2xf32>
  %1 = graph.windows_sum %0 {axis = 0, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>} : (tensor<3x2xf32>) -> tensor<5xf32>
  %2 = graph.windows_place %0 {axis = 0, strides = array<i64: 2>, dilations = array<i64: 1>, lows = array<i64: 1>} : (tensor<3x2xf32>) -> tensor<5x2xf32>
  return %0, %1, %2 : tensor<3x2xf32>, tensor<5xf32>, tensor<5x2xf32>
}

// In the order of the updates; an index outside changes nothing.
// CHECK-LABEL: @scatters()
// CHECK-DAG: graph.constant dense<{{\[\[}}1], [7], [6]]> : tensor<3x1xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}1], [2], [14]]> : tensor<3x1xi64>
// CHECK-DAG: graph.constant dense<{{\[\[}}1], [10], [18]]> : tensor<3x1xi64>
func.func @scatters() -> (tensor<3x1xi64>, tensor<3x1xi64>, tensor<3x1xi64>) {
  %d = graph.constant dense<[[1], [2], [3]]> : tensor<3x1xi64>
  %i = graph.constant dense<[2, 2, 5]> : tensor<3xi64>
  %j = graph.constant dense<[-1, 1, 5]> : tensor<3xi64>
  %u = graph.constant dense<[[6], [5], [9]]> : tensor<3x1xi64>
  %v = graph.constant dense<[[6], [7], [9]]> : tensor<3x1xi64>
  %w = graph.constant dense<[[6], [5], [9]]> : tensor<3x1xi64>
  %0 = graph.scatter set %d, %j, %v : (tensor<3x1xi64>, tensor<3xi64>, tensor<3x1xi64>) -> tensor<3x1xi64>
  %1 = graph.scatter add %d, %i, %u : (tensor<3x1xi64>, tensor<3xi64>, tensor<3x1xi64>) -> tensor<3x1xi64>
  %2 = graph.scatter mul %d, %j, %w : (tensor<3x1xi64>, tensor<3xi64>, tensor<3x1xi64>) -> tensor<3x1xi64>
  return %0, %1, %2 : tensor<3x1xi64>, tensor<3x1xi64>, tensor<3x1xi64>
}

// CHECK-LABEL: @bits(
// CHECK-DAG: graph.constant dense<[8, -6]> : tensor<2xi32>
// CHECK-DAG: graph.constant dense<[14, -1]> : tensor<2xi32>
func.func @bits() -> (tensor<2xi32>, tensor<2xi32>) {
  %x = graph.constant dense<[12, -2]> : tensor<2xi32>
  %y = graph.constant dense<[10, -5]> : tensor<2xi32>
  %0 = graph.and %x, %y : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %1 = graph.or %x, %y : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %0, %1 : tensor<2xi32>, tensor<2xi32>
}

// Words 0x65dcab86, 0xa9325d35, 0x25141772 and 0xb6175bf7 in training; nothing is dropped outside of it.
// CHECK-LABEL: @dropout(
// CHECK-DAG: %[[Y:.*]] = graph.constant dense<[0.000000e+00, 4.000000e+00, 0.000000e+00, 8.000000e+00]> : tensor<4xf32>
// CHECK-DAG: %[[X:.*]] = graph.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
// CHECK: return %[[Y]], %[[X]], %arg0
func.func @dropout(%a: tensor<4xf32>, %k: tensor<7xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %x = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %training = graph.constant dense<[0, 0, 0, 0, 1, 0]> : tensor<7xi32>
  %testing = graph.constant dense<[0, 0, 0, 0, 0, 0]> : tensor<7xi32>
  %s = graph.constant dense<[0, -1]> : tensor<2xi32>
  %0 = graph.dropout %x, %training, %s {ratio = 0.5 : f64} : (tensor<4xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<4xf32>
  %1 = graph.dropout %x, %testing, %s {ratio = 0.5 : f64} : (tensor<4xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<4xf32>
  %2 = graph.dropout %a, %k, %s {ratio = 0.0 : f64} : (tensor<4xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What a narrower type holds: ties to even, too large is infinite; once is enough.
// CHECK-LABEL: @round_to(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
// CHECK: %[[A:.*]] = graph.constant dense<[1.000000e+00, 1.015625, 0x7F800000]>
// CHECK: %[[B:.*]] = graph.constant dense<[1.000000e+00, 6.499200e+04, 0x7F800000]>
// CHECK: %[[C:.*]] = graph.round_to %[[X]] {to = bf16}
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @round_to(%x: tensor<2xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<2xf32>) {
  %a = graph.constant dense<[1.00390625, 1.01171875, 3.40282346E+38]> : tensor<3xf32>
  %b = graph.constant dense<[1.00048828125, 65000.0, 65520.0]> : tensor<3xf32>
  %r0 = graph.round_to %a {to = bf16} : (tensor<3xf32>) -> tensor<3xf32>
  %r1 = graph.round_to %b {to = f16} : (tensor<3xf32>) -> tensor<3xf32>
  %c0 = graph.round_to %x {to = bf16} : (tensor<2xf32>) -> tensor<2xf32>
  %c1 = graph.round_to %c0 {to = bf16} : (tensor<2xf32>) -> tensor<2xf32>
  return %r0, %r1, %c1 : tensor<3xf32>, tensor<3xf32>, tensor<2xf32>
}

// Without infinities what is too large is no number or the largest; of powers of two the sign is dropped.
// CHECK-LABEL: @round_to_bytes(
// CHECK: %[[A:.*]] = graph.constant dense<[1.250000e-01, 0x7FC00000, -0.000000e+00]>
// CHECK: %[[B:.*]] = graph.constant dense<[1.250000e-01, 4.480000e+02, -0.000000e+00]>
// CHECK: %[[C:.*]] = graph.constant dense<[2.500000e-01, 5.120000e+02, 1.90734863E-6]>
// CHECK: return %[[A]], %[[B]]
func.func @round_to_bytes() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %a = graph.constant dense<[0.13, 500.0, -1.0e-6]> : tensor<3xf32>
  %r0 = graph.round_to %a {to = f8E4M3FN} : (tensor<3xf32>) -> tensor<3xf32>
  %r1 = graph.round_to %a {saturate, to = f8E4M3FN} : (tensor<3xf32>) -> tensor<3xf32>
  %r2 = graph.round_to %a {toward = "up", to = f8E8M0FNU} : (tensor<3xf32>) -> tensor<3xf32>
  return %r0, %r1, %r2 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// RUN: dsopt-opt %s -graph-to-linalg | FileCheck %s

// CHECK: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// An operation is one generic; broadcasting is its maps; splats stay constants.
// CHECK-LABEL: func.func private @pointwise
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[ROW]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
// CHECK: arith.mulf
// CHECK-NOT: fastmath
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[C]] :
func.func private @pointwise(%x: tensor<8x4xf32>, %r: tensor<8x1xf32>) -> tensor<8x4xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %c = graph.constant dense<2.0> : tensor<f32>
  %0 = graph.mul %x, %r : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %1 = graph.add %0, %c : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// A maximum starts from minus infinity and keeps NaN.
// CHECK-LABEL: func.func private @maximum
// CHECK: arith.constant dense<0xFF800000> : tensor<8xf32>
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: arith.maximumf
func.func private @maximum(%x: tensor<8x4xf32>) -> tensor<8xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.reduce_max %x {axes = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A reduction in the middle runs over what it keeps first.
// CHECK-LABEL: func.func private @middle
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
func.func private @middle(%x: tensor<8x4x2xf32>) -> tensor<8x2xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8, 2>} {
  %0 = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<8x4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// What is read elsewhere is read in the payload.
// CHECK-LABEL: func.func private @gather
// CHECK: linalg.generic
// CHECK: tensor.extract %arg1[%{{.*}}] : tensor<8xi64>
// CHECK: tensor.extract %arg0[%{{.*}}, %{{.*}}] : tensor<50x4xf32>
func.func private @gather(%t: tensor<50x4xf32>, %i: tensor<8xi64>) -> tensor<8x4xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.gather %t, %i {axis = 0} : (tensor<50x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// A number from the upper 24 bits of its word.
// CHECK-LABEL: func.func private @uniform
// CHECK: linalg.generic
// CHECK: linalg.index 1
// CHECK: arith.shrui
// CHECK: arith.sitofp
// CHECK: arith.mulf
func.func private @uniform(%k: tensor<7xi32>, %s: tensor<2xi32>) -> tensor<8x4xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.uniform %k, %s : (tensor<7xi32>, tensor<2xi32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Dropout's words follow from the element's place; a select, no branch.
// CHECK-LABEL: func.func private @dropout
// CHECK: linalg.generic
// CHECK: linalg.index 0
// CHECK: linalg.index 1
// CHECK: arith.cmpi uge
// CHECK: arith.select
func.func private @dropout(%x: tensor<8x4xf32>, %k: tensor<7xi32>, %s: tensor<2xi32>) -> tensor<8x4xf32>
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %0 = graph.dropout %x, %k, %s {ratio = 0.1 : f64} : (tensor<8x4xf32>, tensor<7xi32>, tensor<2xi32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Unsigned integers lose their sign's meaning in types, not in what is done.
// CHECK-LABEL: func.func private @unsigned(
// CHECK-SAME: %[[X:.*]]: tensor<8xi8>, %[[Y:.*]]: tensor<8xi8>) -> (tensor<8xf32>, tensor<8xi8>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Y]]
// CHECK: arith.cmpi ult
// CHECK: arith.maxui
// CHECK: arith.uitofp {{.*}} : i8 to f32
// CHECK: return {{.*}} : tensor<8xf32>, tensor<8xi8>
func.func private @unsigned(%x: tensor<8xui8>, %y: tensor<8xui8>) -> (tensor<8xf32>, tensor<8xui8>)
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} {
  %c = graph.less %x, %y : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xi1>
  %m = graph.max %x, %y : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xui8>
  %w = graph.where %c, %m, %y : (tensor<8xi1>, tensor<8xui8>, tensor<8xui8>) -> tensor<8xui8>
  %f = graph.cast %w : (tensor<8xui8>) -> tensor<8xf32>
  return %f, %w : tensor<8xf32>, tensor<8xui8>
}

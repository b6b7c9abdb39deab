// RUN: dsopt-opt %s -split-input-file -raise-logarithms | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -raise-logarithms -remarks-filter=idiom 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: remark: {{.*}}log_sigmoid
// REMARK: remark: {{.*}}log_sigmoid
// CHECK-LABEL: module @log_sigmoid
module @log_sigmoid {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<4xf32>)
  func.func @forward(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK-NOT: graph.sigmoid
    // CHECK-DAG: %[[ZERO:.*]] = graph.constant dense<0.000000e+00> : tensor<f32>
    // CHECK-DAG: %[[N:.*]] = graph.neg %[[X]]
    // CHECK: %[[M:.*]] = graph.max %[[N]], %
    // CHECK: %[[A:.*]] = graph.abs %[[X]]
    // CHECK-NEXT: %[[B:.*]] = graph.neg %[[A]]
    // CHECK-NEXT: %[[E:.*]] = graph.exp %[[B]]
    // CHECK: %[[U:.*]] = graph.add %[[E]], %[[ONE:.*]] :
    // CHECK-NEXT: %[[V:.*]] = graph.sub %[[U]], %[[ONE]]
    // CHECK-NEXT: %[[D:.*]] = graph.sub %[[E]], %[[V]]
    // CHECK-NEXT: %[[C:.*]] = graph.stop_gradient %[[D]]
    // CHECK-NEXT: %[[L:.*]] = graph.log %[[U]]
    // CHECK-NEXT: %[[P:.*]] = graph.add %[[L]], %[[C]]
    // CHECK-NEXT: %[[T:.*]] = graph.add %[[M]], %[[P]]
    // CHECK-NEXT: %[[Y:.*]] = graph.neg %[[T]]
    %s = graph.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
    %y = graph.log %s : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: graph.max %[[X]], %
    %one = graph.constant dense<1.0> : tensor<f32>
    %r = graph.sub %one, %s : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %z = graph.log %r : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: return %[[Y]], %
    return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A sigmoid that is written out; something else reads it.

// CHECK-LABEL: module @written
module @written {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<4xf32>)
  func.func @forward(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: %[[S:.*]] = graph.reciprocal
    // CHECK: graph.abs %[[X]]

    // CHECK: return %[[S]], %
    %one = graph.constant dense<1.0> : tensor<f32>
    %n = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    %e = graph.exp %n : (tensor<4xf32>) -> tensor<4xf32>
    %a = graph.add %e, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %s = graph.reciprocal %a : (tensor<4xf32>) -> tensor<4xf32>
    %y = graph.log %s : (tensor<4xf32>) -> tensor<4xf32>
    return %s, %y : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// The larger of two exponents, of which infinite ones may be equal; a power of two has a factor, a number is one.

// REMARK: remark: {{.*}}logaddexp
// REMARK: remark: {{.*}}logaddexp
// REMARK: remark: {{.*}}softplus
// CHECK-LABEL: module @logaddexp
module @logaddexp {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
  func.func @forward(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    // CHECK: %[[D:.*]] = graph.sub %[[X]], %[[Y]]
    // CHECK: %[[E:.*]] = graph.equal %[[X]], %[[Y]]
    // CHECK: %[[W:.*]] = graph.where %[[E]], %{{.*}}, %[[D]]
    // CHECK: graph.max %[[X]], %[[Y]]
    // CHECK: graph.abs %[[W]]
    %a = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %b = graph.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    %s = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.log %s : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: %[[LN2:.*]] = graph.constant dense<0.693147{{.*}}>
    // CHECK: %[[P:.*]] = graph.mul %[[Y]], %[[LN2]]
    // CHECK: %[[LN3:.*]] = graph.constant dense<1.09861{{.*}}>
    // CHECK: graph.sub %[[P]], %[[LN3]]
    %two = graph.constant dense<2.0> : tensor<f32>
    %three = graph.constant dense<3.0> : tensor<f32>
    %p = graph.pow %two, %y : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %t = graph.add %three, %p : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %m = graph.log %t : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: graph.max %[[X]], %
    // CHECK: graph.abs %[[X]]
    %one = graph.constant dense<1.0> : tensor<f32>
    %u = graph.add %one, %a : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %k = graph.log %u : (tensor<4xf32>) -> tensor<4xf32>
    return %l, %m, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A sum of exponentials relative to the largest; what is relative to it already stays.

// REMARK: remark: {{.*}}logsumexp
// CHECK-LABEL: module @logsumexp
module @logsumexp {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<4x3xf32>)
  func.func @forward(%x: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<4x1xf32>) {
    // CHECK: %[[M:.*]] = graph.reduce_max %[[X]] {axes = array<i64: 1>, keepdims}
    // CHECK: %[[S:.*]] = graph.stop_gradient
    // CHECK: %[[R:.*]] = graph.sub %[[X]], %[[S]]
    // CHECK: %[[E:.*]] = graph.exp %[[R]]
    // CHECK: %[[T:.*]] = graph.reduce_sum %[[E]] {axes = array<i64: 1>, keepdims}
    // CHECK: %[[G:.*]] = graph.log %[[T]]
    // CHECK: %[[A:.*]] = graph.add %[[G]], %[[S]]
    // CHECK: %[[L:.*]] = graph.reshape %[[A]]
    %e = graph.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %s = graph.reduce_sum %e {axes = array<i64: 1>} : (tensor<4x3xf32>) -> tensor<4xf32>
    %l = graph.log %s : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: graph.reduce_max
    // CHECK-NOT: graph.reduce_max
    // CHECK: return %[[L]]
    %m = graph.reduce_max %x {axes = array<i64: 1>, keepdims} : (tensor<4x3xf32>) -> tensor<4x1xf32>
    %d = graph.sub %x, %m : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
    %f = graph.exp %d : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %t = graph.reduce_sum %f {axes = array<i64: 1>, keepdims} : (tensor<4x3xf32>) -> tensor<4x1xf32>
    %k = graph.log %t : (tensor<4x1xf32>) -> tensor<4x1xf32>
    return %l, %k : tensor<4xf32>, tensor<4x1xf32>
  }
}

// -----

// REMARK: remark: {{.*}}log_softmax
// REMARK: remark: {{.*}}log1p
// REMARK: remark: {{.*}}log1p
// CHECK-LABEL: module @others
module @others {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<4x3xf32>)
  func.func @forward(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
    // CHECK-NOT: graph.softmax
    // CHECK: graph.reduce_max %[[X]] {axes = array<i64: 1>, keepdims}
    // CHECK: graph.reduce_sum
    %p = graph.softmax %x {axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %l = graph.log %p : (tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: %[[U:.*]] = graph.add %[[X]], %{{.*}} : (tensor<4x3xf32>, tensor<f32>)
    // CHECK: graph.less %[[X]], %
    // CHECK: graph.log %[[U]]
    %one = graph.constant dense<1.0> : tensor<f32>
    %a = graph.add %one, %x : (tensor<f32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %m = graph.log %a : (tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: %[[N:.*]] = graph.neg %[[X]]
    // CHECK: graph.add %[[N]], %
    %b = graph.sub %one, %x : (tensor<f32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %n = graph.log %b : (tensor<4x3xf32>) -> tensor<4x3xf32>
    // A number that is not one: nothing is known of it.
    // CHECK: %[[C:.*]] = graph.add %[[X]], %[[E:.*]] :
    // CHECK-NEXT: graph.log %[[C]]
    %epsilon = graph.constant dense<1.0e-8> : tensor<f32>
    %c = graph.add %x, %epsilon : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    %o = graph.log %c : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %l, %m, %n, %o : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
  }
}

// -----

// PyTorch's binary_cross_entropy_with_logits, with weights of positive labels.

// REMARK: remark: {{.*}}binary_cross_entropy_with_logits
// CHECK-LABEL: module @scores
module @scores {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
  func.func @forward(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: %[[W:.*]] = graph.add %[[Y]], %
    // CHECK: %[[R:.*]] = graph.sub %{{.*}}, %[[Y]]
    // CHECK-NOT: graph.sigmoid
    // CHECK: graph.max %[[X]], %
    // CHECK: %[[P:.*]] = graph.add
    // CHECK: graph.neg %[[X]]
    // CHECK: %[[N:.*]] = graph.add
    // CHECK: %[[V:.*]] = graph.sub %[[W]], %[[R]]
    // CHECK: %[[A:.*]] = graph.mul %[[R]], %[[P]]
    // CHECK: %[[B:.*]] = graph.mul %[[V]], %[[N]]
    // CHECK: graph.add %[[A]], %[[B]]
    %one = graph.constant dense<1.0> : tensor<f32>
    %w = graph.add %y, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %r = graph.sub %one, %y : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %a = graph.mul %r, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = graph.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
    %l = graph.log %s : (tensor<4xf32>) -> tensor<4xf32>
    %b = graph.mul %w, %l : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = graph.sub %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %d : tensor<4xf32>
  }
}

// -----

// PyTorch's binary_cross_entropy: a gradient that is given. No score is looked for behind the sigmoid.

// REMARK: remark: {{.*}}binary_cross_entropy
// CHECK-LABEL: module @probabilities
module @probabilities {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
  func.func @forward(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: %[[P:.*]] = graph.sigmoid %[[X]]
    // CHECK: %[[L:.*]] = graph.log %[[P]]
    // CHECK: %[[D:.*]] = graph.sub
    // CHECK: %[[C:.*]] = graph.custom_gradient 0 of(%[[P]], %[[Y]] : {{.*}}) is(%[[D]] : {{.*}}) saved(%[[P]], %[[Y]] : {{.*}}) {
    // CHECK: ^{{.*}}(%[[Q:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf32>):
    // CHECK: graph.constant dense<9.99999{{.*}}E-13>
    // CHECK: %[[E:.*]] = graph.sub %[[Q]], %[[T]]
    // CHECK: graph.yield
    // CHECK: return %[[C]]
    %one = graph.constant dense<1.0> : tensor<f32>
    %least = graph.constant dense<-100.0> : tensor<f32>
    %p = graph.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
    %r = graph.sub %y, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %n = graph.neg %p : (tensor<4xf32>) -> tensor<4xf32>
    %q = graph.add %n, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %k = graph.log %q : (tensor<4xf32>) -> tensor<4xf32>
    %f = graph.max %k, %least : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = graph.mul %r, %f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.log %p : (tensor<4xf32>) -> tensor<4xf32>
    %g = graph.max %l, %least : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %b = graph.mul %y, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = graph.sub %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %d : tensor<4xf32>
  }
}

// -----

// Of other labels, or with signs that are no cross-entropy's, it stays what it is.

// REMARK-NOT: binary_cross_entropy
// CHECK-LABEL: module @unlike
module @unlike {
  func.func @forward(%p: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK-NOT: graph.custom_gradient
    // CHECK: return
    %one = graph.constant dense<1.0> : tensor<f32>
    %least = graph.constant dense<-100.0> : tensor<f32>
    %r = graph.sub %one, %y : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %q = graph.sub %one, %p : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %k = graph.log %q : (tensor<4xf32>) -> tensor<4xf32>
    %f = graph.max %k, %least : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = graph.mul %r, %f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = graph.log %p : (tensor<4xf32>) -> tensor<4xf32>
    %g = graph.max %l, %least : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %b = graph.mul %z, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = graph.mul %y, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %e = graph.sub %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %d, %e : tensor<4xf32>, tensor<4xf32>
  }
}

// RUN: dsopt-opt %s -split-input-file -raise-activations | FileCheck %s
// RUN: dsopt-opt %s -split-input-file -raise-activations -remarks-filter=idiom 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The error function of x / sqrt(2), the half on the sum.

// REMARK: remark: {{.*}}gelu
// CHECK-LABEL: module @gelu
module @gelu {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
    // CHECK-NEXT: %[[Y:.*]] = graph.gelu %[[X]] : (tensor<3x8xf32>) -> tensor<3x8xf32>
    // CHECK-NEXT: return %[[Y]]
    %root = graph.constant dense<1.41421354> : tensor<f32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %d = graph.div %x, %root : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %e = graph.erf %d : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %s = graph.add %e, %one : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %h = graph.mul %half, %s : (tensor<f32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %y = graph.mul %x, %h : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

// GPT-2's: a power of three, the half on x.

// CHECK-LABEL: module @tanh
module @tanh {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
    // CHECK-NEXT: graph.gelu %[[X]] {approximate_tanh}
    %three = graph.constant dense<3.0> : tensor<f32>
    %a = graph.constant dense<0.044715> : tensor<f32>
    %b = graph.constant dense<0.797884583> : tensor<f32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %g = graph.mul %x, %half : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %c = graph.pow %x, %three : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %d = graph.mul %c, %a : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %e = graph.add %x, %d : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %f = graph.mul %e, %b : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %t = graph.tanh %f : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %s = graph.add %t, %one : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %y = graph.mul %g, %s : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

// Factored: x (b + a b x^2), halved last.

// CHECK-LABEL: module @factored
module @factored {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
    // CHECK-NEXT: graph.gelu %[[X]] {approximate_tanh}
    %ab = graph.constant dense<0.0356774081> : tensor<f32>
    %b = graph.constant dense<0.797884583> : tensor<f32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %q = graph.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %d = graph.mul %q, %ab : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %e = graph.add %d, %b : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %f = graph.mul %e, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %t = graph.tanh %f : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %s = graph.add %one, %t : (tensor<f32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %p = graph.mul %s, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %y = graph.mul %p, %half : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

// CHECK-LABEL: module @silu
// REMARK: remark: {{.*}}silu
module @silu {
  // CHECK: func.func @forward(%[[X:.*]]: tensor<3x8xf32>)
  func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
    // CHECK-NEXT: graph.silu %[[X]]
    %s = graph.sigmoid %x : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %y = graph.mul %s, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

// What stays: another polynomial, another factor, a gate of another value.

// CHECK-LABEL: module @kept
// REMARK: erf is not of x / sqrt(2)
// REMARK: it is not multiplied by x / 2
module @kept {
  // CHECK-NOT: graph.gelu
  // CHECK-NOT: graph.silu
  func.func @forward(%x: tensor<3x8xf32>, %z: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
    %one = graph.constant dense<1.0> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %e = graph.erf %x : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %s = graph.add %e, %one : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %h = graph.mul %half, %s : (tensor<f32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %y = graph.mul %x, %h : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %e2 = graph.erf %z : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %s2 = graph.add %e2, %one : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %g = graph.sigmoid %z : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %y2 = graph.mul %g, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y, %s2, %y2 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
  }
}

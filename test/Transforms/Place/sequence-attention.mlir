// RUN: dsopt-opt %s -split-input-file -decompose-composites | FileCheck %s

// A shard on each of three ranks. What the next step reads is sent before this one is computed; rows meet their own
// columns first.
// CHECK-LABEL: func @ring
// CHECK: [[K1:%.*]] = dist.shift %arg1 over [sp]
// CHECK: [[V1:%.*]] = dist.shift %arg2 over [sp]
// CHECK: [[R0:%.*]], [[L0:%.*]] = graph.attention_part %arg0, %arg1, %arg2 {begin = 0 : i64, causal, column_step = 4 : i64, distance = 0 : i64, {{.*}}partial, row_step = 4 : i64, {{.*}}shards = 3 : i64}
// CHECK: [[K2:%.*]] = dist.shift [[K1]] over [sp]
// CHECK: [[V2:%.*]] = dist.shift [[V1]] over [sp]
// CHECK: [[R1:%.*]], [[L1:%.*]] = graph.attention_part %arg0, [[K1]], [[V1]], [[R0]], [[L0]] {{.*}}distance = 1 : i64, {{.*}}partial
// CHECK: [[R2:%.*]], [[L2:%.*]] = graph.attention_part %arg0, [[K2]], [[V2]], [[R1]], [[L1]] {
// CHECK-NOT: partial
// CHECK-SAME: distance = 2 : i64
// CHECK: return [[R2]]
func.func @ring(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %r, %l = dist.attention %q, %k, %v over [sp] {operandSegmentSizes = array<i32: 1, 1, 1, 0>, causal, begin = 0 : i64, shards = 3 : i64, pairs = 2 : i64, scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return %r : tensor<1x2x4x8xf32>
}

// -----

// Sums of gradients go with the keys that they are of, and then home.
// CHECK-LABEL: func @back
// CHECK: [[K1:%.*]] = dist.shift %arg1 over [sp]
// CHECK: [[V1:%.*]] = dist.shift %arg2 over [sp]
// CHECK: [[Q0:%.*]], [[DK0:%.*]], [[DV0:%.*]] = graph.attention_part_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {{.*}}column_partial, {{.*}}distance = 0 : i64, {{.*}}q_partial
// CHECK: [[DK1:%.*]] = dist.shift [[DK0]] over [sp]
// CHECK: [[DV1:%.*]] = dist.shift [[DV0]] over [sp]
// CHECK-NOT: dist.shift [[K1]]
// CHECK: [[Q2:%.*]], [[DK2:%.*]], [[DV2:%.*]] = graph.attention_part_grad %arg0, [[K1]], [[V1]], %arg3, %arg4, %arg5, [[Q0]], [[DK1]], [[DV1]] {
// CHECK-NOT: partial
// CHECK-SAME: distance = 1 : i64
// CHECK: [[DK:%.*]] = dist.shift [[DK2]] over [sp]
// CHECK: [[DV:%.*]] = dist.shift [[DV2]] over [sp]
// CHECK: return [[Q2]], [[DK]], [[DV]]
func.func @back(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %r: tensor<1x2x4x8xf32>, %l: tensor<1x2x4xf32>, %g: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  %dq, %dk, %dv = dist.attention_grad %q, %k, %v, %r, %l, %g over [sp] {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1>, causal, begin = 0 : i64, shards = 2 : i64, pairs = 2 : i64, scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return %dq, %dk, %dv : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

// -----

// Two of four shards a rank: 0 and 1 meet what this rank has of 0, then 1 and 0 of the other's, and 0 its own 1 last.
// CHECK-LABEL: func @several
// CHECK: [[R0:%.*]], [[L0:%.*]] = graph.attention_part %arg0, %arg2, %arg2 {begin = 0 : i64, {{.*}}distance = 0 : i64,
// CHECK: [[S0:%.*]], [[M0:%.*]] = graph.attention_part %arg1, %arg3, %arg3 {begin = 0 : i64, {{.*}}distance = 0 : i64,
// CHECK: [[S1:%.*]], [[M1:%.*]] = graph.attention_part %arg1, %arg2, %arg2, [[S0]], [[M0]] {begin = 4 : i64, {{.*}}distance = 0 : i64,
// CHECK: [[R1:%.*]], [[N1:%.*]] = graph.attention_part %arg0, {{.*}}, [[R0]], [[L0]] {begin = -4 : i64, {{.*}}distance = 1 : i64,
// CHECK: [[R2:%.*]], [[N2:%.*]] = graph.attention_part %arg0, {{.*}}, [[R1]], [[N1]] {begin = 0 : i64, {{.*}}distance = 1 : i64,
// CHECK: graph.attention_part %arg1, {{.*}}, [[S1]], [[M1]] {begin = 0 : i64, {{.*}}distance = 1 : i64,
// CHECK: [[S3:%.*]], {{.*}} = graph.attention_part %arg1, {{.*}}{begin = 4 : i64, {{.*}}distance = 1 : i64,
// CHECK: [[R3:%.*]], {{.*}} = graph.attention_part %arg0, %arg3, %arg3, [[R2]], [[N2]] {begin = -4 : i64, {{.*}}distance = 0 : i64,
// CHECK: return [[R3]], [[S3]]
func.func @several(%q0: tensor<1x1x4x8xf32>, %q1: tensor<1x1x4x8xf32>, %k0: tensor<1x1x4x8xf32>, %k1: tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) {
  %r:2, %l:2 = dist.attention %q0, %q1, %k0, %k1, %k0, %k1 over [sp] {operandSegmentSizes = array<i32: 2, 2, 2, 0>, causal, begin = 0 : i64, shards = 4 : i64, pairs = 1 : i64, scale = 0.5 : f64} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  return %r#0, %r#1 : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>
}

// -----

// Two shards as batch entries, each distance with a mask of its own.
// CHECK-LABEL: func @entries
// CHECK: [[R0:%.*]], [[L0:%.*]] = graph.attention_part %arg0, %arg0, %arg0, %arg1 {{.*}}distance = 0 : i64, entries, {{.*}}partial
// CHECK: graph.attention_part %arg0, %arg0, %arg0, %arg2, [[R0]], [[L0]] {{.*}}distance = 1 : i64, entries
// CHECK-NOT: dist.
func.func @entries(%q: tensor<2x1x4x8xf32>, %m0: tensor<2x1x1x4xf32>, %m1: tensor<2x1x1x4xf32>) -> tensor<2x1x4x8xf32> {
  %r, %l = dist.attention %q, %q, %q, %m0, %m1 over [] {operandSegmentSizes = array<i32: 1, 1, 1, 2>, entries, begin = 0 : i64, shards = 2 : i64, pairs = 1 : i64, scale = 0.5 : f64} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  return %r : tensor<2x1x4x8xf32>
}

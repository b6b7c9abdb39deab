// RUN: dsopt-opt %s -split-input-file -decompose-composites | FileCheck %s

// A shard on each of three ranks. What the next step reads is sent before this one is computed; rows meet their own
// columns first.
// CHECK-LABEL: func @ring
// CHECK: [[K1:%.*]] = dist.shift %arg1 over [sp]
// CHECK: [[V1:%.*]] = dist.shift %arg2 over [sp]
// CHECK: [[R0:%.*]], [[L0:%.*]] = graph.attention_part %arg0, %arg1, %arg2 {begin = 0 : i64, causal, distance = 0 : i64, entries = 1 : i64, group = 1 : i64, {{.*}}partial, {{.*}}shards = 3 : i64}
// CHECK: [[K2:%.*]] = dist.shift [[K1]] over [sp]
// CHECK: [[V2:%.*]] = dist.shift [[V1]] over [sp]
// CHECK: [[R1:%.*]], [[L1:%.*]] = graph.attention_part %arg0, [[K1]], [[V1]], [[R0]], [[L0]] {{.*}}distance = 1 : i64, {{.*}}partial
// CHECK: [[R2:%.*]], [[L2:%.*]] = graph.attention_part %arg0, [[K2]], [[V2]], [[R1]], [[L1]] {
// CHECK-NOT: partial
// CHECK-SAME: distance = 2 : i64
// CHECK: return [[R2]]
func.func @ring(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %r, %l = dist.attention %q, %k, %v over [sp] {causal, entries = 1 : i64, begin = 0 : i64, shards = 3 : i64, pairs = 2 : i64, scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
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
  %dq, %dk, %dv = dist.attention_grad %q, %k, %v, %r, %l, %g over [sp] {causal, entries = 1 : i64, begin = 0 : i64, shards = 2 : i64, pairs = 2 : i64, scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return %dq, %dk, %dv : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

// -----

// Two of four shards a rank, as entries: shard 0 meets this rank's 0, 1 of the one before, 0 of that, and this rank's 1
// at last; 1 meets 1, 0, 1, 0. Where the next step's columns come in, they are behind those of this step.
// CHECK-LABEL: func @several
// CHECK: [[N:%.*]] = dist.shift %arg1 over [sp outer 2]
// CHECK: dist.shift %arg1 over [sp outer 2]
// CHECK: [[R0:%.*]], [[L0:%.*]] = graph.attention_part %arg0, %arg1, %arg1 {{.*}}distance = 0 : i64, entries = 2 : i64, group = 2 : i64
// CHECK: [[OWN:%.*]] = graph.slice %arg1 {{.*}}starts = array<i64: 0, 0, 0, 0>
// CHECK: [[NEXT:%.*]] = graph.slice [[N]] {{.*}}starts = array<i64: 1, 0, 0, 0>
// CHECK: [[K1:%.*]] = graph.concat [[OWN]], [[NEXT]] {axis = 0
// CHECK: [[R1:%.*]], [[L1:%.*]] = graph.attention_part %arg0, [[K1]], {{%.*}}, [[R0]], [[L0]] {{.*}}distance = 1 : i64
// CHECK: [[R2:%.*]], [[L2:%.*]] = graph.attention_part %arg0, [[N]], {{%.*}}, [[R1]], [[L1]] {{.*}}distance = 2 : i64
// CHECK: [[LAST:%.*]] = graph.slice [[N]] {{.*}}starts = array<i64: 0, 0, 0, 0>
// CHECK: [[HOME:%.*]] = graph.slice %arg1 {{.*}}starts = array<i64: 1, 0, 0, 0>
// CHECK: [[K3:%.*]] = graph.concat [[LAST]], [[HOME]] {axis = 0
// CHECK: [[R3:%.*]], {{%.*}} = graph.attention_part %arg0, [[K3]], {{%.*}}, [[R2]], [[L2]] {{.*}}distance = 3 : i64
// CHECK: return [[R3]]
func.func @several(%q: tensor<2x1x4x8xf32>, %k: tensor<2x1x4x8xf32>) -> tensor<2x1x4x8xf32> {
  %r, %l = dist.attention %q, %k, %k over [sp outer 2] {causal, entries = 2 : i64, begin = 0 : i64, shards = 4 : i64, pairs = 1 : i64, scale = 0.5 : f64} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  return %r : tensor<2x1x4x8xf32>
}

// -----

// Of two shards, what is summed for the one whose columns go on goes with them; what has come for the other is behind
// it. In the end the first one's is sent home, as it is rounded.
// CHECK-LABEL: func @entries_back
// CHECK: [[DQ0:%.*]], [[DK0:%.*]], {{%.*}} = graph.attention_part_grad {{.*}}distance = 0 : i64, entries = 2 : i64
// CHECK: [[STAYS:%.*]] = graph.slice [[DK0]] {{.*}}starts = array<i64: 0, 0, 0, 0>
// CHECK: [[GOES:%.*]] = graph.slice [[DK0]] {{.*}}starts = array<i64: 1, 0, 0, 0>
// CHECK: [[COMES:%.*]] = dist.shift [[GOES]] over [sp] : tensor<1x1x4x8xf32>
// CHECK: [[SUM1:%.*]] = graph.concat [[STAYS]], [[COMES]]
// CHECK: {{%.*}}, [[DK1:%.*]], {{%.*}} = graph.attention_part_grad {{.*}}, [[DQ0]], [[SUM1]], {{.*}}distance = 1 : i64
// CHECK: [[GOES1:%.*]] = graph.slice [[DK1]] {{.*}}starts = array<i64: 0, 0, 0, 0>
// CHECK: dist.shift [[GOES1]] over [sp]
// CHECK: {{%.*}}, [[DK3:%.*]], {{%.*}} = graph.attention_part_grad {{.*}}distance = 3 : i64
// CHECK: [[GOES3:%.*]] = graph.slice [[DK3]] {{.*}}starts = array<i64: 0, 0, 0, 0>
// CHECK: [[HOME:%.*]] = dist.shift [[GOES3]] over [sp] : tensor<1x1x4x8xbf16>
// CHECK: [[DK:%.*]] = graph.concat [[HOME]], {{%.*}} {axis = 0
// CHECK: return [[DK]]
func.func @entries_back(%q: tensor<2x1x4x8xbf16>, %l: tensor<2x1x4xf32>) -> tensor<2x1x4x8xbf16> {
  %dq, %dk, %dv = dist.attention_grad %q, %q, %q, %q, %l, %q over [sp] {causal, entries = 2 : i64, begin = 0 : i64, shards = 4 : i64, pairs = 1 : i64, scale = 0.5 : f64} : (tensor<2x1x4x8xbf16>, tensor<2x1x4x8xbf16>, tensor<2x1x4x8xbf16>, tensor<2x1x4x8xbf16>, tensor<2x1x4xf32>, tensor<2x1x4x8xbf16>) -> (tensor<2x1x4x8xbf16>, tensor<2x1x4x8xbf16>, tensor<2x1x4x8xbf16>)
  return %dk : tensor<2x1x4x8xbf16>
}

// -----

// All shards as batch entries, each distance with a mask of its own.
// CHECK-LABEL: func @entries
// CHECK: [[R0:%.*]], [[L0:%.*]] = graph.attention_part %arg0, %arg0, %arg0, %arg1 {{.*}}distance = 0 : i64, entries = 2 : i64, group = 0 : i64, {{.*}}partial
// CHECK: graph.attention_part %arg0, %arg0, %arg0, %arg2, [[R0]], [[L0]] {{.*}}distance = 1 : i64, entries = 2
// CHECK-NOT: dist.
func.func @entries(%q: tensor<2x1x4x8xf32>, %m0: tensor<2x1x1x4xf32>, %m1: tensor<2x1x1x4xf32>) -> tensor<2x1x4x8xf32> {
  %r, %l = dist.attention %q, %q, %q, %m0, %m1 over [] {entries = 2 : i64, begin = 0 : i64, shards = 2 : i64, pairs = 1 : i64, scale = 0.5 : f64} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  return %r : tensor<2x1x4x8xf32>
}

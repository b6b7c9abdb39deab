// RUN: dsopt-opt %s -build-matrix-updates | FileCheck %s

// Of tensor shards the function takes all of the matrix, those of other ranks too, joins their runs, and cuts what it
// makes as they are cut: columns, rows, or columns in each of three parts.

// CHECK-LABEL: func.func private @muon.4x6.of.2(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) attributes {graph.matrix_update}
// CHECK: %[[A:.*]] = graph.reshape %arg0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK: %[[B:.*]] = graph.reshape %arg1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK: %[[J:.*]] = graph.concat %[[A]], %[[B]] {axis = 1 : i64} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
// CHECK: %[[W:.*]] = graph.reshape %[[J]] : (tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK: %[[N:.*]] = graph.max
// CHECK: graph.div %[[W]], %[[N]]
// CHECK-COUNT-15: graph.matmul
// CHECK: %[[LAST:.*]] = graph.reshape {{.*}} -> tensor<4x6xf32>
// CHECK: graph.slice %[[LAST]] {sizes = array<i64: 4, 3>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>}
// CHECK: graph.slice %[[LAST]] {sizes = array<i64: 4, 3>, starts = array<i64: 0, 3>, steps = array<i64: 1, 1>}

// CHECK-LABEL: func.func private @muon.4x6.of.2.1(%arg0: tensor<2x6xf32>, %arg1: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
// CHECK: graph.concat {{.*}} {axis = 1 : i64} : (tensor<1x12xf32>, tensor<1x12xf32>) -> tensor<1x24xf32>
// CHECK: graph.reshape {{.*}} (tensor<1x24xf32>) -> tensor<4x6xf32>
// CHECK: graph.slice {{.*}} {sizes = array<i64: 1, 12>, starts = array<i64: 0, 12>, steps = array<i64: 1, 1>}
// CHECK: graph.reshape {{.*}} (tensor<1x12xf32>) -> tensor<2x6xf32>

// CHECK-LABEL: func.func private @muon.2x12.of.2(%arg0: tensor<2x6xf32>
// CHECK: graph.concat {{.*}} : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x4xf32>
// CHECK: graph.reshape {{.*}} (tensor<6x4xf32>) -> tensor<2x12xf32>

// What the last shard has beyond the whole is dropped, and made zero.
// CHECK-LABEL: func.func private @muon.3x4.of.2(%arg0: tensor<2x4xf32>
// CHECK: %[[J:.*]] = graph.concat {{.*}} -> tensor<1x16xf32>
// CHECK: graph.slice %[[J]] {sizes = array<i64: 1, 12>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>}
// CHECK: graph.reshape {{.*}} -> tensor<3x4xf32>
// CHECK: graph.pad {{.*}} {highs = array<i64: 0, 4>, lows = array<i64: 0, 0>, value = 0.000000e+00 : f32} : (tensor<1x12xf32>) -> tensor<1x16xf32>

// CHECK-LABEL: func.func @update
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.4x6.of.2>}
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.4x6.of.2.1>}
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.2x12.of.2>}
// CHECK: graph.muon {{.*}} {functions = #graph.functions<matrix = @muon.3x4.of.2>}
graph.parameter @c : tensor<4x6xf32> from "m" at 0 bytes 96
graph.parameter @c.shard.0 : tensor<4x3xf32> from "m" at 0 bytes 48 {name = "c", part_of = @c, part_begin = 0 : i64, part_runs = #graph.runs<3 every 6 step 3>}
graph.parameter @r : tensor<4x6xf32> from "m" at 0 bytes 96
graph.parameter @r.shard.0 : tensor<2x6xf32> from "m" at 0 bytes 48 {name = "r", part_of = @r, part_begin = 0 : i64, part_runs = #graph.runs<12 every 24 step 12>}
graph.parameter @p : tensor<2x12xf32> from "m" at 0 bytes 96
graph.parameter @p.shard.0 : tensor<2x6xf32> from "m" at 0 bytes 48 {name = "p", part_of = @p, part_begin = 0 : i64, part_runs = #graph.runs<2 every 4 step 2>}
graph.parameter @z : tensor<3x4xf32> from "m" at 0 bytes 48
graph.parameter @z.shard.0 : tensor<2x4xf32> from "m" at 0 bytes 32 {name = "z", part_of = @z, part_begin = 0 : i64, part_runs = #graph.runs<8 every 16 step 8>}
graph.state @r.master : tensor<2x6xf32> master of @r.shard.0
func.func @update(%s: tensor<16xf32>) {
  %c = graph.read @c.shard.0 : tensor<4x3xf32>
  %cu:2 = graph.muon %c, %c, %c, %s : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<16xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  %r = graph.read @r.master : tensor<2x6xf32>
  %ru:2 = graph.muon %r, %r, %r, %s : (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<16xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  %p = graph.read @p.shard.0 : tensor<2x6xf32>
  %pu:2 = graph.muon %p, %p, %p, %s : (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<16xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  %z = graph.read @z.shard.0 : tensor<2x4xf32>
  %zu:2 = graph.muon %z, %z, %z, %s : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<16xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -gather-by-node | FileCheck %s

// Two nodes of two ranks at each of two positions. The first gather of @b0's slices goes to the other node, the
// second stays in the node. Those of @b1 change in between, and go there again. What is no gather of
// parameters stays as it is.
module attributes {dsopt.options = {dp = 4 : i64, node_size = 2 : i64, secondary_params = "node", zero = 3 : i64}} {
  dist.grid @grid [pp = 2, edp = 4, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 200>] elements 256 padded 256 over [edp, ep, sp] zero 3
  dist.bucket @b1 : f32 of [1] [#dist.range<@v, 0, 256>] elements 256 padded 256 over [edp, ep, sp] zero 3
  func.func private @f(memref<256xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @change(memref<64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment}
  // CHECK-LABEL: exec.program @position0
  // CHECK-DAG: exec.buffer @b0.secondary : memref<128xf32> secondary slots 1 stride 512 {payload = 400 : i64}
  // CHECK-DAG: exec.buffer @b1.secondary : memref<128xf32> secondary slots 1 stride 512
  // CHECK: exec.schedule
  // CHECK-NEXT: exec.gather @b0.param to @b0.secondary bytes 256 all_gather order 0 over @across on @comm
  // CHECK-NEXT: exec.gather @b0.secondary to @b0.full bytes 256 all_gather order 1 over @node on @comm
  // CHECK-NEXT: %[[B0:.*]] = exec.gather @b0.secondary+256 to @b0.full+512 bytes 256 all_gather order 2 over @node on @comm
  // CHECK-NEXT: exec.wait %[[B0]] on @compute
  // CHECK-NEXT: exec.run @f [@b0.full]
  // CHECK-NEXT: exec.gather @b1.param to @b1.secondary bytes 256 as i8 all_gather order 3 over @across on @comm
  // CHECK-NEXT: exec.gather @b1.secondary to @b1.full bytes 256 as i8 all_gather order 4 over @node on @comm
  // CHECK-NEXT: exec.gather @b1.secondary+256 to @b1.full+512 bytes 256 as i8 all_gather order 5 over @node on @comm
  // CHECK-NEXT: exec.run @f [@b1.full]
  // CHECK-NEXT: exec.run @change [@b1.param]
  // CHECK-NEXT: exec.gather @b0.secondary to @b0.full bytes 256 all_gather order 6 over @node on @comm
  // CHECK-NEXT: exec.gather @b0.secondary+256 to @b0.full+512 bytes 256 all_gather order 7 over @node on @comm
  // CHECK-NEXT: exec.run @f [@b0.full]
  // CHECK-NEXT: exec.gather @b1.param to @b1.secondary bytes 256 as i8 all_gather order 8 over @across on @comm
  // CHECK-NEXT: order 9 over @node
  // CHECK-NEXT: order 10 over @node
  // CHECK-NEXT: exec.run @f [@b1.full]
  // CHECK-NEXT: exec.gather @x to @y bytes 8 all_gather order 11 over @dp on @comm
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b1.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b1
    exec.buffer @b0.full : memref<256xf32> buffers slots 1 stride 1024 gathered of @b0 {payload = 800 : i64}
    exec.buffer @b1.full : memref<256xf32> buffers slots 1 stride 1024 gathered of @b1
    exec.buffer @x : memref<2xf32> buffers slots 1 stride 64
    exec.buffer @y : memref<8xf32> buffers slots 1 stride 64
    exec.schedule {
      %0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
      exec.wait %0 on @compute
      %1 = exec.run @f [@b0.full] micro_batch 0 on @compute
      %2 = exec.gather @b1.param to @b1.full bytes 256 as i8 all_gather order 1 over @dp on @comm
      %3 = exec.run @f [@b1.full] micro_batch 0 on @compute
      %4 = exec.run @change [@b1.param] micro_batch 0 on @compute
      %5 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 2 over @dp on @comm
      %6 = exec.run @f [@b0.full] micro_batch 0 on @compute
      %7 = exec.gather @b1.param to @b1.full bytes 256 as i8 all_gather order 3 over @dp on @comm
      %8 = exec.run @f [@b1.full] micro_batch 0 on @compute
      %9 = exec.gather @x to @y bytes 8 all_gather order 4 over @dp on @comm
    }
  }
  exec.program @position1 position 1 blocks [2, 3] {
    exec.memory @device device
    exec.schedule {}
  }
}

// CHECK: exec.communicator @node over [edp inner 2]
// CHECK: exec.communicator @across over [edp outer 2]

// -----

// One node: nothing leaves it.
// CHECK: node_size = 2 : i64, secondary_params = "node"
// CHECK: exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
module attributes {dsopt.options = {dp = 2 : i64, node_size = 2 : i64, secondary_params = "node", zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b0.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b0
    exec.schedule {
      %0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
    }
  }
}

// -----

// expected-error @below {{node_size is 3, expected a divisor of the 4 data-parallel ranks}}
module attributes {dsopt.options = {dp = 4 : i64, node_size = 3 : i64, secondary_params = "node"}} {
  dist.grid @grid [pp = 1, edp = 4, ep = 1, sp = 1, tp = 1]
}

// -----

// expected-error @below {{secondary_params keeps what nodes of data-parallel ranks have, but slices lie on 2 ranks along sp, too: expected none}}
module attributes {dsopt.options = {dp = 4 : i64, node_size = 2 : i64, secondary_params = "node"}} {
  dist.grid @grid [pp = 1, edp = 4, ep = 1, sp = 2, tp = 1]
}

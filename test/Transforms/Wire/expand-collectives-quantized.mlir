// RUN: dsopt-opt %s -expand-collectives -split-input-file -verify-diagnostics | FileCheck %s

// A slice of 4160 elements travels as multiples of three scales, those of two whole blocks and of the rest, and
// with zeros up to the next granule; what
// comes of all slices is made in front of the run that reads it.
module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  func.func private @f(memref<8320xbf16> {exec.access = #exec.access<read>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @a.param : memref<4160xbf16> parameters slots 1 stride 8320 persistent
    exec.buffer @a.full : memref<8320xbf16> buffers slots 1 stride 16640 {payload = 16000 : i64}
    exec.schedule {
      %0 = exec.gather @a.param to @a.full bytes 8320 as i8 all_gather order 0 over @dp on @comm
      %1 = exec.run @f [@a.full] micro_batch 0 on @compute
    }
  }
}

// CHECK: exec.buffer @a.param.wire : memref<4224xi8> buffers slots 1
// CHECK: exec.buffer @a.full.wire : memref<8448xi8> buffers slots 1 stride 8448 {payload = 8024 : i64}
// CHECK: exec.map @wire.quantize.bf16.2048 [@a.param, @a.param.wire, @a.param.wire+4160] elements 2 grain 1 on @compute
// CHECK-NEXT: exec.map @wire.quantize.bf16.64 [@a.param+8192, @a.param.wire+4096, @a.param.wire+4168] elements 1 grain 1 on @compute
// CHECK-NEXT: exec.map @wire.zeros [@a.param, @a.param.wire+4172] elements 13 on @compute
// CHECK-NEXT: exec.gather @a.param.wire to @a.full.wire bytes 4224 for 8320 all_gather order 0 over @dp on @comm
// CHECK-NEXT: exec.map @wire.dequantize.bf16.2048 [@a.full.wire, @a.full.wire+4160, @a.full] elements 2 grain 1 on @compute
// CHECK-NEXT: exec.map @wire.dequantize.bf16.64 [@a.full.wire+4096, @a.full.wire+4168, @a.full+8192] elements 1 grain 1 on @compute
// CHECK-NEXT: exec.map @wire.dequantize.bf16.2048 [@a.full.wire+4224, @a.full.wire+8384, @a.full+8320] elements 2 grain 1 on @compute
// CHECK-NEXT: exec.map @wire.dequantize.bf16.64 [@a.full.wire+8320, @a.full.wire+8392, @a.full+16512] elements 1 grain 1 on @compute
// CHECK-NEXT: exec.run @f [@a.full]

// CHECK: func.func private @wire.quantize.bf16.2048(%[[X:.*]]: tensor<64x2048xbf16>) -> (tensor<64x2048xi8>, tensor<64x1xf32>) attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 64>}
// CHECK: %[[WIDE:.*]] = graph.cast %[[X]]
// CHECK: %[[ABS:.*]] = graph.abs %[[WIDE]]
// CHECK: %[[MOST:.*]] = graph.reduce_max %[[ABS]]
// CHECK: %[[QUOTIENT:.*]] = graph.div %[[MOST]]
// CHECK: %[[SCALE:.*]] = graph.max %[[QUOTIENT]]
// CHECK: %[[INVERSE:.*]] = graph.reciprocal %[[SCALE]]
// CHECK: %[[MULTIPLE:.*]] = graph.mul %[[WIDE]], %[[INVERSE]]
// CHECK: %[[NEAREST:.*]] = graph.round %[[MULTIPLE]]
// CHECK: %[[BYTES:.*]] = graph.cast %[[NEAREST]]
// CHECK: return %[[BYTES]], %[[SCALE]]

// -----

// What a node keeps is kept as it travels, and nothing is converted on the way.
module attributes {dsopt.options = {dp = 4 : i64, zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 4, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @node over [edp inner 2]
  exec.communicator @across over [edp outer 2]
  func.func private @f(memref<256xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @a.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @a.secondary : memref<128xf32> secondary slots 1 stride 512
    exec.buffer @a.full : memref<256xf32> buffers slots 1 stride 1024
    exec.schedule {
      %0 = exec.gather @a.param to @a.secondary bytes 256 as i8 all_gather order 0 over @across on @comm
      %1 = exec.gather @a.secondary to @a.full bytes 256 as i8 all_gather order 1 over @node on @comm
      %2 = exec.gather @a.secondary+256 to @a.full+512 bytes 256 as i8 all_gather order 2 over @node on @comm
      %3 = exec.run @f [@a.full] micro_batch 0 on @compute
      %4 = exec.gather @a.secondary to @a.full bytes 256 as i8 all_gather order 3 over @node on @comm
      %5 = exec.gather @a.secondary+256 to @a.full+512 bytes 256 as i8 all_gather order 4 over @node on @comm
      %6 = exec.run @f [@a.full] micro_batch 1 on @compute
    }
  }
}

// CHECK-LABEL: dp = 4
// CHECK-NOT: exec.buffer @a.secondary :
// CHECK: exec.buffer @a.secondary.wire : memref<256xi8> secondary slots 1
// CHECK-NOT: exec.buffer @a.secondary :
// CHECK: exec.map @wire.quantize.f32.64 [@a.param, @a.param.wire, @a.param.wire+64] elements 1
// CHECK-NEXT: exec.map @wire.zeros [@a.param, @a.param.wire+68] elements 15 on @compute
// CHECK-NEXT: exec.gather @a.param.wire to @a.secondary.wire bytes 128 for 256 all_gather order 0 over @across
// CHECK-NEXT: exec.gather @a.secondary.wire to @a.full.wire bytes 128 for 256 all_gather order 1 over @node
// CHECK-NEXT: exec.gather @a.secondary.wire+128 to @a.full.wire+256 bytes 128 for 256 all_gather order 2 over @node
// CHECK-COUNT-4: exec.map @wire.dequantize.f32.64
// CHECK-NEXT: exec.run
// CHECK-NEXT: exec.gather @a.secondary.wire to
// CHECK-NEXT: exec.gather @a.secondary.wire+128 to
// CHECK-NEXT: exec.map @wire.dequantize.f32.64 [@a.full.wire, @a.full.wire+64, @a.full] elements 1
// CHECK-NEXT: exec.map @wire.dequantize.f32.64 [@a.full.wire+128, @a.full.wire+192, @a.full+256] elements 1
// CHECK-NEXT: exec.map @wire.dequantize.f32.64 [@a.full.wire+256, @a.full.wire+320, @a.full+512] elements 1
// CHECK-NEXT: exec.map @wire.dequantize.f32.64 [@a.full.wire+384, @a.full.wire+448, @a.full+768] elements 1
// CHECK-NEXT: exec.run

// -----

exec.stream @comm communication
exec.communicator @dp over [edp, ep, sp]
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @p.param : memref<64xi32> parameters slots 1 stride 256 persistent
  exec.buffer @p.full : memref<128xi32> buffers slots 1 stride 512
  exec.schedule {
    // expected-error @below {{of 'i32' travels as 'i8', expected floats as i8}}
    %0 = exec.gather @p.param to @p.full bytes 256 as i8 all_gather order 0 over @dp on @comm
  }
}

// RUN: dsopt-opt %s -expand-collectives -split-input-file -verify-diagnostics | FileCheck %s

// Whole parameters are widened in front of the run that reads them, so that they travel while another runs; a
// gather without another type stays.
module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  func.func private @f0(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.buffer @a.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @b.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @a.full : memref<128xf32> buffers slots 1 stride 512 {payload = 400 : i64}
    exec.buffer @b.full : memref<128xf32> buffers slots 1 stride 512
    exec.schedule {
      %0 = exec.gather @b.param to @b.full bytes 256 all_gather order 0 over @dp on @comm
      %1 = exec.gather @a.param to @a.full bytes 256 as bf16 all_gather order 1 over @dp on @comm
      %2 = exec.run @f0 [@b.full] micro_batch 0 on @compute
      %3 = exec.run @f0 [@a.full] micro_batch 0 on @compute
    }
  }
}

// CHECK: exec.buffer @a.param.wire : memref<64xbf16> buffers slots 1 stride 128
// CHECK: exec.buffer @a.full.wire : memref<128xbf16> buffers slots 1 stride 256 {payload = 200 : i64}
// CHECK: exec.gather @b.param to @b.full bytes 256 all_gather order 0 over @dp on @comm
// CHECK-NEXT: exec.map @wire.narrow.f32 [@a.param, @a.param.wire] elements 64 on @compute
// CHECK-NEXT: exec.gather @a.param.wire to @a.full.wire bytes 128 for 256 all_gather order 1 over @dp on @comm
// CHECK-NEXT: exec.run @f0 [@b.full]
// CHECK-NEXT: exec.map @wire.widen.bf16 [@a.full.wire, @a.full] elements 128 on @compute
// CHECK-NEXT: exec.run @f0 [@a.full]

// -----

exec.stream @comm communication
exec.communicator @dp over [edp, ep, sp]
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @p.param : memref<64xbf16> parameters slots 1 stride 128 persistent
  exec.buffer @p.full : memref<128xbf16> buffers slots 1 stride 256
  exec.schedule {
    // expected-error @below {{of 'bf16' travels as 'bf16', expected f32 as bf16}}
    %0 = exec.gather @p.param to @p.full bytes 128 as bf16 all_gather order 0 over @dp on @comm
  }
}

// RUN: dsopt-opt %s -share-gathers=max-reuse-distance=256 | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: dsopt-opt %s -share-gathers=max-reuse-distance=257 | FileCheck %s --check-prefixes=CHECK,Q
// RUN: dsopt-opt %s -share-gathers=max-reuse-distance=513 | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: dsopt-opt %s "-share-gathers=max-reuse-distance=1000 max-live-parameters=256" --remarks-filter-missed=overlap --remark-format=emitRemark -verify-diagnostics | FileCheck %s --check-prefixes=CHECK,Q
// RUN: not dsopt-opt %s -share-gathers=max-live-parameters=127 2>&1 | FileCheck %s --check-prefix=ERROR

// Forward and backward of three blocks. @r is used again at once, @q behind two runs with 128 elements, @p behind
// four: a bucket stays whole where fewer elements are used before it is needed again.
// With 256 elements at most @q stays, which is needed again sooner than @p.
// CHECK: exec.gather @p.param
// CHECK-NEXT: exec.run @f [@p.full]
// CHECK-NEXT: exec.gather @q.param
// CHECK-NEXT: exec.run @f [@q.full]
// CHECK-NEXT: exec.gather @r.param
// CHECK-NEXT: exec.run @f [@r.full]
// CHECK-NEXT: exec.run @b [@r.full]
// NONE-NEXT: exec.gather @q.param
// NONE-NEXT: exec.run @b [@q.full]
// NONE-NEXT: exec.gather @p.param
// Q-NEXT: exec.run @b [@q.full]
// Q-NEXT: exec.gather @p.param
// ALL-NEXT: exec.run @b [@q.full]
// CHECK-NEXT: exec.run @b [@p.full]

// ERROR: the run of @f on micro-batch 0 needs 128 gathered elements of parameters at once, more than -max-live-parameters=127 allows
module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  func.func private @f(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @b(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 3] {
    exec.memory @device device
    exec.buffer @p.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @p.full : memref<128xf32> buffers slots 1 stride 512
    exec.buffer @q.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @q.full : memref<128xf32> buffers slots 1 stride 512
    exec.buffer @r.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @r.full : memref<128xf32> buffers slots 1 stride 512
    exec.schedule {
      %g0 = exec.gather @p.param to @p.full bytes 256 all_gather order 0 over @dp on @comm
      %r0 = exec.run @f [@p.full] micro_batch 0 on @compute
      exec.release %g0
      %g1 = exec.gather @q.param to @q.full bytes 256 all_gather order 1 over @dp on @comm
      %r1 = exec.run @f [@q.full] micro_batch 0 on @compute
      exec.release %g1
      %g2 = exec.gather @r.param to @r.full bytes 256 all_gather order 2 over @dp on @comm
      %r2 = exec.run @f [@r.full] micro_batch 0 on @compute
      exec.release %g2
      %g3 = exec.gather @r.param to @r.full bytes 256 all_gather order 3 over @dp on @comm
      %r3 = exec.run @b [@r.full] micro_batch 0 on @compute
      exec.release %g3
      %g4 = exec.gather @q.param to @q.full bytes 256 all_gather order 4 over @dp on @comm
      %r4 = exec.run @b [@q.full] micro_batch 0 on @compute
      exec.release %g4
      // expected-remark @below {{stage 0: @p.full is gathered again: -max-live-parameters=256}}
      %g5 = exec.gather @p.param to @p.full bytes 256 all_gather order 5 over @dp on @comm
      %r5 = exec.run @b [@p.full] micro_batch 0 on @compute
      exec.release %g5
    }
  }
}

// RUN: dsopt-opt %s -share-gathers | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: dsopt-opt %s -share-gathers=gather-window=2 | FileCheck %s --check-prefixes=CHECK,TWO

// Forward and backward of two blocks on three micro-batches: each gather serves its window to the last
// release of it; what overlaps or follows without a run between is one.
module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64, micro_batches = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  func.func private @f0(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @f1(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @b1(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.buffer @p.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @p.full : memref<128xf32> buffers slots 1 stride 512
    exec.buffer @q.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @q.full : memref<128xf32> buffers slots 1 stride 512
    exec.schedule {
      %g0 = exec.gather @p.param to @p.full bytes 256 all_gather order 0 over @dp on @comm
      %r0 = exec.run @f0 [@p.full] micro_batch 0 on @compute
      exec.release %g0
      %g1 = exec.gather @q.param to @q.full bytes 256 all_gather order 1 over @dp on @comm
      %r1 = exec.run @f1 [@q.full] micro_batch 0 on @compute
      exec.release %g1
      %g2 = exec.gather @q.param to @q.full bytes 256 all_gather order 2 over @dp on @comm
      %r2 = exec.run @b1 [@q.full] micro_batch 0 on @compute
      exec.release %g2
      %g3 = exec.gather @p.param to @p.full bytes 256 all_gather order 3 over @dp on @comm
      %r3 = exec.run @f0 [@p.full] micro_batch 1 on @compute
      exec.release %g3
      %g4 = exec.gather @p.param to @p.full bytes 256 all_gather order 4 over @dp on @comm
      %r4 = exec.run @f0 [@p.full] micro_batch 2 on @compute
      exec.release %g4
      %g5 = exec.gather @q.param to @q.full bytes 256 all_gather order 5 over @dp on @comm
      %r5 = exec.run @f1 [@q.full] micro_batch 1 on @compute
      %r6 = exec.run @f0 [@q.full] micro_batch 1 on @compute
      exec.release %g5
      %agree = exec.agree norms [] losses [] order 6 over @world on @comm
    }
  }
}

// CHECK: exec.gather @p.param to @p.full bytes 256 all_gather order 0
// CHECK-NEXT: exec.run @f0 {{.*}} micro_batch 0
// CHECK-NEXT: exec.gather @q.param to @q.full bytes 256 all_gather order 1
// CHECK-NEXT: exec.run @f1 {{.*}} micro_batch 0
// CHECK-NEXT: exec.run @b1 {{.*}} micro_batch 0
// Windows of one: the third and fourth of @p follow each other and are one.
// ONE-NEXT: exec.gather @p.param to @p.full bytes 256 all_gather order 2
// ONE-NEXT: exec.run @f0 {{.*}} micro_batch 1
// ONE-NEXT: exec.run @f0 {{.*}} micro_batch 2
// ONE-NEXT: exec.gather @q.param to @q.full bytes 256 all_gather order 3
// Windows of two: micro-batches 0 and 1 share a gather, 2 follows them at once.
// TWO-NEXT: exec.run @f0 {{.*}} micro_batch 1
// TWO-NEXT: exec.run @f0 {{.*}} micro_batch 2
// TWO-NEXT: exec.run @f1 {{.*}} micro_batch 1
// CHECK-NEXT: exec.run @f{{.*}} micro_batch 1
// CHECK-NOT: exec.release
// ONE: exec.agree norms [] losses [] order 4
// TWO: exec.agree norms [] losses [] order 2

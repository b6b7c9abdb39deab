// RUN: dsopt-opt %s "-prefetch-gathers=distance=9 bucket-size=100" | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: dsopt-opt %s "-prefetch-gathers=distance=9 bucket-size=101" | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: dsopt-opt %s "-prefetch-gathers=distance=9 bucket-size=0" | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: dsopt-opt %s "-prefetch-gathers=distance=9 max-live-parameters=200" --remarks-filter-missed=overlap --remark-format=emitRemark -verify-diagnostics | FileCheck %s --check-prefixes=CHECK,LIVE

// Four blocks of 100 parameters, padded to 128. While as many elements as the bucket size are ahead no other gather
// starts early; the one that reaches it is the last. No more than max-live-parameters are whole at once.
// CHECK: exec.gather @p.param
// TWO-NEXT: exec.gather @q.param
// TWO-NEXT: %[[R0:.*]] = exec.run @f [@p.full
// TWO-NEXT: exec.wait %[[R0]] on @comm
// TWO-NEXT: exec.gather @r.param
// TWO-NEXT: %[[R1:.*]] = exec.run @f [@q.full
// TWO-NEXT: exec.wait %[[R1]] on @comm
// TWO-NEXT: exec.gather @s.param
// TWO-NEXT: exec.run @f [@r.full
// THREE-NEXT: exec.gather @q.param
// THREE-NEXT: exec.gather @r.param
// THREE-NEXT: %[[R0:.*]] = exec.run @f [@p.full
// THREE-NEXT: exec.wait %[[R0]] on @comm
// THREE-NEXT: exec.gather @s.param
// THREE-NEXT: exec.run @f [@q.full
// NONE-NEXT: exec.run @f [@p.full
// NONE: exec.gather @q.param
// NONE-NEXT: exec.run @f [@q.full
// LIVE-NEXT: exec.gather @q.param
// LIVE-NEXT: exec.run @f [@p.full
// LIVE: exec.run @f [@q.full
// LIVE: exec.run @f [@r.full
// LIVE-NEXT: exec.wait
// LIVE-NEXT: exec.gather @s.param
// LIVE-NEXT: exec.run @f [@s.full
module attributes {dsopt.options = {dp = 2 : i64, zero = 3 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  func.func private @f(memref<128xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 4] {
    exec.memory @device device
    exec.buffer @p.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @p.full : memref<128xf32> buffers slots 1 stride 512 {payload = 400 : i64}
    exec.buffer @q.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @q.full : memref<128xf32> buffers slots 1 stride 512 {payload = 400 : i64}
    exec.buffer @r.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @r.full : memref<128xf32> buffers slots 1 stride 512 {payload = 400 : i64}
    exec.buffer @s.param : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @s.full : memref<128xf32> buffers slots 1 stride 512 {payload = 400 : i64}
    exec.schedule {
      // expected-remark @below {{stage 0: @p.full is not gathered ahead of its run: no run comes before it}}
      %g0 = exec.gather @p.param to @p.full bytes 256 all_gather order 0 over @dp on @comm
      %r0 = exec.run @f [@p.full, @p.full] micro_batch 0 on @compute
      %g1 = exec.gather @q.param to @q.full bytes 256 all_gather order 1 over @dp on @comm
      %r1 = exec.run @f [@q.full, @q.full] micro_batch 0 on @compute
      %g2 = exec.gather @r.param to @r.full bytes 256 all_gather order 2 over @dp on @comm
      %r2 = exec.run @f [@r.full, @q.full] micro_batch 0 on @compute
      // expected-remark @below {{stage 0: @s.full is not gathered ahead of its run: -max-live-parameters=200}}
      %g3 = exec.gather @s.param to @s.full bytes 256 all_gather order 3 over @dp on @comm
      %r3 = exec.run @f [@s.full, @s.full] micro_batch 0 on @compute
    }
  }
}

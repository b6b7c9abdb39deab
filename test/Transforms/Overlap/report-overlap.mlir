// RUN: dsopt-opt %s -verify-diagnostics -report-overlap --remarks-filter-missed=overlap --remark-format=emitRemark -o /dev/null
// RUN: sed /expected/d %s | dsopt-opt -report-overlap 2>&1 | FileCheck %s --implicit-check-not=remark

// What the compute stream waits for with no run between, what a run covers, and what follows the last run.
// CHECK: exec.schedule
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64, zero = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @download copy
  exec.communicator @dp over [edp, ep, sp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 2
  func.func private @w(memref<16xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<write>}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.memory @host host
    exec.buffer @b0.grad.0 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @b0.whole.0.0 : memref<128xf32> buffers slots 2 stride 512 of @b0
    exec.buffer @host.y in @host : memref<16xf32> activations slots 2 stride 64
    exec.buffer @norms : memref<16xi64> buffers slots 1 stride 128
    exec.buffer @x : memref<16xf32> activations slots 2 stride 64
    exec.schedule {
      %f0 = exec.run @w [@x, @b0.whole.0.0[1]] micro_batch 0 on @compute
      exec.wait %f0 on @comm
      %r0 = exec.reduce @b0.whole.0.0[1] to @b0.grad.0 elements 64 : f32 order 0 over @dp on @comm
      exec.wait %f0 on @download
      // expected-remark @below {{stage 0: a copy is waited for at once: exec.run touches @b0.whole.0.0, and no run lies between}}
      %c0 = exec.copy @b0.whole.0.0 to @host.y bytes 64 on @download
      exec.wait %c0 on @compute
      %f1 = exec.run @w [@x[1], @b0.whole.0.0] micro_batch 0 on @compute
      // The run before covers it.
      exec.wait %r0 on @compute
      %f2 = exec.run @w [@x, @b0.whole.0.0[1]] micro_batch 1 on @compute
      exec.wait %f2 on @comm
      // expected-remark @below {{stage 0: a reduction is waited for at once: exec.norm touches @b0.grad.0, and no run lies between}}
      %r1 = exec.reduce @b0.whole.0.0[1] to @b0.grad.0 elements 64 : f32 accumulate order 1 over @dp on @comm
      exec.wait %r1 on @compute
      %n = exec.norm @b0.grad.0 of @b0 to @norms on @compute
      exec.wait %n on @download
      // expected-remark @below {{stage 0: a copy follows the last run (2 times a step): it needs what that or a later action leaves}}
      %c1 = exec.copy @x to @host.y bytes 64 on @download
      %c2 = exec.copy @x[1] to @host.y[1] bytes 64 on @download
    }
  }
}

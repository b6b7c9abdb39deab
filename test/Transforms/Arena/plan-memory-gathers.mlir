// RUN: dsopt-opt %s -plan-memory | FileCheck %s
// RUN: sed -e '/bytes 128 on @upload .. again/d' -e '/exec.wait %c1/d' %s | dsopt-opt -plan-memory | FileCheck %s --check-prefix=KEPT
// RUN: sed 's/@full+128\*edp bytes 128 on @upload \/\/ again/@full+64*edp bytes 128 on @upload/' %s | dsopt-opt -plan-memory | FileCheck %s --check-prefix=KEPT

// A gather in place keeps what each rank has brought of its own: before that nothing of the whole is alive, and others lie there. Where
// nothing is brought, or something else, the slice is of the time before.
// CHECK: exec.memory @device device bytes 768
// CHECK: exec.buffer @full at [[AT:[0-9]+]] :
// CHECK: exec.buffer @b at [[AT]] :
// KEPT: exec.memory @device device bytes 1024
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64}, dsopt.target = #target} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @upload copy
  exec.communicator @dp over [edp, ep, sp]
  func.func private @f(memref<64xf32> {exec.access = #exec.access<read>}, memref<64xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.memory @host host
    exec.buffer @w in @host : memref<32xf32> parameters slots 1 stride 128 persistent
    exec.buffer @x : memref<64xf32> activations slots 1 stride 256 persistent
    exec.buffer @full : memref<64xf32> buffers slots 1 stride 256
    exec.buffer @a : memref<64xf32> activations slots 1 stride 256
    exec.buffer @b : memref<64xf32> activations slots 1 stride 256
    exec.buffer @c : memref<64xf32> activations slots 1 stride 256
    exec.schedule {
      %c0 = exec.copy @w to @full+128*edp bytes 128 on @upload
      exec.wait %c0 on @comm
      %g0 = exec.gather @full+128*edp to @full bytes 128 all_gather order 0 over @dp on @comm
      exec.wait %g0 on @compute
      %r0 = exec.run @f [@full, @a] micro_batch 0 on @compute
      %r1 = exec.run @f [@a, @b] micro_batch 0 on @compute
      %r2 = exec.run @f [@b, @x] micro_batch 0 on @compute
      exec.wait %r2 on @comm
      exec.wait %r2 on @upload
      %c1 = exec.copy @w to @full+128*edp bytes 128 on @upload // again
      exec.wait %c1 on @comm
      %g1 = exec.gather @full+128*edp to @full bytes 128 all_gather order 1 over @dp on @comm
      exec.wait %g1 on @compute
      %r3 = exec.run @f [@full, @c] micro_batch 0 on @compute
    }
  }
}

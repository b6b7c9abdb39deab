// RUN: dsopt-opt %s -report-overlap --remarks-filter-missed=overlap --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=remark

// Of two hops beside a run of 0.1 ms each takes 0.1 ms: the second one's is waited for. An exchange that nothing runs beside
// is, whole, and a sum of tensor shards is none of a sequence's.
// CHECK: remark: {{.*}}stage 0: runs of phase F wait 0.100 ms for hops along sp outer 2 (1 a step, 500000 bytes), first in block 1
// CHECK: remark: {{.*}}stage 0: runs of phase B wait 0.200 ms for exchanges along sp inner 2 (1 a step, 1000000 bytes), first in block 2
module attributes {dsopt.options = {pp = 1 : i64, sp = 4 : i64}} {
  dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 4, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @"sp inner 2" over [sp inner 2]
  exec.communicator @"sp outer 2" over [sp outer 2]
  func.func private @first(memref<125000xf32> {exec.access = #exec.access<read>}, memref<125000xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>, exec.flops = 5000000 : i64}
  func.func private @second(memref<125000xf32> {exec.access = #exec.access<read>}, memref<125000xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>, exec.flops = 5000000 : i64}
  func.func private @third(memref<125000xf32> {exec.access = #exec.access<read>}, memref<125000xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 2 : i64, graph.phase = #graph.phase<B>, exec.flops = 5000000 : i64}
  exec.program @position0 position 0 blocks [0, 3] {
    exec.memory @device device
    exec.buffer @k : memref<125000xf32> activations slots 1 stride 500032
    exec.buffer @v : memref<125000xf32> activations slots 1 stride 500032
    exec.buffer @next.k : memref<125000xf32> activations slots 1 stride 500032
    exec.buffer @next.v : memref<125000xf32> activations slots 1 stride 500032
    exec.buffer @out : memref<125000xf32> activations slots 1 stride 500032
    exec.buffer @x : memref<500000xf32> activations slots 1 stride 2000000
    exec.buffer @y : memref<500000xf32> activations slots 1 stride 2000000
    exec.schedule {
      %h0 = exec.shift @k to @next.k bytes 500000 sequence_parallel order 0 over @"sp outer 2" on @comm
      %h1 = exec.shift @v to @next.v bytes 500000 sequence_parallel order 1 over @"sp outer 2" on @comm
      %f0 = exec.run @first [@k, @out] micro_batch 0 on @compute
      exec.wait %h1 on @compute
      %f1 = exec.run @second [@next.v, @out] micro_batch 0 on @compute
      exec.wait %f1 on @comm
      %s0 = exec.all_to_all @x to @y bytes 1000000 sequence_parallel order 2 over @"sp inner 2" on @comm
      exec.wait %s0 on @compute
      %f2 = exec.run @third [@next.v, @out] micro_batch 0 on @compute
    }
  }
}

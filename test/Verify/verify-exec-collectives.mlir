// RUN: dsopt-opt %s -verify-exec -o /dev/null

// Four ranks at two positions, all-to-all among the two that stand across from each other. It is right; each of the
// others has one mistake.
// RUN: sed -e '/%%b/d;/%%run = exec.run @block1/s/@to/@from/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: 'exec.program' op has 0 collectives over @across at position 1, but position 0 has 1
// MISSING: note: the other one's all-to-all into @to is here
// RUN: sed -e '/%%b = /s/bytes 32/bytes 16/;/private @block1/s/16xf32/8xf32/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: 'exec.all_to_all' op is collective 0 over @across, of 32 bytes, but position 1 has the all-to-all into @to there, of 16
// BYTES: note: the other is here
// RUN: sed -e '/%%b = /s/exec.all_to_all @from to @to bytes 32/exec.gather @from to @to bytes 32 all_gather/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: 'exec.all_to_all' op is collective 0 over @across, of 32 bytes, but position 1 has the gather into @to there, of 32
// KIND: note: the other is here
// RUN: sed -e '/%%a = /s/bytes 32/bytes 64/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: error: 'exec.all_to_all' op touches bytes 0 to 128 of @from, which has 64
// BEYOND: note: the buffer is here

// A position takes part only after what the other sends after it.
// RUN: sed -e '/^ *%%b = /s/.*/exec.wait %%r on @comm\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=CIRCLE
// CIRCLE: error: 'exec.{{wait|all_to_all|send|recv}}' op never ends: this {{.*}} waits in a circle
// CIRCLE-DAG: note: for this {{.*}}all-to-all into @to at position 0, which waits
// CIRCLE-DAG: note: for this wait for the recv of "h:0" from position 0 at position 1, which waits

module attributes {dsopt.options = {dp = 2 : i64, pp = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @send communication
  exec.stream @recv communication
  exec.communicator @across over [pp]
  exec.communicator @pp over [pp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  func.func private @block0.E(memref<16xf32> {exec.access = #exec.access<read>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<E>}
  func.func private @block1.E(memref<16xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<E>}
  exec.program @evaluate0 evaluation position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @from : memref<16xf32> activations slots 1 stride 64
    exec.buffer @to : memref<16xf32> activations slots 1 stride 64
    exec.schedule {
      %in = exec.input "x" to @from micro_batch 0 on @compute
      exec.wait %in on @comm
      %a = exec.all_to_all @from to @to bytes 32 order 0 over @across on @comm
      exec.wait %a on @compute
      exec.wait %a on @send
      %run = exec.run @block0.E [@to] micro_batch 0 on @compute
      %s = exec.send @to bytes 64 to 1 tag "h" micro_batch 0 send_recv over @pp on @send
      %agree0 = exec.agree norms [] losses [] order 1 over @world on @comm
    }
  }
  exec.program @evaluate1 evaluation position 1 blocks [1, 2] {
    exec.memory @device device
    exec.buffer @from : memref<16xf32> activations slots 1 stride 64
    exec.buffer @to : memref<16xf32> activations slots 1 stride 64
    exec.buffer @h : memref<16xf32> activations slots 1 stride 64
    exec.buffer @loss : memref<f32> activations slots 1 stride 64
    exec.schedule {
      %r = exec.recv @h bytes 64 from 0 tag "h" micro_batch 0 send_recv over @pp on @recv
      %in = exec.input "x" to @from micro_batch 0 on @compute
      exec.wait %in on @comm
      %b = exec.all_to_all @from to @to bytes 32 order 0 over @across on @comm
      exec.wait %b on @compute
      exec.wait %r on @compute
      %run = exec.run @block1.E [@to, @h, @loss] micro_batch 0 on @compute
      exec.wait %run on @comm
      %agree1 = exec.agree norms [] losses [@loss] order 1 over @world on @comm
    }
  }
}

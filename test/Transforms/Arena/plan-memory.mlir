// RUN: dsopt-opt %s -plan-memory | FileCheck %s
// RUN: not dsopt-opt %s -plan-memory=budget=300 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: dsopt-opt %s -plan-memory=budget=400 | FileCheck %s --check-prefix=BUDGET

// BUDGET: module attributes {dsopt.options = {device_memory = 400 : i64, dp = 2 : i64, zero = 1 : i64}}
module attributes {dsopt.options = {dp = 2 : i64, zero = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @send communication
  exec.communicator @pp over [pp]
  func.func private @f(memref<16xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment}

  // @a is dead before @c is written, and @c is computed on the stream that read
  // @a: they share. @b is read by a send that nothing waits for: it shares with
  // nobody after it. Constants take no bytes.
  // CHECK: exec.program @position0 position 0 blocks [0, 1] attributes {traffic = {all_gather = 0 : i64, padding = 0 : i64, reduce_scatter = 0 : i64, send_recv = 64 : i64, tied = 0 : i64}}
  // CHECK: exec.memory @device device bytes 320 bound 256
  // CHECK-SAME: live = {activations = 128 : i64, buffers = 0 : i64, gradients = 0 : i64, optimizer = 0 : i64, padding = 92 : i64, parameters = 100 : i64, reduction = 0 : i64, tied = 0 : i64, total = 320 : i64}
  // CHECK: exec.buffer @w at 0
  // CHECK: exec.buffer @a at [[A:[0-9]+]]
  // CHECK: exec.buffer @b at
  // CHECK: exec.buffer @c at [[A]]
  // CHECK: exec.buffer @d at
  // CHECK: exec.buffer @k :
  // ERROR: error: the model needs 320 bytes of memory on each rank of stage 0, more than the 300 that -device-memory allows
  // ERROR: note: live there: parameters 100, activations 128
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @w : memref<32xf32> parameters slots 1 stride 128 persistent {payload = 100 : i64}
    exec.buffer @a : memref<16xf32> activations slots 1 stride 64
    exec.buffer @b : memref<16xf32> activations slots 1 stride 64
    exec.buffer @c : memref<16xf32> activations slots 1 stride 64
    exec.buffer @d : memref<16xf32> activations slots 1 stride 64
    exec.buffer @k : memref<16xf32> constants slots 1 stride 64 persistent symbol "const_0"
    exec.schedule {
      %0 = exec.run @f [@k, @a] micro_batch 0 on @compute
      %1 = exec.run @f [@a, @b] micro_batch 0 on @compute
      exec.wait %1 on @send
      %2 = exec.send @b bytes 64 to 1 tag "b" micro_batch 0 send_recv over @pp on @send
      %3 = exec.run @f [@k, @c] micro_batch 0 on @compute
      %4 = exec.run @f [@c, @d] micro_batch 0 on @compute
    }
  }
}

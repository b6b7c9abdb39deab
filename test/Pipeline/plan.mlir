// RUN: dsopt %s -plan=json | %python -m json.tool | FileCheck %s --check-prefix=JSON
// RUN: dsopt %s -plan | FileCheck %s --check-prefix=TABLE
// RUN: dsopt %s -plan | not grep -E '^.{81}'
// RUN: sed -e 's/, dsopt.target = #target//' %s > %t.mlir
// RUN: not dsopt %t.mlir -plan 2>&1 | FileCheck %s --check-prefix=NONE

// Two stages of two ranks: ranks are numbered by stage, then data-parallel index.
// Each stage is busy for 3 of the 6 units of a step.
// JSON: "layout": {
// JSON: "pp": 2,
// JSON: "dp": 2,
// JSON: "tp": 1,
// JSON: "zero": 1,
// JSON: "K": 2,
// JSON: "V": 2,
// JSON: "parameters": 128,
// JSON: "rank": 0,
// JSON-NEXT: "stage": 0,
// JSON-NEXT: "blocks": [
// JSON-NEXT: [
// JSON-NEXT: 0,
// JSON-NEXT: 3
// JSON: "memory": {
// JSON-NEXT: "parameters": 512,
// JSON: "total": 640
// JSON: "live_bytes": 640,
// JSON-NEXT: "memories": [
// JSON-NEXT: {
// JSON-NEXT: "name": "device",
// JSON-NEXT: "kind": "device",
// JSON-NEXT: "bytes": 640,
// JSON-NEXT: "live_bytes": 640
// JSON: "traffic": {
// JSON-NEXT: "all_gather": 256,
// JSON-NEXT: "reduce_scatter": 0,
// JSON-NEXT: "send_recv": 64,
// JSON-NEXT: "tied": 0,
// JSON-NEXT: "all_to_all": 0,
// JSON-NEXT: "tensor_parallel": 0,
// JSON-NEXT: "sequence_parallel": 0,
// JSON-NEXT: "padding": 0,
// JSON-NEXT: "all_reduce": 0
// JSON: "rank": 1,
// JSON-NEXT: "stage": 0,
// JSON: "rank": 2,
// JSON-NEXT: "stage": 1,
// JSON: "rank": 3,
// JSON: "bubble": 0.5,
// JSON: "flops_per_step": 12000,
// JSON: "predicted_step_ms":

// What is 0 everywhere is left out; no line is wider than a terminal.
// TABLE: layout 2 stages x 2 data-parallel ranks, zero 1, 1f1b
// TABLE: batch 2 micro-batches a step = 2 dp x 1, 2 reduction shards, local
// TABLE: stage 0 1
// TABLE: ranks 0..1 2..3
// TABLE: blocks 0..2 3
// TABLE: bytes of a rank at its peak
// TABLE-NEXT: parameters 512 0
// TABLE-NEXT: activations 64 0
// TABLE-NEXT: padding 64 0
// TABLE-NEXT: total 640 0
// TABLE: bytes that a rank sends in a step
// TABLE-NEXT: all_gather 256 0
// TABLE-NEXT: send_recv 64 0
// TABLE: packing at most 0.0 % above the largest sum of live bytes (640)
// TABLE: bubble 0.500
// TABLE: blocks the model's parts in order
// TABLE: in memory
// TABLE-NEXT: parameters weights that stay here
// NONE: error: {{.*}}: module has no dsopt.target, expected what attach-target says
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
module attributes {dsopt.options = {dp = 2 : i64, pp = 2 : i64, zero = 1 : i64, micro_batches = 1 : i64}, dsopt.target = #target} {
  dist.grid @grid [pp = 2, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @send communication
  exec.stream @recv communication
  exec.communicator @pp over [pp]
  graph.parameter @w : tensor<128xf32> from "m" at 0 bytes 512
  func.func private @f(memref<16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, exec.flops = 1000 : i64}
  func.func private @g(memref<16xf32> {exec.access = #exec.access<read>}) attributes {exec.segment, exec.flops = 2000 : i64}
  exec.program @position0 position 0 blocks [0, 3] attributes {traffic = {all_gather = 256 : i64, send_recv = 64 : i64}} {
    exec.memory @device device bytes 640 bound 640 {live = {parameters = 512 : i64, activations = 64 : i64, padding = 64 : i64, total = 640 : i64}}
    exec.buffer @a at 0 : memref<16xf32> activations slots 1 stride 64
    exec.schedule {
      %0 = exec.run @f [@a] micro_batch 0 on @compute
      exec.wait %0 on @send
      %1 = exec.send @a bytes 64 to 1 tag "a" micro_batch 0 send_recv over @pp on @send
      exec.wait %1 on @recv
      %2 = exec.recv @a bytes 64 from 1 tag "b" micro_batch 0 send_recv over @pp on @recv
      exec.wait %2 on @compute
      %3 = exec.run @g [@a] micro_batch 0 on @compute
    }
  }
  exec.program @position1 position 1 blocks [3, 4] {
    exec.memory @device device bytes 64 bound 64
    exec.buffer @a at 0 : memref<16xf32> activations slots 1 stride 64
    exec.schedule {
      %0 = exec.recv @a bytes 64 from 0 tag "a" micro_batch 0 send_recv over @pp on @recv
      exec.wait %0 on @compute
      %1 = exec.run @g [@a] micro_batch 0 on @compute
      %2 = exec.run @f [@a] micro_batch 0 on @compute
      exec.wait %2 on @send
      %3 = exec.send @a bytes 64 to 0 tag "b" micro_batch 0 send_recv over @pp on @send
    }
  }
}

// RUN: dsopt-opt %s -plan-memory | FileCheck %s
// RUN: dsopt-opt %s -plan-memory=budget=192 | FileCheck %s
// RUN: not dsopt-opt %s -plan-memory=budget=128 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: dsopt-opt %s -plan-memory -o %t.mlir
// RUN: dsopt %t.mlir -plan | FileCheck %s --check-prefix=TABLE
// RUN: dsopt %t.mlir -plan=json | FileCheck %s --check-prefix=JSON

// Each memory is planned by itself: what lies in the host's starts at its own beginning and at multiples of its
// alignment, shares bytes only there, and is not bounded by the device's budget.
// CHECK: exec.program @position0
// CHECK: exec.memory @device device bytes 192 bound 192 {live = {activations = 128 : i64, {{.*}}optimizer = 0 : i64, padding = 0 : i64, parameters = 64 : i64, {{.*}}total = 192 : i64}}
// CHECK: exec.memory @pinned host bytes 12288 bound 192 alignment 4096 {live = {activations = 128 : i64, {{.*}}optimizer = 64 : i64, padding = 12096 : i64, parameters = 0 : i64, {{.*}}total = 12288 : i64}}
// CHECK: exec.buffer @w at 0
// CHECK: exec.buffer @m in @pinned at 0
// CHECK: exec.buffer @a at [[A:64|128]] :
// CHECK: exec.buffer @b in @pinned at [[B:4096|8192]] :
// CHECK: exec.buffer @c at
// CHECK: exec.buffer @d in @pinned at
// CHECK: exec.buffer @e at [[A]] :
// CHECK: exec.buffer @f in @pinned at [[B]] :
// The program that evaluates has the same memories.
// CHECK: exec.program @evaluate0
// CHECK: exec.memory @device device bytes 192 bound 64
// CHECK: exec.memory @pinned host bytes 12288 bound 64 alignment 4096
// CHECK: exec.buffer @w at 0
// CHECK: exec.buffer @m in @pinned at 0

// ERROR: error: the model needs 192 bytes of memory on each rank of stage 0, more than the 128 that -device-memory allows
// ERROR: note: live there: parameters 64, activations 128

// TABLE: bytes of a rank at its peak{{$}}
// TABLE-NEXT: parameters 64
// TABLE-NEXT: activations 128
// TABLE-NEXT: total 192
// TABLE: bytes of a rank at its peak in host memory
// TABLE-NEXT: optimizer 64
// TABLE-NEXT: activations 128
// TABLE-NEXT: padding 11.8 k
// TABLE-NEXT: total 12.0 k
// TABLE: optimizer moments, and fp32 masters
// JSON: "live_bytes":192,"memories":[{"name":"device","kind":"device","bytes":192,"live_bytes":192,{{.*}}},{"name":"pinned","kind":"host","bytes":12288,"live_bytes":192,{{.*}}"optimizer":64,"activations":128

// Programs of one position differ in a memory.
// RUN: sed -e '/^  exec.program @evaluate0/,$s/alignment 4096/alignment 128/' %s | not dsopt-opt -plan-memory 2>&1 | FileCheck %s --check-prefix=DIFFER
// DIFFER: error: 'exec.memory' op is memory 1 of @evaluate0, expected the same memories in all programs of position 0
// DIFFER: note: the step's memory is here
// RUN: sed -e '/^  exec.program @evaluate0/,$s/exec.memory @pinned.*/&\nexec.memory @third disk/' %s | not dsopt-opt -plan-memory 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: 'exec.memory' op is memory 2 of @evaluate0, expected the same memories in all programs of position 0
// MORE: note: the step's program is here
// RUN: sed -e '/^  exec.program @evaluate0/,$s/exec.memory @pinned.*//;/^  exec.program @evaluate0/,$s/ in @pinned//' %s | not dsopt-opt -plan-memory 2>&1 | FileCheck %s --check-prefix=LESS
// LESS: error: 'exec.program' op has no memory 1 of @evaluate0, expected the same memories in all programs of position 0
// LESS: note: the step's memory is here

// Places are verified in each memory by itself.
// RUN: sed -e 's/@f in @pinned at [0-9]*/@f in @pinned at 0/' %t.mlir | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: 'exec.buffer' op shares bytes with @m, which is alive at the same time
// RUN: sed -e 's/@f in @pinned at [0-9]*/@f in @pinned at 64/' %t.mlir | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ALIGNED
// ALIGNED: error: 'exec.buffer' op is at offset 64, expected a multiple of 4096
// ALIGNED: note: the memory is here
// RUN: sed -e 's/@f in @pinned at [0-9]*/@f in @pinned at 12288/' %t.mlir | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: error: 'exec.buffer' op ends at byte 16384, beyond the 12288 of @pinned
// BEYOND: note: the memory is here
#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
module attributes {dsopt.options = {dp = 1 : i64, pp = 1 : i64}, dsopt.target = #target} {
  exec.stream @compute compute
  exec.stream @copy copy
  func.func private @f(memref<16xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.memory @pinned host alignment 4096
    exec.buffer @w : memref<16xf32> parameters slots 1 stride 64 persistent
    exec.buffer @m in @pinned : memref<16xf32> optimizer slots 1 stride 64 persistent
    exec.buffer @a : memref<16xf32> activations slots 1 stride 64
    exec.buffer @b in @pinned : memref<16xf32> activations slots 1 stride 64
    exec.buffer @c : memref<16xf32> activations slots 1 stride 64
    exec.buffer @d in @pinned : memref<16xf32> activations slots 1 stride 64
    exec.buffer @e : memref<16xf32> activations slots 1 stride 64
    exec.buffer @f in @pinned : memref<16xf32> activations slots 1 stride 64
    exec.schedule {
      %0 = exec.run @f [@w, @a] micro_batch 0 on @compute
      %1 = exec.run @f [@a, @c] micro_batch 0 on @compute
      %2 = exec.run @f [@c, @e] micro_batch 0 on @compute
      %3 = exec.copy @m to @b bytes 64 on @copy
      %4 = exec.copy @b to @d bytes 64 on @copy
      %5 = exec.copy @d to @f bytes 64 on @copy
      %6 = exec.copy @f to @m bytes 64 on @copy
    }
  }
  exec.program @evaluate0 evaluation position 0 blocks [0, 1] {
    exec.memory @device device
    exec.memory @pinned host alignment 4096
    exec.buffer @w : memref<16xf32> parameters slots 1 stride 64 persistent
    exec.buffer @m in @pinned : memref<16xf32> optimizer slots 1 stride 64 persistent
    exec.schedule {
    }
  }
}

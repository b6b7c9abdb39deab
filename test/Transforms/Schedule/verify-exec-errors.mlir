// RUN: dsopt-opt %s -verify-exec -o /dev/null

// Two positions, two ranks each, two micro-batches: a program that is right. Each
// of the others is this one with one mistake, refused with both places named.

// Two collectives swapped on one position.
// RUN: sed -e 's/: f32 order 1/: f32 order 2/;s/accumulate order 2/accumulate order 1/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SWAP
// SWAP: error: 'exec.reduce' op is collective 1 of the position, but comes after collective 2 (reduce into @b0.grad.0)
// SWAP: note: the other is here

// A receive dropped: the run reads the micro-batch before.
// RUN: sed -e '/%%rh1/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=RECV
// RECV: error: 'exec.run' op on micro-batch 1 reads @h slot 0, which holds micro-batch 0
// RECV: note: it was written here

// A send dropped.
// RUN: sed -e '/%%sg1/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SEND
// SEND: error: 'exec.recv' op has no match: position 1 sends 1 values to position 0, which receives 2
// SEND: note: the other position is here

// A wait removed: read before it is there, overwritten while it is read.
// RUN: sed -e '/wait %%gather on compute/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: error: 'exec.run' op reads @b0.full slot 0 without waiting for the gather into @b0.full, which writes it
// WAIT: note: the earlier action is here
// RUN: sed -e '/wait %%sh0 on compute/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=REUSE
// REUSE: error: 'exec.run' op writes @h slot 0 without waiting for the send of "h:0" to position 1, which reads it
// REUSE: note: the earlier action is here

// Two live buffers overlap.
// RUN: sed -e 's/@b0.whole.0.0 at 512/@b0.whole.0.0 at 768/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: 'exec.buffer' op shares bytes with @b0.whole.0.0, which is alive at the same time
// OVERLAP: note: the other buffer is here
// OVERLAP: note: @b0.whole.0.0 is in use from the run of @block0.W on micro-batch 0 to the reduce into @b0.grad.0
// OVERLAP: note: @x is in use from the input "x" of micro-batch 0 to the run of @block0.W on micro-batch 0

// Buffers that share bytes, one of them needed again.
// RUN: sed -e '/^ /s/%%w1 = exec.run @block0.W/%%late = exec.run @block0.F [#exec.ref<@x slot 1>, #exec.ref<@h>, #exec.ref<@b0.full>] micro_batch 1 on compute\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'exec.buffer' op shares bytes with @b0.full, which is alive at the same time

// Beyond the arena.
// RUN: sed -e 's/arena 1472/arena 1408/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ARENA
// ARENA: error: 'exec.buffer' op ends at byte 1472, beyond the arena of 1408
// ARENA: note: the arena is here

// A slot that is not there, and one that is another micro-batch's.
// RUN: sed -e 's/<@x slot 1>, #exec.ref<@g>/<@x slot 2>, #exec.ref<@g>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SLOT
// SLOT: error: 'exec.run' op uses slot 2 of @x, which has 2 slots
// SLOT: note: the buffer is here
// RUN: sed -e 's/<@x slot 1>, #exec.ref<@g>/<@x>, #exec.ref<@g>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'exec.run' op on micro-batch 1 reads @x slot 0, which holds micro-batch 0
// OTHER: note: it was written here

// More bytes than the buffer has.
// RUN: sed -e 's/memref<128xf32> {exec.access = "read"/memref<256xf32> {exec.access = "read"/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BOUNDS
// BOUNDS: error: 'exec.run' op touches bytes 0 to 1024 of @b0.full, which has 512
// BOUNDS: note: the buffer is here

// Tags, bytes.
// RUN: sed -e 's/from 0 tag "h:1"/from 0 tag "k:1"/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TAG
// TAG: error: 'exec.recv' op is transfer 1 from position 0 and has tag "k:1", but "h:1" is sent
// TAG: note: the send of "h:1" to position 1 is here
// RUN: sed -e 's/bytes 64 from 0 tag "h:1"/bytes 32 from 0 tag "h:1"/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: 'exec.recv' op is transfer 1 from position 0 and has bytes 32, but 64 is sent
// BYTES: note: the send of "h:1" to position 1 is here

// An agreement missing on one position.
// RUN: sed -e '/%%agree1/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=AGREE
// AGREE: error: 'exec.program' op agrees 0 times in a step, but position 0 1 times
// AGREE: note: the other agreement is here

// Use without gather; gradients that are not reduced.
// RUN: sed -e '/%%gather/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=GATHER
// GATHER: error: 'exec.run' op reads @b0.full slot 0 before it is written
// GATHER: note: nothing writes this slot of the buffer
// RUN: sed -e '/%%reduce1/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=REDUCE
// REDUCE: error: 'exec.agree' op comes before the gradient in @b0.whole.0.0 is added to its state
// REDUCE: note: the run of @block0.W on micro-batch 1 computes it

// New parameters are the next step's, and with clipping they wait.
// RUN: sed -e '/^ /s/exec.wait %%u0 on comm/&\n %%again = exec.gather <@b0.param> to <@b0.full> bytes 256 "all_gather" order 5 on comm/;s/order 3 on comm/order 6 on comm/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=UPDATED
// UPDATED: error: 'exec.gather' op reads @b0.param after its update in the same step
// UPDATED: note: the update of @b0 is here
// RUN: sed -e 's/pp = 2 : i64/&, clip = 1 : i64/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=CLIP
// CLIP: error: 'exec.update' op comes before the agreement, but gradients are clipped
// RUN: sed -e '/^ /s/exec.wait %%reduce1 on compute//;/%%n0/d;/%%u0/d;/^ /s/%%w1 = exec.run/exec.wait %%reduce0 on compute\n %%n0 = exec.norm <@b0.grad.0> of @b0 to <@norms> on compute\n&/;/^ /s/%%agree0/exec.wait %%n0 on comm\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'exec.reduce' op writes gradient @b0.grad.0 after the norm of @b0.grad.0
// EARLY: note: it is used here

// Position 0 sends only after it received what position 1 makes of it.
// RUN: sed -e '/^ /s/exec.wait %%f0 on send/&\n exec.wait %%rg0 on send/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// DEADLOCK: error: 'exec.wait' op never ends: this wait for the recv of "g:0" from position 1 at position 0 waits in a circle
// DEADLOCK: note: for this recv of "g:0" from position 1 at position 0, which waits
// DEADLOCK: note: for this wait for the run of @block1.F on micro-batch 0 at position 1, which waits
// DEADLOCK: note: for this wait for the recv of "h:0" from position 0 at position 1, which waits
// DEADLOCK: note: for this recv of "h:0" from position 0 at position 1, which waits

module attributes {dsopt.options = {dp = 2 : i64, pp = 2 : i64}} {
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 ranks 2 zero 3
  func.func private @block0.F(memref<16xf32> {exec.access = "read"}, memref<16xf32> {exec.access = "write"}, memref<128xf32> {exec.access = "read", exec.parameter = @w}) attributes {exec.segment}
  func.func private @block0.W(memref<16xf32> {exec.access = "read"}, memref<16xf32> {exec.access = "read"}, memref<128xf32> {exec.access = "update", exec.gradient = @w.grad.0}) attributes {exec.segment}
  func.func private @block1.F(memref<16xf32> {exec.access = "read"}, memref<f32> {exec.access = "write"}, memref<16xf32> {exec.access = "write"}) attributes {exec.segment}
  exec.program @position0 position 0 blocks [0, 1] arena 1472 bound 1472 {
    exec.buffer @b0.param at 0 : memref<64xf32> "parameters" slots 1 stride 256 persistent
    exec.buffer @b0.grad.0 at 256 : memref<64xf32> "gradients" slots 1 stride 256
    exec.buffer @b0.full at 512 : memref<128xf32> "buffers" slots 1 stride 512
    exec.buffer @b0.whole.0.0 at 512 : memref<128xf32> "buffers" slots 1 stride 512
    exec.buffer @x at 1024 : memref<16xf32> "activations" slots 2 stride 64
    exec.buffer @h at 1152 : memref<16xf32> "activations" slots 1 stride 64
    exec.buffer @g at 1216 : memref<16xf32> "activations" slots 1 stride 64
    exec.buffer @norms at 1280 : memref<21xi64> "buffers" slots 1 stride 192
    exec.schedule {
      %gather = exec.gather <@b0.param> to <@b0.full> bytes 256 "all_gather" order 0 on comm
      %rg0 = exec.recv <@g> bytes 64 from 1 tag "g:0" "send_recv" on recv
      %x0 = exec.input "x" to <@x> micro_batch 0 on compute
      exec.wait %gather on compute
      %f0 = exec.run @block0.F [#exec.ref<@x>, #exec.ref<@h>, #exec.ref<@b0.full>] micro_batch 0 on compute
      exec.wait %f0 on send
      %sh0 = exec.send <@h> bytes 64 to 1 tag "h:0" "send_recv" on send
      %x1 = exec.input "x" to <@x slot 1> micro_batch 1 on compute
      exec.wait %sh0 on compute
      %f1 = exec.run @block0.F [#exec.ref<@x slot 1>, #exec.ref<@h>, #exec.ref<@b0.full>] micro_batch 1 on compute
      exec.wait %f1 on send
      %sh1 = exec.send <@h> bytes 64 to 1 tag "h:1" "send_recv" on send
      exec.wait %rg0 on compute
      %w0 = exec.run @block0.W [#exec.ref<@x>, #exec.ref<@g>, #exec.ref<@b0.whole.0.0>] micro_batch 0 on compute
      exec.wait %w0 on comm
      %reduce0 = exec.reduce <@b0.whole.0.0> to <@b0.grad.0> elements 64 : f32 order 1 on comm
      exec.wait %w0 on recv
      %rg1 = exec.recv <@g> bytes 64 from 1 tag "g:1" "send_recv" on recv
      exec.wait %reduce0 on compute
      exec.wait %rg1 on compute
      exec.wait %sh1 on compute
      %w1 = exec.run @block0.W [#exec.ref<@x slot 1>, #exec.ref<@g>, #exec.ref<@b0.whole.0.0>] micro_batch 1 on compute
      exec.wait %w1 on comm
      %reduce1 = exec.reduce <@b0.whole.0.0> to <@b0.grad.0> elements 64 : f32 accumulate order 2 on comm
      exec.wait %reduce1 on compute
      %n0 = exec.norm <@b0.grad.0> of @b0 to <@norms> on compute
      %u0 = exec.update @kernel of @b0 [#exec.ref<@b0.param>, #exec.ref<@b0.grad.0>] elements 64 sliced on compute
      exec.wait %u0 on comm
      %agree0 = exec.agree norms [#exec.ref<@norms>] losses [] order 3 on comm
    }
  }
  exec.program @position1 position 1 blocks [1, 2] arena 256 bound 256 {
    exec.buffer @h at 0 : memref<16xf32> "activations" slots 1 stride 64
    exec.buffer @g at 64 : memref<16xf32> "activations" slots 1 stride 64
    exec.buffer @loss at 128 : memref<f32> "activations" slots 2 stride 64
    exec.schedule {
      %rh0 = exec.recv <@h> bytes 64 from 0 tag "h:0" "send_recv" on recv
      exec.wait %rh0 on compute
      %k0 = exec.run @block1.F [#exec.ref<@h>, #exec.ref<@loss>, #exec.ref<@g>] micro_batch 0 on compute
      exec.wait %k0 on send
      %sg0 = exec.send <@g> bytes 64 to 0 tag "g:0" "send_recv" on send
      exec.wait %k0 on recv
      %rh1 = exec.recv <@h> bytes 64 from 0 tag "h:1" "send_recv" on recv
      exec.wait %rh1 on compute
      exec.wait %sg0 on compute
      %k1 = exec.run @block1.F [#exec.ref<@h>, #exec.ref<@loss slot 1>, #exec.ref<@g>] micro_batch 1 on compute
      exec.wait %k1 on send
      %sg1 = exec.send <@g> bytes 64 to 0 tag "g:1" "send_recv" on send
      exec.wait %k1 on comm
      %agree1 = exec.agree norms [] losses [#exec.ref<@loss>, #exec.ref<@loss slot 1>] order 0 on comm
    }
  }
}

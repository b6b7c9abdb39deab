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

// A send dropped, and one too many.
// RUN: sed -e '/%%sg1/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SEND
// SEND: error: 'exec.run' op writes @g slot 0, which nothing reads
// SEND: note: the buffer is here
// RUN: sed -e '/^ /s/%%sh1 = .*/&\n %%sh2 = exec.send @h bytes 64 to 1 tag "h" micro_batch 1 send_recv over @pp on @send/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MATCH
// MATCH: error: 'exec.send' op has no match: position 0 sends 3 values to position 1, which receives 2
// MATCH: note: the other position is here

// A wait removed: read before it is there, overwritten while it is read.
// RUN: sed -e '/wait %%gather on @compute/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: error: 'exec.run' op reads @b0.full slot 0 without waiting for the gather into @b0.full, which writes it
// WAIT: note: the earlier action is here
// RUN: sed -e '/wait %%sh0 on @compute/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=REUSE
// REUSE: error: 'exec.run' op writes @h slot 0 without waiting for the send of "h:0" to position 1, which reads it
// REUSE: note: the earlier action is here

// Two live buffers overlap.
// RUN: sed -e 's/@b0.whole.0.0 at 512/@b0.whole.0.0 at 768/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: 'exec.buffer' op shares bytes with @b0.whole.0.0, which is alive at the same time
// OVERLAP: note: the other buffer is here
// OVERLAP: note: @b0.whole.0.0 is in use from the run of @block0.W on micro-batch 0 to the reduce into @b0.grad.0
// OVERLAP: note: @x is in use from the input "x" of micro-batch 0 to the run of @block0.W on micro-batch 0

// Buffers that share bytes, one of them needed again.
// RUN: sed -e '/^ /s/%%w1 = exec.run @block0.W/%%late = exec.send @b0.full bytes 64 to 1 tag "late" send_recv over @pp on @send\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'exec.buffer' op shares bytes with @b0.full, which is alive at the same time

// Beyond the memory.
// RUN: sed -e 's/bytes 1472/bytes 1408/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ARENA
// ARENA: error: 'exec.buffer' op ends at byte 1472, beyond the 1408 of @device
// ARENA: note: the memory is here

// A slot that is not there, and one that is another micro-batch's.
// RUN: sed -e 's/@x\[1\], @g/@x[2], @g/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SLOT
// SLOT: error: 'exec.run' op uses slot 2 of @x, which has 2 slots
// SLOT: note: the buffer is here
// RUN: sed -e 's/@x\[1\], @g/@x, @g/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'exec.run' op on micro-batch 1 reads @x slot 0, which holds micro-batch 0
// OTHER: note: it was written here

// More bytes than the buffer has.
// RUN: sed -e 's/memref<128xf32> {exec.access = #exec.access<read>/memref<256xf32> {exec.access = #exec.access<read>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BOUNDS
// BOUNDS: error: 'exec.run' op touches bytes 0 to 1024 of @b0.full, which has 512
// BOUNDS: note: the buffer is here

// Tags, bytes.
// RUN: sed -e 's/from 0 tag "h" micro_batch 1/from 0 tag "k" micro_batch 1/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TAG
// TAG: error: 'exec.recv' op is transfer 1 from position 0 and has tag "k:1", but "h:1" is sent
// TAG: note: the send of "h:1" to position 1 is here
// RUN: sed -e 's/from 0 tag "h" micro_batch 1/from 0 tag "h"/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OTHER-BATCH
// OTHER-BATCH: error: 'exec.recv' op is transfer 1 from position 0 and has tag "h", but "h:1" is sent

// RUN: sed -e 's/bytes 64 to 1 tag "h" micro_batch 1/bytes 32 to 1 tag "h" micro_batch 1/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: 'exec.recv' op is transfer 1 from position 0 and has bytes 64, but 32 is sent
// BYTES: note: the send of "h:1" to position 1 is here

// An agreement missing on one position.
// RUN: sed -e '/%%agree1/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=AGREE
// AGREE: error: 'exec.program' op has 0 collectives over @world at position 1, but position 0 has 1
// AGREE: note: the other one's agree is here

// Use without gather; gradients that are not reduced.
// RUN: sed -e '/%%gather/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=GATHER
// GATHER: error: 'exec.run' op reads @b0.full slot 0 before it is written
// GATHER: note: nothing writes this slot of the buffer
// RUN: sed -e '/%%reduce1/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=REDUCE
// REDUCE: error: 'exec.agree' op comes before the gradient in @b0.whole.0.0 is added to its state
// REDUCE: note: the run of @block0.W on micro-batch 1 computes it

// New parameters are the next step's, and with clipping or a scaled loss they wait.
// RUN: sed -e '/^ /s/exec.wait %%u0 on @comm/&\n %%again = exec.gather @b0.param to @b0.full bytes 256 all_gather order 5 over @dp on @comm/;s/order 3 over @world/order 6 over @world/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=UPDATED
// UPDATED: error: 'exec.gather' op reads @b0.param after its update in the same step
// RUN: sed -e '/^ /s/exec.wait %%u0 on @comm/&\n %%narrow = exec.map @narrow [@b0.param, @b0.full] elements 64 on @compute/' -e '/^ *exec.communicator @dp/s/^/func.func private @narrow(%%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} { return %%x : tensor<64xf32> }\n/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MAPPED
// MAPPED: error: 'exec.map' op reads @b0.param after its update in the same step
// UPDATED: note: the update of @b0 is here
// RUN: sed -e 's/pp = 2 : i64/&, clip = 1 : i64/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=CLIP
// CLIP: error: 'exec.update' op comes before the agreement, but gradients are clipped
// RUN: sed -e 's/pp = 2 : i64/&, precision = "fp16"/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SCALED
// SCALED: error: 'exec.update' op comes before the agreement, but gradients are of a scaled loss
// RUN: sed -e '/^ /s/exec.wait %%reduce1 on @compute//;/%%n0/d;/%%u0/d;/^ /s/%%w1 = exec.run/exec.wait %%reduce0 on @compute\n %%n0 = exec.norm @b0.grad.0 of @b0 to @norms on @compute\n&/;/^ /s/%%agree0/exec.wait %%n0 on @comm\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'exec.reduce' op writes gradient @b0.grad.0 after the norm of @b0.grad.0
// EARLY: note: it is used here

// Bytes that are written in part, by another micro-batch, or by each rank for itself.
// RUN: sed -e 's/bytes 64 \(to 1\|from 0\) tag "h/bytes 32 \1 tag "h/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=PART
// PART: error: 'exec.run' op reads @h slot 0 at bytes 0 to 64, of which only a part is written
// PART: note: the buffer is here
// RUN: sed -e 's/bytes 64 \(to 1\|from 0\) tag "h" micro_batch 1/bytes 32 \1 tag "h" micro_batch 1/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=STALE
// STALE: error: 'exec.run' op on micro-batch 1 reads @h slot 0, which holds micro-batch 0
// RUN: sed -e 's/recv @h bytes 64/recv @h+32*edp bytes 32/;s/send @h bytes 64/send @h bytes 32/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OWN
// OWN: error: 'exec.run' op reads @h slot 0 on every rank, but each rank holds only its own slice of it
// RUN: sed -e 's/memref<64xf32> parameters slots 1 stride 256/memref<128xf32> parameters slots 1 stride 512/;s/ bytes 1472 bound 1472//;s/\[@b0.param/[@b0.param+256*edp/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=NEXT
// NEXT: error: 'exec.update' op writes @b0.param slot 0, each rank its own slice, but nothing gathers them for the next step

// A gradient that is lost, added twice, or that nothing computes.
// RUN: sed -e '/%%reduce0/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=LOST
// LOST: error: 'exec.run' op writes @b0.whole.0.0 slot 0, but nothing has read what the run of @block0.W on micro-batch 0 wrote there
// LOST: note: it was written here
// RUN: sed -e '/%%w1 = /s/micro_batch 1/micro_batch 1 accumulate/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: 'exec.run' op reads @b0.whole.0.0 slot 0 before it is written
// TWICE: note: what it held is part of another sum since the reduce into @b0.grad.0
// RUN: sed -e 's/dist.range<@w, 0, 128>/dist.range<@w, 0, 64>, #dist.range<@v, 64, 64>/;s/memref<128xf32> {exec.access = #exec.access<update>/memref<64xf32> {exec.access = #exec.access<update>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MISSES
// MISSES: error: 'exec.norm' op of @b0 misses the gradient of @v: no run writes all of it to @b0.whole.0.0
// MISSES: note: the bucket is here

// Each trained bucket has one norm and one update, where its first block is.
// RUN: sed -e '/%%n0/d;s/norms \[@norms\]/norms []/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=NORM
// NORM: error: 'exec.program' op has 0 norms of trained bucket @b0, expected one
// NORM: note: the bucket is here
// RUN: sed -e '/%%u0 = /d;s/wait %%u0/wait %%n0/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=UPDATE
// UPDATE: error: 'exec.program' op has 0 updates of trained bucket @b0, expected one
// RUN: sed -e '/^ /s/exec.wait %%u0 on @comm/%%u1 = exec.update @kernel of @b0 [@b0.param, @b0.grad.0] elements 64 sliced on @compute\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: 'exec.program' op has 2 updates of trained bucket @b0, expected one
// RUN: sed -e 's/ zero 3/& frozen/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=FROZEN
// FROZEN: error: 'exec.norm' op is of @b0, which is frozen
// RUN: sed -e 's/f32 of \[0\]/f32 of [1]/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OWNER
// OWNER: error: 'exec.norm' op is at position 0, but @b0 is owned by position 1, which has its first block
// OWNER: note: the bucket is here
// RUN: sed -e 's/f32 of \[0\]/f32 of [7]/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: 'dist.bucket' op is trained, but no position has its first block
// RUN: sed -e 's/elements 64 sliced/elements 32 sliced/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ELEMENTS
// ELEMENTS: error: 'exec.update' op updates 32 elements, expected 64, a slice of @b0
// RUN: sed -e 's/ zero 3/& states [#dist.state<"m" : f32>]/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=STATES
// STATES: error: 'exec.update' op has 2 buffers, expected 3: the parameter, its gradient and what @b0 names as states
// RUN: sed -e '/%%u0 = /s/@kernel/@block0.F/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=KERNEL
// KERNEL: error: 'exec.update' op runs @block0.F, which is no flat kernel of this module
// RUN: sed -e '/%%u0 = /s/@b0.grad.0/@b0.param/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=GRADIENT
// GRADIENT: error: 'exec.update' op uses gradient @b0.param, but the norm is that of @b0.grad.0
// GRADIENT: note: the norm is here
// RUN: sed -e 's/\(exec.program @[^ ]*\) position/\1 evaluation position/;s/graph.phase<.>/graph.phase<E>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=EVALUATES
// EVALUATES: error: 'exec.norm' op is of @b0, which a program that evaluates leaves as it is

// Positions agree once, on a loss for each micro-batch.
// RUN: sed -e '/%%agree/d;/%%n0/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ONCE
// ONCE: error: 'exec.program' op agrees 0 times in a step, expected once
// RUN: sed -e 's/losses \[.*\] order 0/losses [] order 0/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=LOSSES
// LOSSES: error: 'exec.program' op and no other position agrees on losses, expected one for each micro-batch of the position that computes them
// RUN: sed -e 's/@loss\[1\]\] order/@loss[1], @loss] order/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SAME
// SAME: error: 'exec.agree' op takes the loss in @loss twice
// RUN: sed -e 's/norms \[@norms\]/norms [@norms, @norms]/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=RECORD
// RECORD: error: 'exec.agree' op takes the record in @norms twice
// RUN: sed -e 's/losses \[\]/losses [@norms]/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=POSITIONS
// POSITIONS: error: 'exec.agree' op takes losses, but those of a step are of one position
// POSITIONS: note: the other agreement is here

// Metrics that nobody has, or that no position measures.
// RUN: sed -e 's/@loss\[1\]\] order/@loss[1]] measures [@loss, @loss[1]] places [0] lengths [1] order/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MEASURED
// MEASURED: error: 'exec.agree' op measures element 0 of the metrics, expected each of 0 once in a step (exec.metrics)
// RUN: sed -e 's/^module attributes {/module attributes {exec.metrics = [{name = "a", combine = "mean", parts = array<i64: 1>}], /' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=UNMEASURED
// UNMEASURED: error: 'exec.program' op and no other position measures element 0 of the metrics (exec.metrics)

// Each phase of each block runs once on each micro-batch, in the order that gradients need.
// RUN: sed -e '/^ /s/%%w0 = \(.*\) on @compute/%%first = \1 on @compute\n %%w0 = \1 accumulate on @compute/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=REPEATS
// REPEATS: error: 'exec.run' op repeats the run of @block0.W on micro-batch 0
// REPEATS: note: the other is here
// RUN: sed -e '/func private @block0.W/{p;s/@block0.W/@block0.V/;s/phase<W>/phase<B>/};/%%w1 = /s/block0.W/block0.V/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: error: 'exec.program' op never runs block 0 W on micro-batch 1
// NEVER: note: its run on micro-batch 0 is here
// RUN: sed -e 's/phase<F>/phase<B>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: error: 'exec.program' op never runs block 0 F
// RUN: sed -e 's/phase<F>/phase<X>/;s/phase<W>/phase<F>/;s/phase<X>/phase<W>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: 'exec.run' op comes before the run of @block0.W on micro-batch 0, expected F, B and W in this order
// ORDER: note: the other is here
// RUN: sed -e 's/tag "g" micro_batch [01]/tag "g"/;/^ /s/@block0.W \[@x\(.*\)micro_batch 0/@block0.V [@x[1]\1micro_batch 1/;/^ /s/@block0.W \[@x\[1\]\(.*\)micro_batch 1/@block0.W [@x\1micro_batch 0/;s/@block0.V/@block0.W/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ASCENDING
// ASCENDING: error: 'exec.run' op adds gradients of micro-batch 0 after those of micro-batch 1, expected them ascending
// ASCENDING: note: the earlier run is here
// RUN: sed -e 's/graph.block = 1/graph.block = 0/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BLOCK
// BLOCK: error: 'exec.run' op runs block 0 at position 1, which has blocks 1 to 1
// RUN: sed -e '/%%k1 = /s/@block1.F/@block1.F for <5 F>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: 'exec.run' op runs block 5 at position 1, which has blocks 1 to 1
// RUN: sed -e 's/, graph.block = 0 : i64//' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: error: 'exec.run' op runs @block0.F, which is of no block and phase (graph.block, graph.phase)
// RUN: sed -e 's/phase<F>/phase<E>/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=PHASE
// PHASE: error: 'exec.run' op runs phase E of block 0 in a program that trains
// RUN: sed -e 's/losses \[.*\] order 0/losses [] order 0/;s/losses \[\] order 3/losses [@norms] order 3/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: error: 'exec.run' op is on micro-batch 1, but the step agrees on the losses of 1

// Names and addresses that lead nowhere.
// RUN: sed -e '/%%f1 = /s/@b0.full/@nothing/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BUFFER
// BUFFER: error: 'exec.run' op names @nothing, which is no buffer of its program
// RUN: sed -e 's/to @x\[1\]/to @nothing/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=INPUT
// INPUT: error: 'exec.input' op names @nothing, which is no buffer of its program
// RUN: sed -e '/%%f1 = /s/@block0.F/@block7.F/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SEGMENT
// SEGMENT: error: 'exec.run' op runs @block7.F, which is no segment of this module
// RUN: sed -e '/%%f1 = /s/, @b0.full//' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ARGUMENTS
// ARGUMENTS: error: 'exec.run' op passes 2 buffers, expected 3
// RUN: sed -e 's/graph.block = 1 : i64/&, exec.temp_bytes = 8 : i64/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TEMP
// TEMP: error: 'exec.run' op has no temp, expected 8 bytes of scratch
// RUN: sed -e 's/of @b0 to/of @b7 to/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=NBUCKET
// NBUCKET: error: 'exec.norm' op names @b7, which is no bucket of this module
// RUN: sed -e 's/@kernel of @b0/@kernel of @b7/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=UBUCKET
// UBUCKET: error: 'exec.update' op names @b7, which is no bucket of this module
// RUN: sed -e '/^ /s/%%agree0/%%fold = exec.fold @nothing bytes 8 into [] places [] elements [] momenta [] on @compute\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=FOLD
// FOLD: error: 'exec.fold' op names @nothing, which is no buffer of its program
// RUN: sed -e '/^ /s/%%agree0/%%fold = exec.fold @norms bytes 8 into [@b0.param] places [] elements [] momenta [] on @compute\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TARGETS
// TARGETS: error: 'exec.fold' op has 1 targets, expected as many places, elements and momenta
// RUN: sed -e 's/@norms at 1280/@norms/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=OFFSET
// OFFSET: error: 'exec.buffer' op has no offset, but @device is planned
// RUN: sed -e "s/pp = 2/pp = 3/" -e '/^ /s/exec.program @position1/exec.program @position2 position 2 blocks [2, 3] {\n exec.memory @device device\n exec.buffer @x : memref<4xf32> activations slots 1 stride 64\n}\n&/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: error: 'exec.program' op has no schedule
// RUN: sed -e '/%%x1 = /s/on @compute/on @comm/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=STREAM
// STREAM: error: 'exec.input' op is on @comm, expected a stream of kind compute
// STREAM: note: the stream is here, of kind communication
// RUN: sed -e 's/^  exec.stream @comm .*/&\n exec.stream @comm2 communication/;/%%reduce1 = /s/on @comm/on @comm2/;/%%w1 on @comm/s/@comm/@comm2/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: 'exec.reduce' op is on @comm2, expected all collectives over @dp on one stream
// TWO: note: the gather into @b0.full is on @comm
// RUN: sed -e 's/^  exec.stream @comm .*/&\n exec.stream @comm2 communication\n exec.communicator @dp2 over [edp]/;/%%reduce1 = /s/@dp on @comm/@dp2 on @comm2/;/%%w1 on @comm/s/@comm/@comm2/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=STAGED
// STAGED: error: 'exec.reduce' op is on @comm2, expected all reductions on one stream
// STAGED: note: the reduce into @b0.grad.0 is on @comm

// The gather may be on a stream of its own, over a communicator of its own; nothing else changes.
// RUN: sed -e 's/^  exec.stream @comm .*/&\n exec.stream @comm2 communication\n exec.communicator @dp2 over [edp]/;/%%gather = /s/@dp on @comm/@dp2 on @comm2/' %s | dsopt-opt -verify-exec -o /dev/null
// It reads what another stream has made: without a wait it is refused.
// RUN: sed -e 's/^  exec.stream @comm .*/&\n exec.stream @comm2 communication\n exec.communicator @dp2 over [edp]/;/%%gather = /s/@dp on @comm/@dp2 on @comm2/;/wait %%gather on @compute/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: sed -e 's/@position1 position 1/@position1 position 2/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=POSITION
// POSITION: error: 'exec.program' op is position 2, expected position 1
// RUN: sed -e 's/ to 1 tag/ to 2 tag/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=PEER
// PEER: error: 'exec.send' op names member 2 of @pp, which has 2
// RUN: sed -e 's/ to 1 tag/ to 0 tag/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ITSELF
// ITSELF: error: 'exec.send' op names member 0 of @pp, expected one that is at the same other position for all ranks of this one

// Who talks to whom: no such communicator, not all ranks, several at the peer's place, another one at the other end.
// RUN: sed -e '/%%reduce0 = /s/over @dp/over @tp/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: 'exec.reduce' op is over @tp, which is no communicator of this module
// RUN: sed -e 's/communicator @world .*/communicator @world over [edp]/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: 'exec.agree' op is over 2 ranks, expected all 4
// RUN: sed -e 's/\(from 0 tag "h" micro_batch 1.*\)@pp/\1@world/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=MEMBERS
// MEMBERS: error: 'exec.recv' op names member 0 of @world, expected one that is at the same other position for all ranks of this one
// RUN: sed -e '/^  exec.communicator @world/s/.*/&\n exec.communicator @other over [pp, tp]/;s/\(from 0 tag "h" micro_batch 1.*\)@pp/\1@other/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=COMMUNICATOR
// COMMUNICATOR: error: 'exec.recv' op is transfer 1 from position 0 and has communicator @other, but @pp is sent
// RUN: sed -e '/%%rh1 = /s/send_recv/tied/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=TRAFFIC
// TRAFFIC: error: 'exec.recv' op is transfer 1 from position 0 and has traffic tied, but send_recv is sent
// RUN: sed -e '/%%reduce. = /d;/wait %%reduce/d' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=UNREDUCED
// UNREDUCED: error: 'exec.norm' op uses gradient @b0.grad.0, which is not reduced over the ranks before

// Position 0 sends only after it received what position 1 makes of it.
// RUN: sed -e '/^ /s/exec.wait %%f0 on @send/&\n exec.wait %%rg0 on @send/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// DEADLOCK: error: 'exec.wait' op never ends: this wait for the recv of "g:0" from position 1 at position 0 waits in a circle
// DEADLOCK: note: for this recv of "g:0" from position 1 at position 0, which waits
// DEADLOCK: note: for this wait for the run of @block1.F on micro-batch 0 at position 1, which waits
// DEADLOCK: note: for this wait for the recv of "h:0" from position 0 at position 1, which waits
// DEADLOCK: note: for this recv of "h:0" from position 0 at position 1, which waits

// A buffer of no bucket, and one that is neither the bucket nor a slice of it.
// RUN: sed -e 's/gathered of @b0/gathered of @b9/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=BUCKET
// BUCKET: error: 'exec.buffer' op is of @b9, which is no bucket of this module
// RUN: sed -e 's/memref<64xf32> parameters/memref<32xf32> parameters/' %s | not dsopt-opt -verify-exec 2>&1 | FileCheck %s --check-prefix=SLICE
// SLICE: error: 'exec.buffer' op has 32 elements, expected the 128 of @b0 or a slice's 64

module attributes {dsopt.options = {dp = 2 : i64, pp = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @send communication
  exec.stream @recv communication
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @pp over [pp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  func.func private @kernel(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>, graph.in_place = array<i64: 0>}
  func.func private @block0.F(memref<16xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<read>, exec.parameter = @w}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.W(memref<16xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @block1.F(memref<16xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<16xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device bytes 1472 bound 1472
    exec.buffer @b0.param at 0 : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b0.grad.0 at 256 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @b0.full at 512 : memref<128xf32> buffers slots 1 stride 512 gathered of @b0
    exec.buffer @b0.whole.0.0 at 512 : memref<128xf32> buffers slots 1 stride 512 of @b0
    exec.buffer @x at 1024 : memref<16xf32> activations slots 2 stride 64
    exec.buffer @h at 1152 : memref<16xf32> activations slots 1 stride 64
    exec.buffer @g at 1216 : memref<16xf32> activations slots 1 stride 64
    exec.buffer @norms at 1280 : memref<21xi64> buffers slots 1 stride 192
    exec.schedule {
      %gather = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
      %rg0 = exec.recv @g bytes 64 from 1 tag "g" micro_batch 0 send_recv over @pp on @recv
      %x0 = exec.input "x" to @x micro_batch 0 on @compute
      exec.wait %gather on @compute
      %f0 = exec.run @block0.F [@x, @h, @b0.full] micro_batch 0 on @compute
      exec.wait %f0 on @send
      %sh0 = exec.send @h bytes 64 to 1 tag "h" micro_batch 0 send_recv over @pp on @send
      %x1 = exec.input "x" to @x[1] micro_batch 1 on @compute
      exec.wait %sh0 on @compute
      %f1 = exec.run @block0.F [@x[1], @h, @b0.full] micro_batch 1 on @compute
      exec.wait %f1 on @send
      %sh1 = exec.send @h bytes 64 to 1 tag "h" micro_batch 1 send_recv over @pp on @send
      exec.wait %rg0 on @compute
      %w0 = exec.run @block0.W [@x, @g, @b0.whole.0.0] micro_batch 0 on @compute
      exec.wait %w0 on @comm
      %reduce0 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 1 over @dp on @comm
      exec.wait %w0 on @recv
      %rg1 = exec.recv @g bytes 64 from 1 tag "g" micro_batch 1 send_recv over @pp on @recv
      exec.wait %reduce0 on @compute
      exec.wait %rg1 on @compute
      exec.wait %sh1 on @compute
      %w1 = exec.run @block0.W [@x[1], @g, @b0.whole.0.0] micro_batch 1 on @compute
      exec.wait %w1 on @comm
      %reduce1 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 accumulate order 2 over @dp on @comm
      exec.wait %reduce1 on @compute
      %n0 = exec.norm @b0.grad.0 of @b0 to @norms on @compute
      %u0 = exec.update @kernel of @b0 [@b0.param, @b0.grad.0] elements 64 sliced on @compute
      exec.wait %u0 on @comm
      %agree0 = exec.agree norms [@norms] losses [] order 3 over @world on @comm
    }
  }
  exec.program @position1 position 1 blocks [1, 2] {
    exec.memory @device device bytes 256 bound 256
    exec.buffer @h at 0 : memref<16xf32> activations slots 1 stride 64
    exec.buffer @g at 64 : memref<16xf32> activations slots 1 stride 64
    exec.buffer @loss at 128 : memref<f32> activations slots 2 stride 64
    exec.schedule {
      %rh0 = exec.recv @h bytes 64 from 0 tag "h" micro_batch 0 send_recv over @pp on @recv
      exec.wait %rh0 on @compute
      %k0 = exec.run @block1.F [@h, @loss, @g] micro_batch 0 on @compute
      exec.wait %k0 on @send
      %sg0 = exec.send @g bytes 64 to 0 tag "g" micro_batch 0 send_recv over @pp on @send
      exec.wait %k0 on @recv
      %rh1 = exec.recv @h bytes 64 from 0 tag "h" micro_batch 1 send_recv over @pp on @recv
      exec.wait %rh1 on @compute
      exec.wait %sg0 on @compute
      %k1 = exec.run @block1.F [@h, @loss[1], @g] micro_batch 1 on @compute
      exec.wait %k1 on @send
      %sg1 = exec.send @g bytes 64 to 0 tag "g" micro_batch 1 send_recv over @pp on @send
      exec.wait %k1 on @comm
      %agree1 = exec.agree norms [] losses [@loss, @loss[1]] order 0 over @world on @comm
    }
  }
}

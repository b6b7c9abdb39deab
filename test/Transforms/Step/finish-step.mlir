// RUN: sed -e 's/ZERO/3/g;/^!WHOLE/d;s/^!SLICED//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefixes=CHECK,STAGE3
// RUN: sed -e 's/ZERO/2/g;/^!SLICED/d;s/^!WHOLE//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefixes=CHECK,STAGE2
// RUN: sed -e 's/ZERO/1/g;/^!SLICED/d;s/^!WHOLE//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefixes=CHECK,STAGE1
// RUN: sed -e 's/ZERO/0/g;/^!SLICED/d;s/^!WHOLE//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefixes=CHECK,STAGE0
// RUN: sed -e 's/ZERO/3/g;/^!WHOLE/d;s/^!SLICED//' %s | dsopt-opt -order-pipeline -share-gathers=gather-window=2 -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=WINDOW
// RUN: sed -e 's/ZERO/1/g;/^!SLICED/d;s/^!WHOLE//;s/pp = 1 : i64/&, clip = 1 : i64/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=CLIP
// RUN: sed -e 's/ZERO/1/g;/^!SLICED/d;s/^!WHOLE//;s/pp = 1 : i64/&, precision = "fp16"/' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits | FileCheck %s --check-prefix=CLIP
// RUN: sed -e 's/ZERO/3/g;/^!WHOLE/d;s/^!SLICED//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory -verify-exec -o /dev/null
// RUN: sed -e 's/ZERO/1/g;/^!SLICED/d;s/^!WHOLE//' %s | dsopt-opt -order-pipeline -share-gathers -place-reductions -finish-step -prefetch-gathers -throttle-reductions -insert-waits -dedupe-segments -plan-memory -verify-exec -o /dev/null
// RUN: sed -e 's/ZERO/1/g;/^!SLICED/d;s/^!WHOLE//;s/#dist.state<"m"/#dist.state<"param"/' %s | dsopt-opt -order-pipeline -place-reductions -finish-step | FileCheck %s --check-prefix=CALLED

// Two blocks on one stage, two ranks, two micro-batches a rank. What ZeRO slices is gathered: lines
// with !SLICED are for that, those with !WHOLE for the other stages.
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64, zero = ZERO : i64, micro_batches = 2 : i64, schedule = "gpipe"}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w0 : tensor<10x10xf32> from "m" at 0 bytes 400
  graph.parameter @w1 : tensor<10x10xf32> from "m" at 400 bytes 400
  graph.state @w0.grad.0 : tensor<10x10xf32> gradient of @w0 block 0
  graph.state @w1.grad.0 : tensor<10x10xf32> gradient of @w1 block 1
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"m" : f32>]
  dist.bucket @b1 : f32 of [1] [#dist.range<@w1, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero ZERO states [#dist.state<"m" : f32>]
!WHOLE  func.func private @block0.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
!SLICED  func.func private @block0.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
!WHOLE  func.func private @block1.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
!SLICED  func.func private @block1.F(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
!WHOLE  func.func private @block1.B(memref<f32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}, memref<10x10xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
!SLICED  func.func private @block1.B(memref<f32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w1.grad.0}) attributes {exec.segment, graph.block = 1 : i64, graph.phase = #graph.phase<W>}
  func.func private @block0.W(memref<4x10xf32> {exec.access = #exec.access<read>}, memref<4x10xf32> {exec.access = #exec.access<read>}, memref<10x10xf32> {exec.access = #exec.access<update>, exec.gradient = @w0.grad.0}) attributes {exec.segment, graph.block = 0 : i64, graph.phase = #graph.phase<W>}
  func.func private @update.momentum(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %s: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {graph.iterate = #graph.iteration<flat>} {
    return %p, %m : tensor<64xf32>, tensor<64xf32>
  }
  func.func @micro_batch(%x: tensor<4x10xf32> {graph.name = "x"}, %y: tensor<4x10xf32> {graph.name = "y", graph.label, graph.ignore_index = -1 : i64}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
!WHOLE    %h = graph.run @block0.F(%x) : (tensor<4x10xf32>) -> tensor<4x10xf32>
!SLICED    %block0F = dist.gather @b0 [@w0] over [edp, ep, sp] : tensor<10x10xf32>
!SLICED    %h = graph.run @block0.F(%x, %block0F) : (tensor<4x10xf32>, tensor<10x10xf32>) -> tensor<4x10xf32>
!SLICED    dist.release %block0F : tensor<10x10xf32>
!WHOLE    %loss = graph.run @block1.F(%h) : (tensor<4x10xf32>) -> tensor<f32>
!SLICED    %block1F = dist.gather @b1 [@w1] over [edp, ep, sp] : tensor<10x10xf32>
!SLICED    %loss = graph.run @block1.F(%h, %block1F) : (tensor<4x10xf32>, tensor<10x10xf32>) -> tensor<f32>
!SLICED    dist.release %block1F : tensor<10x10xf32>
!WHOLE    %dh = graph.run @block1.B(%seed) : (tensor<f32>) -> tensor<4x10xf32>
!SLICED    %block1B = dist.gather @b1 [@w1] over [edp, ep, sp] : tensor<10x10xf32>
!SLICED    %dh = graph.run @block1.B(%seed, %block1B) : (tensor<f32>, tensor<10x10xf32>) -> tensor<4x10xf32>
!SLICED    dist.release %block1B : tensor<10x10xf32>
    graph.run @block1.W(%h, %seed) : (tensor<4x10xf32>, tensor<f32>) -> ()
    dist.reduce @b1 use 0 of [@w1.grad.0] over [edp, ep, sp] as f32
    graph.run @block0.W(%x, %dh) : (tensor<4x10xf32>, tensor<4x10xf32>) -> ()
    dist.reduce @b0 use 0 of [@w0.grad.0] over [edp, ep, sp] as f32
    return %loss : tensor<f32>
  }
  func.func @update(%s: tensor<16xf32>) {
    %p = graph.read @w0 : tensor<10x10xf32>
    %0:2 = graph.momentum %p, %p, %p, %s {functions = #graph.functions<kernel = @update.momentum>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    %q = graph.read @w1 : tensor<10x10xf32>
    %1:2 = graph.momentum %q, %q, %q, %s {functions = #graph.functions<kernel = @update.momentum>} : (tensor<10x10xf32>, tensor<10x10xf32>, tensor<10x10xf32>, tensor<16xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>)
    graph.write @w0, %0#0 : tensor<10x10xf32>
    graph.write @w1, %1#0 : tensor<10x10xf32>
    return
  }
}

// CHECK: exec.inputs = [{ignore_index = -100 : i64, label = false, name = "x", type = tensor<4x10xf32>}, {ignore_index = -1 : i64, label = true, name = "y", type = tensor<4x10xf32>}]
// CHECK-NOT: @micro_batch
// CHECK: exec.program @position0 position 0 blocks [0, 2]

// STAGE3-DAG: exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0 {payload = 200 : i64}
// STAGE3-DAG: exec.buffer @b0.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b0 {payload = 400 : i64}
// STAGE3-DAG: exec.buffer @b0.grad.0 : memref<64xf32> gradients slots 1 stride 256
// STAGE3-DAG: exec.buffer @b0.whole.0.0 : memref<128xf32> buffers
// STAGE3-DAG: exec.buffer @b0.m : memref<64xf32> optimizer
// Each block is gathered one run ahead, in forward and again in backward; forward
// and backward of the last micro-batch's last block are one window. A reduction
// follows every W: the first is stored, the second added.
// STAGE3: exec.schedule
// STAGE3: exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
// STAGE3: exec.gather @b1.param to @b1.full bytes 256 all_gather order 1 over @dp on @comm
// STAGE3: %[[F00:.*]] = exec.run @block0.F {{.*}}@b0.full, {{.*}} micro_batch 0
// STAGE3: exec.wait %[[F00]] on @comm
// STAGE3: exec.gather @b0.param to @b0.full bytes 256 all_gather order 2 over @dp on @comm
// STAGE3: exec.run @block1.F {{.*}} micro_batch 0
// STAGE3: exec.gather @b1.param to @b1.full bytes 256 all_gather order 3 over @dp on @comm
// STAGE3: exec.run @block0.F {{.*}} micro_batch 1
// STAGE3: exec.run @block1.F {{.*}} micro_batch 1
// STAGE3: exec.run @block1.B {{.*}} micro_batch 0
// STAGE3: %[[W10:.*]] = exec.run @block1.W {{.*}}@b1.whole.0.0] micro_batch 0 on @compute
// STAGE3: exec.gather @b1.param to @b1.full bytes 256 all_gather order 4 over @dp on @comm
// STAGE3: exec.reduce @b1.whole.0.0 to @b1.grad.0 elements 64 : f32 order 5 over @dp on @comm
// STAGE3: exec.run @block0.W {{.*}} micro_batch 0
// STAGE3: exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 6 over @dp on @comm
// STAGE3: exec.run @block1.B {{.*}} micro_batch 1
// STAGE3: exec.reduce @b1.whole.0.0 to @b1.grad.0 elements 64 : f32 accumulate order 7 over @dp on @comm
// STAGE3: exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 accumulate order 8 over @dp on @comm
// STAGE3: exec.norm @b1.grad.0 of @b1 to @norms on @compute
// STAGE3: exec.update @update.momentum of @b1
// STAGE3: exec.norm @b0.grad.0 of @b0 to @norms[1] on @compute
// STAGE3: exec.update @update.momentum of @b0 [@b0.param, @b0.grad.0, @b0.m] elements 64 sliced on @compute
// STAGE3: exec.agree norms [@norms, @norms[1]] losses [@loss, @loss[1]] order 9 over @world on @comm
// STAGE3-NOT: exec.gather

// WINDOW: dsopt.options = {{.*}}gather_window = 2 : i64{{.*}}exec.built_with = {{.*}}gather_window = 2 : i64
// WINDOW: exec.gather @b0.param{{.*}} order 0
// WINDOW: exec.gather @b1.param{{.*}} order 1
// WINDOW: exec.reduce {{.*}} order 2

// STAGE2-DAG: exec.buffer @b0.param : memref<128xf32> parameters
// STAGE2-DAG: exec.buffer @b0.grad.0 : memref<64xf32> gradients
// STAGE2: exec.schedule
// STAGE2-NOT: exec.gather
// STAGE2: exec.reduce @b1.whole.0.0 to @b1.grad.0 elements 64 : f32 order 0 over @dp on @comm
// STAGE2: exec.reduce @b1.whole.0.0 to @b1.grad.0 elements 64 : f32 accumulate order 2 over @dp on @comm
// STAGE2: exec.update @update.momentum of @b0 [@b0.param+256*edp, @b0.grad.0, @b0.m] elements 64 sliced on @compute
// STAGE2: exec.gather @b0.param+256*edp to @b0.param bytes 256 all_gather

// Whole gradients: accumulated in place, reduced once, in place.
// STAGE1-DAG: exec.buffer @b0.grad.0 : memref<128xf32> gradients slots 1 stride 512
// STAGE1-DAG: exec.buffer @b0.m : memref<64xf32> optimizer
// STAGE1: exec.schedule
// STAGE1: exec.run @block1.W {{.*}}@b1.grad.0] micro_batch 0 on @compute
// STAGE1: exec.run @block1.W {{.*}}@b1.grad.0] micro_batch 1 accumulate on @compute
// STAGE1: exec.reduce @b1.grad.0 to @b1.grad.0+256*edp elements 64 : f32 order 0 over @dp on @comm
// STAGE1: exec.norm @b0.grad.0+256*edp of @b0
// STAGE1: exec.update @update.momentum of @b0 [@b0.param+256*edp, @b0.grad.0+256*edp, @b0.m] elements 64 sliced on @compute
// STAGE1: exec.gather @b0.param+256*edp to @b0.param bytes 256 all_gather

// STAGE0-DAG: exec.buffer @b0.m : memref<128xf32> optimizer
// STAGE0: exec.reduce @b1.grad.0 to @b1.grad.0+256*edp elements 64 : f32 order 0 over @dp on @comm
// STAGE0: exec.gather @b0.grad.0+256*edp to @b0.grad.0 bytes 256 all_gather
// STAGE0: exec.norm @b0.grad.0+256*edp of @b0
// STAGE0: exec.update @update.momentum of @b0 [@b0.param, @b0.grad.0, @b0.m] elements 128 on @compute
// STAGE0-NOT: exec.gather

// With clipping norms are early, updates wait for the agreement.
// CLIP: exec.norm {{.*}} of @b1
// CLIP-NOT: exec.update
// CLIP: exec.agree
// CLIP: exec.update {{.*}} of @b0
// CLIP: exec.update {{.*}} of @b1

// A rule may call a state as other buffers are called: which one it is, is not in the name.
// CALLED: exec.buffer @b0.param : memref<128xf32> parameters {{.*}}persistent stored of @b0
// CALLED: exec.buffer @b0.param.1 : memref<64xf32> optimizer {{.*}}persistent state "param" of @b0
// CALLED: exec.update @update.momentum of @b0 [@b0.param+256*edp, @b0.grad.0+256*edp, @b0.param.1]

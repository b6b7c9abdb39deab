// RUN: dsopt-opt %s -describe-changes | FileCheck %s
// RUN: dsopt-opt %s -describe-changes | FileCheck %s --check-prefix=TOUCHES
// RUN: dsopt-opt %s -describe-changes -describe-changes | FileCheck %s

// Each says which bytes it reads and writes on one rank: a gather in place keeps the rank's own, an update of a record leaves the states.
// TOUCHES: exec.gather @b0.param to @b0.full
// TOUCHES-SAME: exec.touches = [#exec.touch<<@b0.param> 256 read>, #exec.touch<<@b0.full> 512 write>]
// TOUCHES: exec.run @f
// TOUCHES-SAME: exec.touches = [#exec.touch<<@y> 64 write>, #exec.touch<<@b0.full> 512 read>, #exec.touch<<@b1.param> 512 read>]
// What it writes a view of it leaves elsewhere.
// TOUCHES: exec.run @tile
// TOUCHES-SAME: exec.touches = [#exec.touch<<@staged> 512 update>, #exec.touch<<@y2> 512 write>]
// TOUCHES: exec.gather @b1.param+256*edp to @b1.param
// TOUCHES-SAME: exec.touches = [#exec.touch<<@b1.param> 512 update>]
// TOUCHES: exec.update @sgd of @b1 [@staged, @y2]
// TOUCHES-SAME: exec.touches = [#exec.touch<<@staged> 512 update>, #exec.touch<<@y2> 512 read>, #exec.touch<<@scalars> 64 read>]
// TOUCHES: exec.update @sgd of @b1
// TOUCHES-SAME: #exec.touch<<@norms> 512 read>, #exec.touch<<@b1.coefficients> 12 update>, #exec.touch<<@scalars> 64 read>]

// What writes to persistent buffers says to which: not what only reads them, and nothing of other buffers. What was
// said before counts no more.
// CHECK: exec.gather @b0.param to @b0.full
// CHECK-NOT: exec.changes
// CHECK: exec.run @f
// CHECK-NOT: exec.changes
// CHECK: exec.gather @b1.param+256*edp to @b1.param
// CHECK-SAME: {exec.changes = [@b1.param],
// CHECK: exec.recv @b0.param
// CHECK-SAME: {exec.changes = [@b0.param],
// CHECK: exec.fold @statistics
// CHECK-SAME: {exec.changes = [@running],
// CHECK: exec.copy @b0.full to @kept
// CHECK-SAME: {exec.changes = [@kept],
// An update that changes nothing that lasts says that, too.
// CHECK: exec.update @sgd of @b1 [@staged, @y2]
// CHECK-SAME: {exec.changes = [],
// Nor does what a rule keeps by parameter change without a word.
// CHECK: exec.update @sgd of @b1
// CHECK-SAME: {exec.changes = [@b1.coefficients],
module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.stream @recv communication
  exec.stream @download copy
  exec.communicator @dp over [edp, ep, sp]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  dist.bucket @b1 : f32 of [1] [#dist.range<@v, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 1
  func.func private @f(memref<16xf32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @sgd(%p: tensor<128xf32>, %g: tensor<128xf32>, %s: tensor<16xf32>) -> tensor<128xf32> attributes {graph.iterate = #graph.iteration<flat>} {
    return %p : tensor<128xf32>
  }
  func.func private @tile(%part: memref<8x16xf32> {exec.access = #exec.access<write>}, %whole: memref<128xf32> {exec.access = #exec.access<write>}) attributes {exec.segment} {
    %columns = exec.view %part : memref<8x16xf32> to memref<8x12xf32, strided<[16, 1]>>
    %same = exec.view %whole : memref<128xf32> to memref<8x16xf32>
    return
  }
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.memory @host host
    exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b1.param : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b1
    exec.buffer @running : memref<16xf32> parameters slots 1 stride 64 persistent
    exec.buffer @kept in @host : memref<128xf32> optimizer slots 1 stride 512 persistent
    exec.buffer @b0.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b0
    exec.buffer @staged : memref<128xf32> buffers slots 1 stride 512
    exec.buffer @y2 : memref<128xf32> gradients slots 1 stride 512
    exec.buffer @scalars : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.buffer @y : memref<16xf32> activations slots 1 stride 64
    exec.buffer @norms : memref<64xi64> buffers slots 1 stride 512
    exec.buffer @b1.coefficients : memref<3xf32> optimizer slots 1 stride 64 persistent kept "coefficients" of @b1
    exec.buffer @statistics : memref<32xf32> buffers slots 1 stride 128
    exec.schedule {
      %g0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm {exec.changes = [@y]}
      %f0 = exec.run @f [@y, @b0.full, @b1.param] micro_batch 0 on @compute
      %f1 = exec.run @tile [@staged, @y2] micro_batch 0 on @compute
      %g1 = exec.gather @b1.param+256*edp to @b1.param bytes 256 all_gather order 1 over @dp on @comm
      %r = exec.recv @b0.param bytes 256 from 1 tag "w" tied over @dp on @recv
      %o = exec.fold @statistics bytes 64 into [@running] places [0] elements [16] momenta [1.000000e-01] on @compute
      %c = exec.copy @b0.full to @kept bytes 512 on @download
      %u = exec.update @sgd of @b1 [@staged, @y2] elements 128 on @compute
      %v = exec.update @sgd of @b1 [@staged, @y2] elements 128 record @norms coefficients @b1.coefficients on @compute
    }
  }
}

// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -insert-waits

module attributes {dsopt.options = {dp = 2 : i64, pp = 1 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  dist.bucket @b1 : f32 of [1] [#dist.range<@v, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 3
  func.func private @f(memref<16xf32> {exec.access = #exec.access<read>}, memref<16xf32> {exec.access = #exec.access<write>}, memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
  func.func private @w(memref<16xf32> {exec.access = #exec.access<read>}, memref<128xf32> {exec.access = #exec.access<update>}) attributes {exec.segment}
  exec.stream @compute compute
  exec.program @position0 position 0 blocks [0, 2] {
    exec.memory @device device
    exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
    exec.buffer @b1.param : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b1
    exec.buffer @b0.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b0
    exec.buffer @b1.full : memref<128xf32> buffers slots 1 stride 512 gathered of @b1
    exec.buffer @b0.grad.0 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @b0.whole.0.0 : memref<128xf32> buffers slots 1 stride 512 of @b0
    exec.buffer @x : memref<16xf32> activations slots 1 stride 64
    exec.buffer @h : memref<16xf32> activations slots 1 stride 64
    exec.buffer @y : memref<16xf32> activations slots 1 stride 64
    exec.schedule {
      // expected-error @below {{runs @nothing, which is no segment of this module}}
      %f0 = exec.run @nothing [@x] micro_batch 0 on @compute
    }
  }
}

// -----

func.func private @none(%x: tensor<64xf32>) -> tensor<64xbf16> {
  %0 = graph.cast %x : (tensor<64xf32>) -> tensor<64xbf16>
  return %0 : tensor<64xbf16>
}
exec.stream @compute compute
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @x : memref<64xf32> buffers slots 1 stride 256
  exec.buffer @y : memref<64xbf16> buffers slots 1 stride 128
  exec.schedule {
    // expected-error @below {{runs @none, which is no kernel of this module}}
    %0 = exec.map @none [@x, @y] elements 64 on @compute
  }
}

// -----

func.func private @narrow(%x: tensor<64xf32>) -> tensor<64xbf16> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
  %0 = graph.cast %x : (tensor<64xf32>) -> tensor<64xbf16>
  return %0 : tensor<64xbf16>
}
exec.stream @compute compute
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @x : memref<64xf32> buffers slots 1 stride 256
  exec.schedule {
    // expected-error @below {{has 1 buffers, expected 2, as @narrow takes}}
    %0 = exec.map @narrow [@x] elements 64 on @compute
  }
}

// -----

exec.stream @comm communication
exec.communicator @dp over [edp, ep, sp]
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @p.param : memref<64xf32> parameters slots 1 stride 256 persistent
  exec.buffer @p.full : memref<64xf32> buffers slots 1 stride 256
  exec.schedule {
    %g = exec.gather @p.param to @p.full bytes 256 all_gather order 0 over @dp on @comm
    // expected-error @below {{is no action: nothing can be ordered behind it}}
    exec.release %g
  }
}

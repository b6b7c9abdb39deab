// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -share-gathers
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

func.func private @f0(memref<128xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
exec.stream @compute compute
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @p.full : memref<128xf32> buffers slots 1 stride 512
  exec.schedule {
    %r0 = exec.run @f0 [@p.full] micro_batch 0 on @compute
    // expected-error @below {{ends what is no exec.gather}}
    exec.release %r0
  }
}

// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -plan-memory
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -verify-exec

exec.stream @compute compute
exec.stream @comm communication
exec.communicator @dp over [edp, ep, sp]
func.func private @f0(memref<64xf32> {exec.access = #exec.access<read>}) attributes {exec.segment}
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @p.param : memref<64xf32> parameters slots 1 stride 256 persistent
  exec.buffer @p.full : memref<64xf32> buffers slots 1 stride 256
  exec.schedule {
    %g = exec.gather @p.param to @p.full bytes 256 all_gather order 0 over @dp on @comm
    %r = exec.run @f0 [@p.full] micro_batch 0 on @compute
    // expected-error @below {{is left in a schedule whose gathers should be shared: expected share-gathers before this pass}}
    exec.release %g
  }
}

// -----

exec.stream @comm communication
exec.communicator @dp over [edp, ep, sp]
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @g : memref<64xf32> buffers slots 1 stride 256
  exec.buffer @s : memref<64xf32> gradients slots 1 stride 256
  exec.schedule {
    // expected-error @below {{stands for several actions: expected expand-collectives before this pass}}
    %0 = exec.reduce @g to @s elements 64 : f32 by all_to_all order 0 over @dp on @comm
  }
}

// -----

exec.stream @comm communication
exec.communicator @dp over [edp, ep, sp]
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @s : memref<64xf32> parameters slots 1 stride 256 persistent
  exec.buffer @w : memref<64xf32> buffers slots 1 stride 256
  exec.schedule {
    // expected-error @below {{stands for several actions: expected expand-collectives before this pass}}
    %0 = exec.gather @s to @w bytes 256 as bf16 all_gather order 0 over @dp on @comm
  }
}

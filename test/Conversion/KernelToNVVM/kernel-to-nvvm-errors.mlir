// RUN: dsopt-opt %s -kernel-to-nvvm -verify-diagnostics

func.func private @kernel0(%lo: index, %hi: index, %x: memref<64xf32> {llvm.noalias})
    attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 1>, gpu.known_block_size = array<i32: 32, 1, 1>} {
  %a = memref.load %x[%lo] : memref<64xf32>
  // expected-error @below {{is called by kernels, but a device has no library to take it from}}
  %b = math.sin %a : f32
  memref.store %b, %x[%lo] : memref<64xf32>
  return
}

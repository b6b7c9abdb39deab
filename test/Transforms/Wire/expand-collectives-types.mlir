// Kernels of one name and source have a version for each type that they make.
// RUN: dsopt-opt %s -expand-collectives | FileCheck %s

// CHECK: exec.map @wire.sum.bf16 [@g.parts, @g.parts+128, @s] elements 64 on @compute
// CHECK: exec.map @[[OTHER:"wire.sum.bf16.*"]] [@h.parts, @h.parts+128, @t] elements 64 on @compute
// CHECK: func.func private @wire.sum.bf16(%{{.*}}: tensor<64xbf16>, %{{.*}}: tensor<64xbf16>) -> tensor<64xf32>
// CHECK: func.func private @[[OTHER]](%{{.*}}: tensor<64xbf16>, %{{.*}}: tensor<64xbf16>) -> tensor<64xbf16>
module attributes {dsopt.options = {dp = 2 : i64, zero = 2 : i64}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.communicator @dp over [edp, ep, sp]
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @g : memref<128xf32> buffers slots 1 stride 512
    exec.buffer @s : memref<64xf32> gradients slots 1 stride 256
    exec.buffer @h : memref<128xbf16> buffers slots 1 stride 256
    exec.buffer @t : memref<64xbf16> gradients slots 1 stride 128
    exec.schedule {
      %0 = exec.reduce @g to @s elements 64 : f32 as bf16 by all_to_all order 0 over @dp on @comm
      %1 = exec.reduce @h to @t elements 64 : bf16 by all_to_all order 1 over @dp on @comm
    }
  }
}

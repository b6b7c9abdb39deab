// RUN: dsopt-opt %s -split-input-file -copy-host-kernels -verify-diagnostics | FileCheck %s

#device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 2, vector_bits = 128, features = []>

// One copy for all that the host's stream runs, for the host's baseline; other streams run the device's.
// CHECK: #[[HOST:.*]] = #dsopt.target<cpu, triple = "{{.*}}", threads = 2, {{.*}}>
// CHECK: module @kernels attributes {dsopt.target = #{{.*}}} {
// CHECK-NEXT: func.func nested @update.sgd(
// CHECK: exec.update @host_kernels::@update.sgd.host of @b0 {{.*}} elements 64 on @host
// CHECK-NEXT: exec.update @host_kernels::@update.sgd.host of @b1 {{.*}} elements 64 on @host
// CHECK-NEXT: exec.update @kernels::@update.sgd of @b2 {{.*}} elements 64 on @compute
// CHECK-NEXT: exec.map @host_kernels::@double.host {{.*}} elements 64 on @host
// CHECK: module @host_kernels attributes {dsopt.target = #[[HOST]]} {
// CHECK-NEXT: func.func nested @update.sgd.host(%{{.*}}: tensor<64xf32>, {{.*}}) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>} {
// CHECK-NEXT: return
// CHECK: func.func nested @double.host(
// CHECK-NOT: func.func
// CHECK: {{^}}// ---{{--}}
module attributes {dsopt.target = #device} {
  exec.stream @compute compute
  exec.stream @host host
  module @kernels attributes {dsopt.target = #device} {
    func.func nested @update.sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>} {
      return %p : tensor<64xf32>
    }
    func.func nested @double(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
      %0 = graph.add %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      return %0 : tensor<64xf32>
    }
  }
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.memory @host host
    exec.buffer @p in @host : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @g in @host : memref<64xf32> gradients slots 1 stride 256
    exec.buffer @p2 : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @g2 : memref<64xf32> gradients slots 1 stride 256
    exec.schedule {
      %0 = exec.update @kernels::@update.sgd of @b0 [@p, @g] elements 64 on @host
      %1 = exec.update @kernels::@update.sgd of @b1 [@p, @g] elements 64 on @host
      %2 = exec.update @kernels::@update.sgd of @b2 [@p2, @g2] elements 64 on @compute
      %3 = exec.map @kernels::@double [@p, @g] elements 64 on @host
    }
  }
}

// -----

// A program for the host has kernels that the host runs.
// CHECK: exec.update @kernels::@update.sgd of @b0
// CHECK-NOT: @host_kernels
#host = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
module attributes {dsopt.target = #host} {
  exec.stream @host host
  module @kernels attributes {dsopt.target = #host} {
    func.func nested @update.sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>} {
      return %p : tensor<64xf32>
    }
  }
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @p : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @g : memref<64xf32> gradients slots 1 stride 256
    exec.schedule {
      %0 = exec.update @kernels::@update.sgd of @b0 [@p, @g] elements 64 on @host
    }
  }
}

// -----

#device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 2, vector_bits = 128, features = []>
module attributes {dsopt.target = #device} {
  exec.stream @host host
  exec.program @position0 position 0 blocks [0, 1] {
    exec.memory @device device
    exec.buffer @p : memref<64xf32> parameters slots 1 stride 256 persistent
    exec.buffer @g : memref<64xf32> gradients slots 1 stride 256
    exec.schedule {
      // expected-error@+1 {{'exec.update' op is the host's and runs @update.sgd, expected a kernel of the device}}
      %0 = exec.update @update.sgd of @b0 [@p, @g] elements 64 on @host
    }
  }
}

// RUN: dsopt-opt %s -lower-host-kernels | FileCheck %s
// RUN: dsopt-opt %s -pass-pipeline='builtin.module(lower-host-kernels,builtin.module(lower-kernels-to-nvvm))' | FileCheck %s --check-prefix=BOTH

// The host's kernels become functions of the ABI, the device's wait for its passes, which leave the host's alone. No library of the
// host's is called for what a device has none for.
// CHECK: module @kernels
// CHECK: func.func nested @double(%{{.*}}: tensor<64xf32>)
// CHECK: module @host_kernels
// CHECK: llvm.func internal @double.host.body(
// CHECK-NOT: {{sin|llvm.call}}
// CHECK: llvm.func @double.host(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr) {
// BOTH: module @kernels
// BOTH: llvm.func @double({{.*}} nvvm.kernel
// BOTH: module @host_kernels
// BOTH: llvm.func @double.host(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr) {
#device = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80", threads = 2, vector_bits = 128, features = []>
#host = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = []>
module attributes {dsopt.target = #device} {
  module @kernels attributes {dsopt.target = #device} {
    func.func nested @double(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
      %0 = graph.add %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      return %0 : tensor<64xf32>
    }
  }
  module @host_kernels attributes {dsopt.target = #host} {
    func.func nested @double.host(%x: tensor<64xf32>) -> tensor<64xf32> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
      %0 = graph.add %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %1 = graph.sin %0 : (tensor<64xf32>) -> tensor<64xf32>
      return %1 : tensor<64xf32>
    }
  }
}

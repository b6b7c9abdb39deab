// RUN: dsopt-opt %s -segments-to-llvm -split-input-file -verify-diagnostics | FileCheck %s
// RUN: dsopt-opt %s -segments-to-llvm -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=KERNEL

#target = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_90", threads = 2, vector_bits = 128, features = []>
module attributes {dsopt.target = #target} {
  // A kernel's name in PTX; then the pointers that it takes, a block's threads and elements. Of all kernels, for updates, too.
  // CHECK-DAG: llvm.func @dsopt_rt_launch_device(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  // CHECK-DAG: llvm.mlir.global internal constant @block0.k0.name("block0$k0\00")
  // CHECK-DAG: llvm.mlir.global internal constant @update.adam.name("update$adam\00")
  // CHECK-DAG: llvm.mlir.global external constant @update.adam()
  // KERNEL: llvm.mlir.global external constant @block0.k0() {{.*}}!llvm.struct<(ptr, i64, i64, i64)> {
  // KERNEL: %[[NAME:.*]] = llvm.mlir.addressof @block0.k0.name
  // KERNEL: llvm.insertvalue %[[NAME]], %{{.*}}[0]
  // KERNEL: %[[ARGUMENTS:.*]] = llvm.mlir.constant(2 : i64)
  // KERNEL: llvm.insertvalue %[[ARGUMENTS]], %{{.*}}[1]
  // KERNEL: %[[THREADS:.*]] = llvm.mlir.constant(128 : i64)
  // KERNEL: llvm.insertvalue %[[THREADS]], %{{.*}}[2]
  // KERNEL: %[[ELEMENTS:.*]] = llvm.mlir.constant(1 : i64)
  // KERNEL: llvm.insertvalue %[[ELEMENTS]], %{{.*}}[3]
  // KERNEL: llvm.return
  module @kernels attributes {dsopt.target = #target} {
    llvm.func @block0.k0(%lo: i64, %hi: i64, %x: !llvm.ptr, %y: !llvm.ptr) attributes {exec.per_block = 1 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      llvm.return
    }
    llvm.func @update.adam(%lo: i64, %hi: i64, %x: !llvm.ptr, %table: !llvm.ptr) attributes {exec.per_block = 256 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>} {
      llvm.return
    }
  }
  // CHECK: llvm.func @block0.F
  // CHECK: %[[LAUNCHED:.*]] = llvm.mlir.addressof @block0.k0 :
  // CHECK: %[[RANGE:.*]] = llvm.mlir.constant(4 : i64)
  // CHECK: llvm.call @dsopt_rt_launch_device(%arg0, %[[LAUNCHED]], %[[RANGE]], %{{.*}})
  func.func private @block0.F(%x: memref<4xf32>) attributes {exec.segment} {
    exec.launch @kernels::@block0.k0 range 4 grain 1 (%x) -> (%x) : memref<4xf32> -> memref<4xf32>
    return
  }
}

// -----

#target = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_90", threads = 2, vector_bits = 128, features = []>
module attributes {dsopt.target = #target} {
  module @kernels attributes {dsopt.target = #target} {
    llvm.func @k0(%lo: i64, %hi: i64, %x: !llvm.ptr) {
      llvm.return
    }
  }
  func.func private @block0.F(%x: memref<4xf32>) attributes {exec.segment} {
    // expected-error @below {{launches @kernels::@k0, expected a kernel that is lowered for the device}}
    exec.launch @kernels::@k0 range 4 grain 1 (%x) -> (%x) : memref<4xf32> -> memref<4xf32>
    return
  }
}

// -----

#target = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_90", threads = 2, vector_bits = 128, features = []>
module attributes {dsopt.target = #target} {
  func.func private @block0.F(%x: memref<5x4096xbf16>, %w: memref<4096x8xbf16>, %y: memref<5x8xbf16, strided<[24, 1]>>, %s: memref<384xi8>) attributes {exec.segment} {
    // expected-error @below {{has a workspace of 384 bytes, expected 480}}
    exec.gemm %x, %w -> %y workspace %s : memref<384xi8> : memref<5x4096xbf16>, memref<4096x8xbf16> -> memref<5x8xbf16, strided<[24, 1]>>
    return
  }
}

// RUN: dsopt-opt %s -attach-target | FileCheck %s
// RUN: dsopt-opt %s -attach-target | dsopt-opt -attach-target | FileCheck %s
// RUN: dsopt-opt %s -attach-target="arch=x86-64-v4 threads=3" | FileCheck %s --check-prefix=OWN
// RUN: dsopt-opt %s -attach-target=arch=native | FileCheck %s --check-prefix=NATIVE
// RUN: dsopt-opt %s -attach-target | not dsopt-opt -attach-target=arch=x86-64-v4 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: dsopt-opt %s -attach-target | not dsopt-opt -attach-target="arch=x86-64-v3 threads=5" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not dsopt-opt %s -attach-target=arch=i8080 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dsopt-opt %s -attach-target=threads=-1 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90a,sm_80,sm_90a" | FileCheck %s --check-prefix=DEVICE
// RUN: dsopt-opt %s -attach-target="target=cuda arch=sm_90a,sm_80" | dsopt-opt -attach-target=arch=sm_80,sm_90a | FileCheck %s --check-prefix=DEVICE
// RUN: dsopt-opt %s -attach-target="target=cuda arch=native" | FileCheck %s --check-prefix=DEFAULT
// RUN: not dsopt-opt %s -attach-target="target=cuda arch=sm_80,sm_70" 2>&1 | FileCheck %s --check-prefix=UNKNOWN-DEVICE
// RUN: not dsopt-opt %s -attach-target="target=tpu" 2>&1 | FileCheck %s --check-prefix=UNKNOWN-TARGET
// RUN: dsopt-opt %s -attach-target | not dsopt-opt -attach-target="target=cuda arch=sm_80" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: FileCheck %s --check-prefix=DOC < %source/include/dsopt/Target/Passes.td

// The target takes the place of its options.
// CHECK: #[[TARGET:.*]] = #dsopt.target<cpu, triple = "{{.*}}", arch = "x86-64-v3", threads = 2, vector_bits = 256, features = [{{.*}}"+avx2"{{.*}}]>
// CHECK: module attributes {dsopt.options = {dp = 2 : i64}, dsopt.target = #[[TARGET]]}
// DOC: module attributes {dsopt.options = {dp = 2 : i64}, dsopt.target = #target}
// OWN: arch = "x86-64-v4", threads = 3, vector_bits = 512, features = [{{.*}}"+avx512vl"
// NATIVE: #dsopt.target<cpu, triple = "{{.*}}", arch = "{{.+}}", threads = 2, vector_bits = {{128|256|512}}, features = [{{.*}}"{{[+-]}}
// ARCH: error: module is for x86-64-v3 and 2 threads, got x86-64-v4 and 2: a target is attached once
// THREADS: error: module is for x86-64-v3 and 2 threads, got x86-64-v3 and 5: a target is attached once
// UNKNOWN: error: unknown -arch=i8080, expected native
// FEW: error: target has threads = -1, expected 1 or more
// DEVICE: #[[TARGET:.*]] = #dsopt.target<cuda, triple = "nvptx64-nvidia-cuda", arch = "sm_80,sm_90a", threads = 2, vector_bits = 128, features = []>
// DEVICE: module attributes {dsopt.options = {dp = 2 : i64}, dsopt.target = #[[TARGET]]}
// DEFAULT: arch = "sm_90", threads = 2
// UNKNOWN-DEVICE: error: unknown -arch=sm_70, expected sm_80, sm_89, sm_90, sm_90a, sm_100a or several of them, separated by commas
// UNKNOWN-TARGET: error: unknown target 'tpu', expected cpu or cuda
// KIND: error: module is for x86-64-v3 and 2 threads, got sm_80 and 2: a target is attached once
module attributes {dsopt.options = {arch = "x86-64-v3", dp = 2 : i64, threads = 2 : i64}} {}

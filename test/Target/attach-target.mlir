// RUN: dsopt-opt %s -attach-target | FileCheck %s
// RUN: dsopt-opt %s -attach-target | dsopt-opt -attach-target | FileCheck %s
// RUN: dsopt-opt %s -attach-target="arch=x86-64-v4 threads=3" | FileCheck %s --check-prefix=OWN
// RUN: dsopt-opt %s -attach-target=arch=native | FileCheck %s --check-prefix=NATIVE
// RUN: dsopt-opt %s -attach-target | not dsopt-opt -attach-target=arch=x86-64-v4 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: dsopt-opt %s -attach-target | not dsopt-opt -attach-target="arch=x86-64-v3 threads=5" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not dsopt-opt %s -attach-target=arch=i8080 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dsopt-opt %s -attach-target=threads=-1 2>&1 | FileCheck %s --check-prefix=FEW
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
module attributes {dsopt.options = {arch = "x86-64-v3", dp = 2 : i64, threads = 2 : i64}} {}

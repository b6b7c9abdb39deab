// RUN: dsopt-opt %s -split-input-file -verify-diagnostics "-cut-rows=shards=4 ranks=3"
// RUN: not dsopt-opt %s -split-input-file "-cut-rows=shards=2 ranks=2" 2>&1 | FileCheck %s

// CHECK: cut-rows expects a function @forward with one body
// expected-error@+1 {{has 4 tensor shards for 3 ranks, expected a multiple}}
module {}

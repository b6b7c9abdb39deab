// RUN: dsopt-opt %s -split-input-file -verify-diagnostics "-partition-zero=stage=4 ranks=2"

// expected-error@+1 {{cannot partition by ZeRO stage 4 over 2 ranks: expected a stage of 0 to 3 and a rank or more}}
module {}

// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -declare-grid=dp=2 -partition-zero=stage=4

// expected-error@+1 {{cannot partition by ZeRO stage 4: expected a stage of 0 to 3}}
module {}

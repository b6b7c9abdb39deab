// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -find-blocks

// expected-error@+1 {{find-blocks expects a function @forward with one body}}
module {
}

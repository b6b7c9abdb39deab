// RUN: dsopt-opt %s -raise-attention -verify-diagnostics

// expected-error @below {{raise-attention expects a function @forward with one body}}
module {
}

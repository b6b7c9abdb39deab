// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "znver4", threads = 2, vector_bits = 512, features = ["+avx2", "-sse4a"]>
module attributes {dsopt.options = {dp = 2 : i64}, dsopt.target = #target} {
  module @kernels attributes {dsopt.target = #target} {}
}

// -----

// expected-error@below {{attribute 'dsopt.targets' does not exist; did you mean 'dsopt.target'?}}
module attributes {dsopt.targets = 1 : i64} {}

// -----

// expected-error@below {{attribute 'dsopt.target' is "x86-64-v3", expected a #dsopt.target}}
module attributes {dsopt.target = "x86-64-v3"} {}

// -----

// expected-error@below {{attribute 'dsopt.target' stands on 'func.func', expected it on a module}}
func.func private @f() attributes {dsopt.target = #dsopt.target<cpu, triple = "x", arch = "y", threads = 2, vector_bits = 128, features = []>}

// -----

// expected-error@+2 {{expected one of [cpu, cuda] for what runs the code, got: tpu}}
// expected-error@+1 {{failed to parse Dsopt_TargetAttr parameter 'kind'}}
module attributes {dsopt.target = #dsopt.target<tpu, triple = "x", arch = "y", threads = 2, vector_bits = 128, features = []>} {}

// -----

// expected-error@below {{target has no triple, expected LLVM's name}}
module attributes {dsopt.target = #dsopt.target<cpu, triple = "", arch = "y", threads = 2, vector_bits = 128, features = []>} {}

// -----

// expected-error@below {{target has no arch, expected LLVM's name}}
module attributes {dsopt.target = #dsopt.target<cpu, triple = "x", arch = "", threads = 2, vector_bits = 128, features = []>} {}

// -----

// expected-error@below {{target has threads = 0, expected 1 or more}}
module attributes {dsopt.target = #dsopt.target<cpu, triple = "x", arch = "y", threads = 0, vector_bits = 128, features = []>} {}

// -----

// expected-error@below {{target has vector_bits = 100, expected 128, 256 or 512}}
module attributes {dsopt.target = #dsopt.target<cpu, triple = "x", arch = "y", threads = 1, vector_bits = 100, features = []>} {}

// -----

// expected-error@below {{target has feature "avx2", expected "+NAME" or "-NAME"}}
module attributes {dsopt.target = #dsopt.target<cpu, triple = "x", arch = "y", threads = 1, vector_bits = 256, features = ["avx2"]>} {}

// -----

// expected-error@below {{dsopt.options has threads beside dsopt.target, which says it}}
module attributes {dsopt.options = {threads = 2 : i64}, dsopt.target = #dsopt.target<cpu, triple = "x", arch = "y", threads = 2, vector_bits = 128, features = []>} {}

// -----

module attributes {dsopt.target = #dsopt.target<cpu, triple = "x", arch = "y", threads = 2, vector_bits = 128, features = []>} {
  // expected-error@below {{module is for z and 2 threads, the one around it for y and 2, expected one target of a kind}}
  module @kernels attributes {dsopt.target = #dsopt.target<cpu, triple = "x", arch = "z", threads = 2, vector_bits = 128, features = []>} {}
}

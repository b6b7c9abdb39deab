// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

// Each where it belongs.
module attributes {exec.calls = [{kind = "gemm"}], exec.dimension = {name = "rows", size = 8 : i64},
                   exec.inputs = [{bound = 9 : i64, ignore_index = -100 : i64, label = true, name = "y", type = tensor<4xi64>}],
                   exec.outputs = [{name = "logits", type = tensor<4x2xf32>}],
                   exec.metrics = [{name = "accuracy", combine = "ratio", parts = array<i64: 1, 1>}],
                   exec.update_calls = {"update.adam" = 0 : i64}} {
  func.func private @block0.F(memref<16xf32> {exec.access = #exec.access<read>, exec.parameter = @w},
                              memref<16xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad},
                              memref<16xf32> {exec.access = #exec.access<add>, exec.gradient = @w.grad},
                              memref<16xf32> {exec.access = #exec.access<add>, exec.cache = @rows},
                              memref<16xf32> {exec.access = #exec.access<write>}, memref<4xi64> {exec.access = #exec.access<read>, exec.constant = @c})
    attributes {exec.calls = array<i64: 0>, exec.flops = 10 : i64, exec.segment, exec.temp_bytes = 0 : i64, exec.variant = 4 : i64}
  exec.program @position0 evaluation position 0 blocks [0, 1] attributes {traffic = {tied = 0 : i64}, variant = 4 : i64} {
    exec.memory @device device {live = {buffers = 64 : i64}}
    exec.buffer @a : memref<16xf32> activations slots 1 stride 64 {payload = 60 : i64}
  }
}

// -----

// expected-error@below {{attribute 'exec.metrics' is [{combine = "median", name = "a", parts = array<i64: 1>}], expected dictionaries of name, combine and parts}}
module attributes {exec.metrics = [{name = "a", combine = "median", parts = array<i64: 1>}]} {}

// -----

// expected-error@below {{attribute 'exec.access' of argument 0 is "wriet", expected an access: #exec.access<read>, <write>, <update> or <add>}}
func.func private @f(memref<16xf32> {exec.access = "wriet"}) attributes {exec.segment}

// -----

// expected-error@below {{attribute 'exec.acess' of argument 0 does not exist; did you mean 'exec.access'?}}
func.func private @f(memref<16xf32> {exec.acess = #exec.access<write>}) attributes {exec.segment}

// -----

// expected-error@below {{attribute 'exec.access' stands on result 0 of 'func.func', expected it on a function's argument}}
func.func private @f() -> (memref<16xf32> {exec.access = #exec.access<write>})

// -----

// expected-error@below {{attribute 'exec.parameter' of argument 0 is "w", expected a symbol of this module}}
func.func private @f(memref<16xf32> {exec.parameter = "w"}) attributes {exec.segment}

// -----

// expected-error@below {{attribute 'exec.segment' is true, expected no value (unit)}}
func.func private @f() attributes {exec.segment = true}

// -----

// expected-error@below {{attribute 'exec.temp_bytes' is -64 : i64, expected an i64 of 0 or more}}
func.func private @f() attributes {exec.temp_bytes = -64 : i64}

// -----

// expected-error@below {{attribute 'exec.flops' stands on 'exec.program', expected it on a function or a call of a segment}}
exec.program @position0 position 0 blocks [0, 1] attributes {exec.flops = 0 : i64} {
}

// -----

exec.program @position0 position 0 blocks [0, 1] {
  // expected-error@below {{attribute 'live' failed to satisfy constraint: dictionary of named attribute values with i64s of 0 or more}}
  exec.memory @device device {live = {buffers = "64"}}
}

// -----

exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error@below {{attribute 'payload' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  exec.buffer @a : memref<16xf32> activations slots 1 stride 64 {payload = -60 : i64}
}

// -----

exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error@below {{expected string or keyword containing one of the following enum values for attribute 'kind' [parameters, gradients, optimizer, activations, buffers, reduction, tied, constants, secondary, packed, cache]}}
  exec.buffer @a : memref<16xf32> activation slots 1 stride 64
}

// -----

exec.stream @comm communication
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @a : memref<16xf32> buffers slots 2 stride 64
  exec.schedule {
    // expected-error@below {{'exec.gather' op is counted as send_recv, expected all_gather, tied, tensor_parallel or sequence_parallel}}
    %0 = exec.gather @a to @a[1] bytes 32 send_recv order 0 over @dp on @comm
  }
}

// -----

exec.stream @comm communication
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @a : memref<16xf32> buffers slots 1 stride 64
  exec.buffer @b : memref<16xf32> buffers slots 1 stride 64
  exec.schedule {
    // expected-error@below {{'exec.all_to_all' op is counted as tied, expected all_to_all, tensor_parallel or sequence_parallel}}
    %0 = exec.all_to_all @a to @b bytes 32 tied order 0 over @dp on @comm
  }
}

// -----

exec.stream @send communication
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @a : memref<16xf32> buffers slots 2 stride 64
  exec.schedule {
    // expected-error@below {{'exec.send' op is counted as all_gather, expected send_recv or tied}}
    %0 = exec.send @a bytes 64 to 1 tag "a" micro_batch 0 all_gather over @pp on @send
  }
}

// -----

exec.stream @recv communication
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @a : memref<16xf32> buffers slots 2 stride 64
  exec.schedule {
    // expected-error@below {{'exec.recv' op is counted as reduce_scatter, expected send_recv or tied}}
    %0 = exec.recv @a bytes 64 from 1 tag "a" micro_batch 0 reduce_scatter over @pp on @recv
  }
}

// -----

// expected-error@below {{attribute 'exec.dimension' is {name = "rows"}, expected a dictionary of name and size}}
module attributes {exec.dimension = {name = "rows"}} {}

// -----

// expected-error@below {{attribute 'exec.inputs' is [{name = "x"}], expected dictionaries of name, type, label, ignore_index and, of some, bound, least, source}}
module attributes {exec.inputs = [{name = "x"}]} {}

// -----

// expected-error@below {{attribute 'exec.calls' is array<i64: 0>, expected an array of dictionaries}}
module attributes {exec.calls = array<i64: 0>} {}

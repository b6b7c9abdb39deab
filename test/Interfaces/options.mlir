// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

module attributes {dsopt.options = {accumulate = "local", arch = "native", clip = 1 : i64, command = "dsopt x.onnx",
  decay_scale = ["w*=0.5"], device_memory = 0 : i64, dp = 2 : i64, gather_bucket_size = 9 : i64, gather_window = 1 : i64, gradient_type = "param",
  init = "normal:0.02", lr_scale = ["w*=0.5"], max_live_parameters = 0 : i64, max_reuse_distance = 0 : i64, micro_batch_size = 4 : i64, micro_batches = 2 : i64, momentum = 1 : i64,
  no_decay = ["rank1"], optimizer = "sgd", param_persistence_threshold = 0 : i64, pp = 2 : i64, precision = "bf16", prefetch = 0 : i64, prefetch_bucket_size = 0 : i64, prefetch_memory = 0 : i64, reduce_bucket_size = 9 : i64, reduction_shards = 2 : i64,
  reductions_in_flight = 2 : i64,
  run_defaults = {"grad-clip" = "1.0", lr = "0.1"}, schedule = "mine", stage_starts = array<i64: 0, 1>, threads = 2 : i64,
  train = 1 : i64, zero = 3 : i64}} {}

// -----

// expected-error@below {{dsopt.options has 'zer0', which is no compile option; did you mean 'zero'?}}
module attributes {dsopt.options = {zer0 = 3 : i64}} {}

// -----

// expected-error@below {{dsopt.options has 'tensor_parallel', which is no compile option}}
module attributes {dsopt.options = {tensor_parallel = 3 : i64}} {}

// -----

// expected-error@below {{dsopt.options has dp = "2", expected an i64 of 1 or more}}
module attributes {dsopt.options = {dp = "2"}} {}

// -----

// expected-error@below {{dsopt.options has zero = 3 : i32, expected an i64, one of 0, 1, 2, 3}}
module attributes {dsopt.options = {zero = 3 : i32}} {}

// -----

// expected-error@below {{dsopt.options has zero = 4 : i64, expected an i64, one of 0, 1, 2, 3}}
module attributes {dsopt.options = {zero = 4 : i64}} {}

// -----

// expected-error@below {{dsopt.options has micro_batches = 4.000000e+00 : f64, expected an i64 of 1 or more}}
module attributes {dsopt.options = {micro_batches = 4.0 : f64}} {}

// -----

// expected-error@below {{dsopt.options has pp = 0 : i64, expected an i64 of 1 or more}}
module attributes {dsopt.options = {pp = 0 : i64}} {}

// -----

// expected-error@below {{dsopt.options has device_memory = -1 : i64, expected an i64 of 0 or more}}
module attributes {dsopt.options = {device_memory = -1 : i64}} {}

// -----

// expected-error@below {{dsopt.options has accumulate = "locally", expected a string, one of local, sharded}}
module attributes {dsopt.options = {accumulate = "locally"}} {}

// -----

// Each with a number.
module attributes {dsopt.options = {sp_method = "ulysses*2"}} {}

// -----

// expected-error@below {{dsopt.options has sp_method = "ulysses*0", expected a string, one of auto, ulysses, ulysses*N, ring}}
module attributes {dsopt.options = {sp_method = "ulysses*0"}} {}

// -----

// expected-error@below {{dsopt.options has sp_method = "ring*2", expected a string, one of auto, ulysses, ulysses*N, ring}}
module attributes {dsopt.options = {sp_method = "ring*2"}} {}

// -----

// Plugins have more: append-optimizer knows them.
module attributes {dsopt.options = {optimizer = "lamb"}} {}

// -----

// expected-error@below {{dsopt.options has precision = 16 : i64, expected a string, one of fp32, bf16, fp16}}
module attributes {dsopt.options = {precision = 16 : i64}} {}

// -----

// expected-error@below {{dsopt.options has no_decay = "bias", expected an array of strings}}
module attributes {dsopt.options = {no_decay = "bias"}} {}

// -----

// expected-error@below {{dsopt.options has arch = 3 : i64, expected a string}}
module attributes {dsopt.options = {arch = 3 : i64}} {}

// -----

// expected-error@below {{dsopt.options has clip = 2 : i64, expected an i64 of 0 or 1}}
module attributes {dsopt.options = {clip = 2 : i64}} {}

// -----

// expected-error@below {{dsopt.options has run_defaults = {dp = "2"}, expected a dictionary of a run's options as strings}}
module attributes {dsopt.options = {run_defaults = {dp = "2"}}} {}

// -----

// expected-error@below {{dsopt.options has stage_starts = [0, 1], expected an array<i64> of 0 or more each}}
module attributes {dsopt.options = {stage_starts = [0, 1]}} {}

// -----

// expected-error@below {{attribute 'dsopt.options' is "dp=2", expected a dictionary}}
module attributes {dsopt.options = "dp=2"} {}

// -----

// expected-error@below {{attribute 'dsopt.option' does not exist; did you mean 'dsopt.options'?}}
module attributes {dsopt.option = {}} {}

// -----

// expected-error@below {{attribute 'dsopt.options' stands on 'func.func', expected it on a module}}
func.func private @f() attributes {dsopt.options = {}}

// -----

// expected-error@below {{attribute 'dsopt.options' of argument 0 does not exist}}
func.func private @f(tensor<4xf32> {dsopt.options = {}})

// -----

// expected-error@below {{attribute 'dsopt.options' of result 0 does not exist}}
func.func private @f() -> (tensor<4xf32> {dsopt.options = {}})

// -----

// What programs were built with stays.
module attributes {dsopt.options = {dp = 2 : i64, init = "model"}, exec.built_with = {dp = 2 : i64}} {}

// -----

// expected-error@below {{dsopt.options has micro_batches = 4 : i64, but the programs were built with 2 : i64: start from the stage before them to change it}}
module attributes {dsopt.options = {micro_batches = 4 : i64}, exec.built_with = {micro_batches = 2 : i64}} {}

// -----

// expected-error@below {{dsopt.options has no reduction_shards, but the programs were built with 2 : i64}}
module attributes {exec.built_with = {reduction_shards = 2 : i64}} {}

// -----

// expected-error@below {{dsopt.options has pp = 2 : i64, but the programs were built with its default}}
module attributes {dsopt.options = {pp = 2 : i64}, exec.built_with = {}} {}

module attributes {dsopt.options = {accumulate = "sharded", arch = "x86-64-v3", clip = 0 : i64,
    command = "dsopt model.onnx -data=data.npz -arch=x86-64-v3 -emit=graph -o graph.mlir -dp=2 -zero=2 -micro-batches=2 -steps=3 -lr=0.05",
    device_memory = 0 : i64, dp = 2 : i64, gradient_type = "fp32", init = "model", micro_batch_size = 4 : i64, micro_batches = 2 : i64, momentum = 0 : i64,
    muon_adjust = "original", offload_activations = "none", offload_optimizer = "none", offload_params = "none", offload_ratio = "0", optimizer = "adamw",
    pp = 1 : i64, precision = "fp32", recompute = "none", reduction_shards = 2 : i64, reductions_in_flight = 2 : i64, run_defaults = {lr = "0.05", steps = "3"},
    schedule = "1f1b", threads = 1 : i64, tile_products = 0 : i64, zero = 2 : i64}, graph.model = "model.onnx", graph.model_folder = "."} {
  graph.parameter @w0 : tensor<8x16xf32> from "model.onnx" at 225 bytes 512 {chunks = array<i64: 3046571388708457209>, file_bytes = 1798 : i64}
  graph.parameter @w1 : tensor<16x12xf32> from "model.onnx" at 753 bytes 768 {chunks = array<i64: -3040197930165783978>, file_bytes = 1798 : i64}
  graph.parameter @w2 : tensor<12x4xf32> from "model.onnx" at 1537 bytes 192 {chunks = array<i64: 3325230596596624969>, file_bytes = 1798 : i64}
  func.func @forward(%arg0: tensor<4x8xf32> {graph.name = "x"}, %arg1: tensor<4x4xf32> {graph.name = "target"}) -> (tensor<f32> {graph.name = "loss"}) {
    %w0 = graph.read @w0 : tensor<8x16xf32>
    %0 = graph.matmul %arg0, %w0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = graph.tanh %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %w1 = graph.read @w1 : tensor<16x12xf32>
    %2 = graph.matmul %1, %w1 : (tensor<4x16xf32>, tensor<16x12xf32>) -> tensor<4x12xf32>
    %3 = graph.tanh %2 : (tensor<4x12xf32>) -> tensor<4x12xf32>
    %w2 = graph.read @w2 : tensor<12x4xf32>
    %4 = graph.matmul %3, %w2 : (tensor<4x12xf32>, tensor<12x4xf32>) -> tensor<4x4xf32>
    %5 = graph.tanh %4 : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %6 = graph.sub %5, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %7 = graph.mul %6, %6 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %8 = graph.reduce_mean %7 {axes = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
    return %8 : tensor<f32>
  }
}


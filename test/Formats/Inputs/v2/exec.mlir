#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+cmov", "+mmx", "+popcnt", "+sse",
    "+sse4.2", "+avx2", "+fma", "+bmi", "+bmi2", "+cx16", "+f16c", "+sahf", "+lzcnt", "+movbe", "+xsave", "+cx8", "+crc32", "+x87", "+fxsr"]>
module attributes {dsopt.options = {accumulate = "sharded", clip = 0 : i64, command =
    "dsopt model.onnx -data=data.npz -arch=x86-64-v3 -emit=exec -o exec.mlir -dp=2 -zero=2 -micro-batches=2 -steps=3 -lr=0.05", dp = 2 : i64,
    gather_window = 1 : i64, micro_batch_size = 4 : i64, micro_batches = 2 : i64, momentum = 0 : i64, pp = 1 : i64, prefetch = 1 : i64,
    reduction_shards = 2 : i64, run_defaults = {lr = "0.05", steps = "3"}, tile_products = 0 : i64, zero = 2 : i64}, dsopt.target = #target,
    exec.built_with = {accumulate = "sharded", clip = 0 : i64, dp = 2 : i64, gather_window = 1 : i64, micro_batch_size = 4 : i64, micro_batches = 2 : i64,
    momentum = 0 : i64, pp = 1 : i64, reduction_shards = 2 : i64, target = #target, zero = 2 : i64}, exec.inputs = [{ignore_index = -100 : i64, label = false,
    name = "x", type = tensor<4x8xf32>}, {ignore_index = -100 : i64, label = false, name = "target", type = tensor<4x4xf32>}], graph.blocks = 3 : i64,
    graph.model = "model.onnx", graph.model_folder = "."} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  graph.parameter @w0 : tensor<8x16xf32> from "model.onnx" at 225 bytes 512 {chunks = array<i64: 3046571388708457209>, file_bytes = 1798 : i64}
  graph.parameter @w1 : tensor<16x12xf32> from "model.onnx" at 753 bytes 768 {chunks = array<i64: -3040197930165783978>, file_bytes = 1798 : i64}
  graph.parameter @w2 : tensor<12x4xf32> from "model.onnx" at 1537 bytes 192 {chunks = array<i64: 3325230596596624969>, file_bytes = 1798 : i64}
  graph.state @w0.grad.0 : tensor<8x16xf32> gradient of @w0 block 0
  graph.state @w1.grad.1 : tensor<16x12xf32> gradient of @w1 block 1
  graph.state @w2.grad.2 : tensor<12x4xf32> gradient of @w2 block 2
  graph.state @w0.m : tensor<8x16xf32> optimizer "m" of @w0
  graph.state @w0.v : tensor<8x16xf32> optimizer "v" of @w0
  graph.state @w1.m : tensor<16x12xf32> optimizer "m" of @w1
  graph.state @w1.v : tensor<16x12xf32> optimizer "v" of @w1
  graph.state @w2.m : tensor<12x4xf32> optimizer "m" of @w2
  graph.state @w2.v : tensor<12x4xf32> optimizer "v" of @w2
  dist.bucket @b0 : f32 of [0] [#dist.range<@w0, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 2 states [#dist.state<"m" : f32>,
      #dist.state<"v" : f32>]
  dist.bucket @b1 : f32 of [1] [#dist.range<@w1, 0, 192>] elements 192 padded 256 over [edp, ep, sp] zero 2 states [#dist.state<"m" : f32>,
      #dist.state<"v" : f32>]
  dist.bucket @b2 : f32 of [2] [#dist.range<@w2, 0, 48>] elements 64 padded 128 over [edp, ep, sp] zero 2 states [#dist.state<"m" : f32>,
      #dist.state<"v" : f32>]
  func.func private @block0.F(%arg0: memref<4x8xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x16xf32> {exec.access = #exec.access<write>},
      %arg2: memref<8x16xf32> {exec.access = #exec.access<read>, exec.parameter = @w0}) attributes {dist.stage = 0 : i64, exec.flops = 1088 : i64, exec.segment,
      exec.temp_bytes = 256 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %0 = exec.temp at 0 : memref<4x16xf32>
    exec.gemm %arg0, %arg2 -> %0 {exec.flops = 1024 : i64} : memref<4x8xf32>, memref<8x16xf32> -> memref<4x16xf32>
    exec.launch @kernels::@kernel0 range 1 grain 1(%0) -> (%arg1) {exec.flops = 64 : i64} : memref<4x16xf32> -> memref<4x16xf32>
    return
  }
  func.func private @block1.F(%arg0: memref<4x16xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x12xf32> {exec.access = #exec.access<write>},
      %arg2: memref<16x12xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {dist.stage = 0 : i64, exec.flops = 1584 : i64,
      exec.segment, exec.temp_bytes = 192 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
    %0 = exec.temp at 0 : memref<4x12xf32>
    exec.gemm %arg0, %arg2 -> %0 {exec.flops = 1536 : i64} : memref<4x16xf32>, memref<16x12xf32> -> memref<4x12xf32>
    exec.launch @kernels::@kernel1 range 1 grain 1(%0) -> (%arg1) {exec.flops = 48 : i64} : memref<4x12xf32> -> memref<4x12xf32>
    return
  }
  func.func private @block2.F(%arg0: memref<4x12xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x4xf32> {exec.access = #exec.access<read>},
      %arg2: memref<4x4xf32> {exec.access = #exec.access<write>}, %arg3: memref<4x4xf32> {exec.access = #exec.access<write>},
      %arg4: memref<f32> {exec.access = #exec.access<write>}, %arg5: memref<12x4xf32> {exec.access = #exec.access<read>,
      exec.parameter = @w2}) attributes {dist.stage = 0 : i64, exec.flops = 449 : i64, exec.segment, exec.temp_bytes = 64 : i64, graph.block = 2 : i64,
      graph.phase = #graph.phase<F>} {
    %0 = exec.temp at 0 : memref<4x4xf32>
    exec.gemm %arg0, %arg5 -> %0 {exec.flops = 384 : i64} : memref<4x12xf32>, memref<12x4xf32> -> memref<4x4xf32>
    exec.launch @kernels::@kernel2 range 1 grain 1(%0, %arg1) -> (%arg2, %arg3, %arg4) {exec.flops = 65 : i64} : memref<4x4xf32>,
        memref<4x4xf32> -> memref<4x4xf32>, memref<4x4xf32>, memref<f32>
    return
  }
  func.func private @block2.B(%arg0: memref<f32> {exec.access = #exec.access<read>}, %arg1: memref<4x4xf32> {exec.access = #exec.access<read>},
      %arg2: memref<4x4xf32> {exec.access = #exec.access<read>}, %arg3: memref<4x4xf32> {exec.access = #exec.access<write>},
      %arg4: memref<4x12xf32> {exec.access = #exec.access<write>}, %arg5: memref<12x4xf32> {exec.access = #exec.access<read>,
      exec.parameter = @w2}) attributes {dist.stage = 0 : i64, exec.flops = 465 : i64, exec.segment, exec.temp_bytes = 64 : i64, graph.block = 2 : i64,
      graph.phase = #graph.phase<B>} {
    %0 = exec.temp at 0 : memref<f32>
    exec.launch @kernels::@kernel3 range 1 grain 1(%arg0) -> (%0) {exec.flops = 1 : i64} : memref<f32> -> memref<f32>
    %1 = exec.view %0 : memref<f32> to memref<1x1xf32>
    exec.launch @kernels::@kernel4 range 1 grain 1(%1, %arg1, %arg2) -> (%arg3) {exec.flops = 80 : i64} : memref<1x1xf32>, memref<4x4xf32>,
        memref<4x4xf32> -> memref<4x4xf32>
    exec.gemm %arg3, %arg5 -> %arg4 {exec.flops = 384 : i64, transpose_b} : memref<4x4xf32>, memref<12x4xf32> -> memref<4x12xf32>
    return
  }
  func.func private @block2.W(%arg0: memref<4x12xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x4xf32> {exec.access = #exec.access<read>},
      %arg2: memref<12x4xf32> {exec.access = #exec.access<update>, exec.gradient = @w2.grad.2}) attributes {dist.stage = 0 : i64, exec.flops = 432 : i64,
      exec.segment, exec.temp_bytes = 0 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<W>} {
    exec.gemm %arg0, %arg1 -> %arg2 {exec.flops = 432 : i64, into_gradient, transpose_a} : memref<4x12xf32>, memref<4x4xf32> -> memref<12x4xf32>
    return
  }
  func.func private @block1.B(%arg0: memref<4x12xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x12xf32> {exec.access = #exec.access<read>},
      %arg2: memref<4x12xf32> {exec.access = #exec.access<write>}, %arg3: memref<4x16xf32> {exec.access = #exec.access<write>},
      %arg4: memref<16x12xf32> {exec.access = #exec.access<read>, exec.parameter = @w1}) attributes {dist.stage = 0 : i64, exec.flops = 1680 : i64,
      exec.segment, exec.temp_bytes = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>} {
    exec.launch @kernels::@kernel5 range 1 grain 1(%arg0, %arg1) -> (%arg2) {exec.flops = 144 : i64} : memref<4x12xf32>, memref<4x12xf32> -> memref<4x12xf32>
    exec.gemm %arg2, %arg4 -> %arg3 {exec.flops = 1536 : i64, transpose_b} : memref<4x12xf32>, memref<16x12xf32> -> memref<4x16xf32>
    return
  }
  func.func private @block1.W(%arg0: memref<4x16xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x12xf32> {exec.access = #exec.access<read>},
      %arg2: memref<16x12xf32> {exec.access = #exec.access<update>, exec.gradient = @w1.grad.1}) attributes {dist.stage = 0 : i64, exec.flops = 1728 : i64,
      exec.segment, exec.temp_bytes = 0 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<W>} {
    exec.gemm %arg0, %arg1 -> %arg2 {exec.flops = 1728 : i64, into_gradient, transpose_a} : memref<4x16xf32>, memref<4x12xf32> -> memref<16x12xf32>
    return
  }
  func.func private @block0.W(%arg0: memref<4x16xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x16xf32> {exec.access = #exec.access<read>},
      %arg2: memref<4x8xf32> {exec.access = #exec.access<read>}, %arg3: memref<8x16xf32> {exec.access = #exec.access<update>,
      exec.gradient = @w0.grad.0}) attributes {dist.stage = 0 : i64, exec.flops = 1344 : i64, exec.segment, exec.temp_bytes = 256 : i64, graph.block = 0 : i64,
      graph.phase = #graph.phase<W>} {
    %0 = exec.temp at 0 : memref<4x16xf32>
    exec.launch @kernels::@kernel6 range 1 grain 1(%arg0, %arg1) -> (%0) {exec.flops = 192 : i64} : memref<4x16xf32>, memref<4x16xf32> -> memref<4x16xf32>
    exec.gemm %arg2, %0 -> %arg3 {exec.flops = 1152 : i64, into_gradient, transpose_a} : memref<4x8xf32>, memref<4x16xf32> -> memref<8x16xf32>
    return
  }
  func.func private @block2.E(%arg0: memref<4x12xf32> {exec.access = #exec.access<read>}, %arg1: memref<4x4xf32> {exec.access = #exec.access<read>},
      %arg2: memref<f32> {exec.access = #exec.access<write>}, %arg3: memref<12x4xf32> {exec.access = #exec.access<read>,
      exec.parameter = @w2}) attributes {dist.stage = 0 : i64, exec.flops = 449 : i64, exec.segment, exec.temp_bytes = 64 : i64, graph.block = 2 : i64,
      graph.phase = #graph.phase<E>} {
    %0 = exec.temp at 0 : memref<4x4xf32>
    exec.gemm %arg0, %arg3 -> %0 {exec.flops = 384 : i64} : memref<4x12xf32>, memref<12x4xf32> -> memref<4x4xf32>
    exec.launch @kernels::@kernel7 range 1 grain 1(%0, %arg1) -> (%arg2) {exec.flops = 65 : i64} : memref<4x4xf32>, memref<4x4xf32> -> memref<f32>
    return
  }
  module @kernels attributes {dsopt.target = #target} {
    func.func nested @kernel0(%arg0: tensor<4x16xf32>) -> tensor<4x16xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
      %0 = graph.tanh %arg0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
      return %0 : tensor<4x16xf32>
    }
    func.func nested @kernel1(%arg0: tensor<4x12xf32>) -> tensor<4x12xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
      %0 = graph.tanh %arg0 : (tensor<4x12xf32>) -> tensor<4x12xf32>
      return %0 : tensor<4x12xf32>
    }
    func.func nested @kernel2(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>,
        tensor<f32>) attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
      %0 = graph.tanh %arg0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = graph.sub %0, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %2 = graph.mul %1, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %3 = graph.reduce_sum %2 {axes = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
      %4 = graph.constant dense<1.600000e+01> : tensor<f32>
      %5 = graph.div %3, %4 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %0, %1, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
    }
    func.func nested @kernel3(%arg0: tensor<f32>) -> tensor<f32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
      %0 = graph.constant dense<1.600000e+01> : tensor<f32>
      %1 = graph.div %arg0, %0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }
    func.func nested @kernel4(%arg0: tensor<1x1xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {graph.iterate =
        #graph.iteration<rows>, graph.range = array<i64>} {
      %0 = graph.expand %arg0 : (tensor<1x1xf32>) -> tensor<4x4xf32>
      %1 = graph.mul %0, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %2 = graph.add %1, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %3 = graph.mul %arg2, %arg2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %4 = graph.constant dense<1.000000e+00> : tensor<f32>
      %5 = graph.sub %4, %3 : (tensor<f32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %6 = graph.mul %2, %5 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      return %6 : tensor<4x4xf32>
    }
    func.func nested @kernel5(%arg0: tensor<4x12xf32>, %arg1: tensor<4x12xf32>) -> tensor<4x12xf32> attributes {graph.iterate = #graph.iteration<rows>,
        graph.range = array<i64>} {
      %0 = graph.mul %arg0, %arg0 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
      %1 = graph.constant dense<1.000000e+00> : tensor<f32>
      %2 = graph.sub %1, %0 : (tensor<f32>, tensor<4x12xf32>) -> tensor<4x12xf32>
      %3 = graph.mul %arg1, %2 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
      return %3 : tensor<4x12xf32>
    }
    func.func nested @kernel6(%arg0: tensor<4x16xf32>, %arg1: tensor<4x16xf32>) -> tensor<4x16xf32> attributes {graph.iterate = #graph.iteration<rows>,
        graph.range = array<i64>} {
      %0 = graph.mul %arg0, %arg0 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      %1 = graph.constant dense<1.000000e+00> : tensor<f32>
      %2 = graph.sub %1, %0 : (tensor<f32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      %3 = graph.mul %arg1, %2 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      return %3 : tensor<4x16xf32>
    }
    func.func nested @kernel7(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32>) -> tensor<f32> attributes {graph.iterate = #graph.iteration<rows>,
        graph.range = array<i64>} {
      %0 = graph.tanh %arg0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = graph.sub %0, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %2 = graph.mul %1, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %3 = graph.reduce_sum %2 {axes = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
      %4 = graph.constant dense<1.600000e+01> : tensor<f32>
      %5 = graph.div %3, %4 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %5 : tensor<f32>
    }
    func.func nested @update.adamw(%arg0: tensor<64xf32>, %arg1: tensor<64xf32>, %arg2: tensor<64xf32>, %arg3: tensor<64xf32>,
        %arg4: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.in_place = array<i64: 0, 2, 3>,
        graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
      %new_parameter, %new_m, %new_v = graph.adam %arg0, %arg1, %arg2, %arg3, %arg4 {decoupled} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>,
          tensor<64xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
      return %new_parameter, %new_m, %new_v : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    }
  }
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @pp over [pp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  exec.stream @compute compute
  exec.stream @comm communication
  exec.program @position0 position 0 blocks [0, 3] attributes {traffic = {all_gather = 736 : i64, padding = 864 : i64, reduce_scatter = 1472 : i64,
      send_recv = 0 : i64, tied = 0 : i64}} {
    exec.memory @device device bytes 9664 bound 8256 {live = {activations = 840 : i64, buffers = 1860 : i64, gradients = 736 : i64, optimizer = 1472 : i64,
        padding = 3284 : i64, parameters = 1472 : i64, reduction = 0 : i64, tied = 0 : i64, total = 9664 : i64}}
    exec.buffer @seed at 0 : memref<f32> buffers slots 1 stride 64 persistent seed
    exec.buffer @b0.param at 64 : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b0.grad.0 at 7808 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 0
    exec.buffer @b1.param at 576 : memref<256xf32> parameters slots 1 stride 1024 persistent stored of @b1 {payload = 768 : i64}
    exec.buffer @b1.grad.0 at 6272 : memref<128xf32> gradients slots 1 stride 512 accumulator of @b1 use 0 {payload = 384 : i64}
    exec.buffer @b2.param at 1600 : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b2 {payload = 192 : i64}
    exec.buffer @b2.grad.0 at 7552 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b2 use 0 {payload = 96 : i64}
    exec.buffer @staging at 2112 : memref<1024xi8> buffers slots 1 stride 1024 persistent staging
    exec.buffer @input.x at 8064 : memref<4x8xf32> activations slots 1 stride 128
    exec.buffer @temp.256 at 8320 : memref<256xi8> buffers slots 1 stride 256
    exec.buffer @block0.F.0 at 7296 : memref<4x16xf32> activations slots 1 stride 256
    exec.buffer @temp.192 at 8512 : memref<192xi8> buffers slots 1 stride 192
    exec.buffer @block1.F.0 at 8320 : memref<4x12xf32> activations slots 1 stride 192
    exec.buffer @input.target at 8512 : memref<4x4xf32> activations slots 1 stride 64
    exec.buffer @temp.64 at 8704 : memref<64xi8> buffers slots 1 stride 64
    exec.buffer @block2.F.0 at 8768 : memref<4x4xf32> activations slots 1 stride 64
    exec.buffer @block2.F.1 at 8832 : memref<4x4xf32> activations slots 1 stride 64
    exec.buffer @loss at 8192 : memref<f32> activations slots 2 stride 64
    exec.buffer @block2.B.0 at 8896 : memref<4x4xf32> activations slots 1 stride 64
    exec.buffer @block2.B.1 at 8512 : memref<4x12xf32> activations slots 1 stride 192
    exec.buffer @b2.whole.0.0 at 8960 : memref<128xf32> buffers slots 1 stride 512 of @b2 {payload = 192 : i64}
    exec.buffer @block1.B.0 at 9472 : memref<4x12xf32> activations slots 1 stride 192
    exec.buffer @block1.B.1 at 8704 : memref<4x16xf32> activations slots 1 stride 256
    exec.buffer @b1.whole.0.0 at 5248 : memref<256xf32> buffers slots 1 stride 1024 of @b1 {payload = 768 : i64}
    exec.buffer @b0.whole.0.0 at 6784 : memref<128xf32> buffers slots 1 stride 512 of @b0
    exec.buffer @scalars at 3136 : memref<16xf32> buffers slots 1 stride 64 persistent scalars
    exec.buffer @norms at 8960 : memref<21xi64> buffers slots 3 stride 192
    exec.buffer @b2.m at 3200 : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b2 {payload = 96 : i64}
    exec.buffer @b2.v at 3456 : memref<64xf32> optimizer slots 1 stride 256 persistent state "v" of @b2 {payload = 96 : i64}
    exec.buffer @b1.m at 3712 : memref<128xf32> optimizer slots 1 stride 512 persistent state "m" of @b1 {payload = 384 : i64}
    exec.buffer @b1.v at 4224 : memref<128xf32> optimizer slots 1 stride 512 persistent state "v" of @b1 {payload = 384 : i64}
    exec.buffer @b0.m at 4736 : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
    exec.buffer @b0.v at 4992 : memref<64xf32> optimizer slots 1 stride 256 persistent state "v" of @b0
    exec.schedule {
      %input.x.m0 = exec.input "x" to @input.x micro_batch 0 on @compute
      %block0.F.m0 = exec.run @block0.F [@input.x, @block0.F.0, @b0.param] temp @temp.256 micro_batch 0 on @compute
      %block1.F.m0 = exec.run @block1.F [@block0.F.0, @block1.F.0, @b1.param] temp @temp.192 micro_batch 0 on @compute
      %input.target.m0 = exec.input "target" to @input.target micro_batch 0 on @compute
      %block2.F.m0 = exec.run @block2.F [@block1.F.0, @input.target, @block2.F.0, @block2.F.1, @loss, @b2.param] temp @temp.64 micro_batch 0 on @compute
      %block2.B.m0 = exec.run @block2.B [@seed, @block2.F.1, @block2.F.0, @block2.B.0, @block2.B.1, @b2.param] temp @temp.64 micro_batch 0 on @compute
      %block2.W.m0 = exec.run @block2.W [@block1.F.0, @block2.B.0, @b2.whole.0.0] micro_batch 0 on @compute
      exec.wait %block2.W.m0 on @comm
      %reduce.b2.grad.0 = exec.reduce @b2.whole.0.0 to @b2.grad.0 elements 64 : f32 order 0 over @dp on @comm
      %block1.B.m0 = exec.run @block1.B [@block1.F.0, @block2.B.1, @block1.B.0, @block1.B.1, @b1.param] micro_batch 0 on @compute
      %block1.W.m0 = exec.run @block1.W [@block0.F.0, @block1.B.0, @b1.whole.0.0] micro_batch 0 on @compute
      exec.wait %block1.W.m0 on @comm
      %reduce.b1.grad.0 = exec.reduce @b1.whole.0.0 to @b1.grad.0 elements 128 : f32 order 1 over @dp on @comm
      exec.wait %reduce.b2.grad.0 on @compute
      %block0.W.m0 = exec.run @block0.W [@block0.F.0, @block1.B.1, @input.x, @b0.whole.0.0] temp @temp.256 micro_batch 0 on @compute
      exec.wait %block0.W.m0 on @comm
      %reduce.b0.grad.0 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 2 over @dp on @comm
      %input.x.m1 = exec.input "x" to @input.x micro_batch 1 on @compute
      %block0.F.m1 = exec.run @block0.F [@input.x, @block0.F.0, @b0.param] temp @temp.256 micro_batch 1 on @compute
      %block1.F.m1 = exec.run @block1.F [@block0.F.0, @block1.F.0, @b1.param] temp @temp.192 micro_batch 1 on @compute
      %input.target.m1 = exec.input "target" to @input.target micro_batch 1 on @compute
      %block2.F.m1 = exec.run @block2.F [@block1.F.0, @input.target, @block2.F.0, @block2.F.1, @loss[1], @b2.param] temp @temp.64 micro_batch 1 on @compute
      %block2.B.m1 = exec.run @block2.B [@seed, @block2.F.1, @block2.F.0, @block2.B.0, @block2.B.1, @b2.param] temp @temp.64 micro_batch 1 on @compute
      exec.wait %reduce.b1.grad.0 on @compute
      %block2.W.m1 = exec.run @block2.W [@block1.F.0, @block2.B.0, @b2.whole.0.0] micro_batch 1 on @compute
      exec.wait %block2.W.m1 on @comm
      %reduce.b2.grad.0_0 = exec.reduce @b2.whole.0.0 to @b2.grad.0 elements 64 : f32 accumulate order 3 over @dp on @comm
      %block1.B.m1 = exec.run @block1.B [@block1.F.0, @block2.B.1, @block1.B.0, @block1.B.1, @b1.param] micro_batch 1 on @compute
      exec.wait %reduce.b0.grad.0 on @compute
      %block1.W.m1 = exec.run @block1.W [@block0.F.0, @block1.B.0, @b1.whole.0.0] micro_batch 1 on @compute
      exec.wait %block1.W.m1 on @comm
      %reduce.b1.grad.0_1 = exec.reduce @b1.whole.0.0 to @b1.grad.0 elements 128 : f32 accumulate order 4 over @dp on @comm
      exec.wait %reduce.b2.grad.0_0 on @compute
      %norm.b2 = exec.norm @b2.grad.0 of @b2 to @norms on @compute
      %update.b2 = exec.update @kernels::@update.adamw of @b2 [@b2.param+256*edp, @b2.grad.0, @b2.m, @b2.v] elements 64 sliced on @compute
      exec.wait %update.b2 on @comm
      %gather.b2.param = exec.gather @b2.param+256*edp to @b2.param bytes 256 all_gather order 5 over @dp on @comm
      %block0.W.m1 = exec.run @block0.W [@block0.F.0, @block1.B.1, @input.x, @b0.whole.0.0] temp @temp.256 micro_batch 1 on @compute
      exec.wait %block0.W.m1 on @comm
      %reduce.b0.grad.0_2 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 accumulate order 6 over @dp on @comm
      exec.wait %reduce.b1.grad.0_1 on @compute
      %norm.b1 = exec.norm @b1.grad.0 of @b1 to @norms[1] on @compute
      %update.b1 = exec.update @kernels::@update.adamw of @b1 [@b1.param+512*edp, @b1.grad.0, @b1.m, @b1.v] elements 128 sliced on @compute
      exec.wait %update.b1 on @comm
      %gather.b1.param = exec.gather @b1.param+512*edp to @b1.param bytes 512 all_gather order 7 over @dp on @comm
      exec.wait %reduce.b0.grad.0_2 on @compute
      %norm.b0 = exec.norm @b0.grad.0 of @b0 to @norms[2] on @compute
      %update.b0 = exec.update @kernels::@update.adamw of @b0 [@b0.param+256*edp, @b0.grad.0, @b0.m, @b0.v] elements 64 sliced on @compute
      exec.wait %update.b0 on @comm
      %gather.b0.param = exec.gather @b0.param+256*edp to @b0.param bytes 256 all_gather order 8 over @dp on @comm
      %agree = exec.agree norms [@norms, @norms[1], @norms[2]] losses [@loss, @loss[1]] order 9 over @world on @comm
    }
  }
  exec.program @evaluate0 evaluation position 0 blocks [0, 3] attributes {traffic = {all_gather = 0 : i64, padding = 0 : i64, reduce_scatter = 0 : i64,
      send_recv = 0 : i64, tied = 0 : i64}} {
    exec.memory @device device bytes 9664 bound 3776 {live = {activations = 388 : i64, buffers = 1280 : i64, gradients = 0 : i64, optimizer = 0 : i64,
        padding = 6524 : i64, parameters = 1472 : i64, reduction = 0 : i64, tied = 0 : i64, total = 9664 : i64}}
    exec.buffer @b0.param at 64 : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b1.param at 576 : memref<256xf32> parameters slots 1 stride 1024 persistent stored of @b1 {payload = 768 : i64}
    exec.buffer @b2.param at 1600 : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b2 {payload = 192 : i64}
    exec.buffer @staging at 2112 : memref<1024xi8> buffers slots 1 stride 1024 persistent staging
    exec.buffer @input.x at 5760 : memref<4x8xf32> activations slots 1 stride 128
    exec.buffer @temp.256 at 5504 : memref<256xi8> buffers slots 1 stride 256
    exec.buffer @block0.E.0 at 5248 : memref<4x16xf32> activations slots 1 stride 256
    exec.buffer @temp.192 at 5696 : memref<192xi8> buffers slots 1 stride 192
    exec.buffer @block1.E.0 at 5504 : memref<4x12xf32> activations slots 1 stride 192
    exec.buffer @input.target at 5248 : memref<4x4xf32> activations slots 1 stride 64
    exec.buffer @temp.64 at 5312 : memref<64xi8> buffers slots 1 stride 64
    exec.buffer @loss at 5888 : memref<f32> activations slots 2 stride 64
    exec.schedule {
      %input.x.m0 = exec.input "x" to @input.x micro_batch 0 on @compute
      %block0.E.m0 = exec.run @block0.F for <0 E> [@input.x, @block0.E.0, @b0.param] temp @temp.256 micro_batch 0 on @compute
      %block1.E.m0 = exec.run @block1.F for <1 E> [@block0.E.0, @block1.E.0, @b1.param] temp @temp.192 micro_batch 0 on @compute
      %input.target.m0 = exec.input "target" to @input.target micro_batch 0 on @compute
      %block2.E.m0 = exec.run @block2.E [@block1.E.0, @input.target, @loss, @b2.param] temp @temp.64 micro_batch 0 on @compute
      %input.x.m1 = exec.input "x" to @input.x micro_batch 1 on @compute
      %block0.E.m1 = exec.run @block0.F for <0 E> [@input.x, @block0.E.0, @b0.param] temp @temp.256 micro_batch 1 on @compute
      %block1.E.m1 = exec.run @block1.F for <1 E> [@block0.E.0, @block1.E.0, @b1.param] temp @temp.192 micro_batch 1 on @compute
      %input.target.m1 = exec.input "target" to @input.target micro_batch 1 on @compute
      %block2.E.m1 = exec.run @block2.E [@block1.E.0, @input.target, @loss[1], @b2.param] temp @temp.64 micro_batch 1 on @compute
      exec.wait %block2.E.m1 on @comm
      %agree = exec.agree norms [] losses [@loss, @loss[1]] order 0 over @world on @comm
    }
  }
}


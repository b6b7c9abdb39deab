#target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 1, vector_bits = 256, features = ["+cmov", "+mmx", "+popcnt", "+sse",
    "+sse4.2", "+avx2", "+fma", "+bmi", "+bmi2", "+cx16", "+f16c", "+sahf", "+lzcnt", "+movbe", "+xsave", "+cx8", "+crc32", "+x87", "+fxsr"]>
module attributes {dsopt.options = {accumulate = "sharded", clip = 0 : i64, command =
    "dsopt model.onnx -data=data.npz -arch=x86-64-v3 -emit=dist -o dist.mlir -dp=2 -zero=2 -micro-batches=2 -steps=3 -lr=0.05", dp = 2 : i64,
    micro_batch_size = 4 : i64, micro_batches = 2 : i64, momentum = 0 : i64, pp = 1 : i64, reduction_shards = 2 : i64, run_defaults = {lr = "0.05",
    steps = "3"}, tile_products = 0 : i64, zero = 2 : i64}, dsopt.target = #target, graph.blocks = 3 : i64, graph.model = "model.onnx",
    graph.model_folder = "."} {
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
  func.func private @block0.F(%arg0: tensor<4x8xf32>) -> tensor<4x16xf32> attributes {dist.stage = 0 : i64, graph.block = 0 : i64,
      graph.phase = #graph.phase<F>} {
    %w0 = graph.read @w0 : tensor<8x16xf32>
    %0 = graph.matmul %arg0, %w0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %kernel0 = graph.kernel @kernel0(%0) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %kernel0 : tensor<4x16xf32>
  }
  func.func private @block1.F(%arg0: tensor<4x16xf32>) -> tensor<4x12xf32> attributes {dist.stage = 0 : i64, graph.block = 1 : i64,
      graph.phase = #graph.phase<F>} {
    %w1 = graph.read @w1 : tensor<16x12xf32>
    %0 = graph.matmul %arg0, %w1 : (tensor<4x16xf32>, tensor<16x12xf32>) -> tensor<4x12xf32>
    %kernel1 = graph.kernel @kernel1(%0) : (tensor<4x12xf32>) -> tensor<4x12xf32>
    return %kernel1 : tensor<4x12xf32>
  }
  func.func private @block2.F(%arg0: tensor<4x12xf32>, %arg1: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>,
      tensor<f32>) attributes {dist.stage = 0 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<F>} {
    %w2 = graph.read @w2 : tensor<12x4xf32>
    %0 = graph.matmul %arg0, %w2 : (tensor<4x12xf32>, tensor<12x4xf32>) -> tensor<4x4xf32>
    %kernel2:3 = graph.kernel @kernel2(%0, %arg1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>)
    return %kernel2#0, %kernel2#1, %kernel2#2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
  }
  func.func private @block2.B(%arg0: tensor<f32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf32>) -> (tensor<4x4xf32>,
      tensor<4x12xf32>) attributes {dist.stage = 0 : i64, graph.block = 2 : i64, graph.phase = #graph.phase<B>} {
    %kernel3 = graph.kernel @kernel3(%arg0) : (tensor<f32>) -> tensor<f32>
    %0 = graph.reshape %kernel3 : (tensor<f32>) -> tensor<1x1xf32>
    %kernel4 = graph.kernel @kernel4(%0, %arg1, %arg2) : (tensor<1x1xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %w2 = graph.read @w2 : tensor<12x4xf32>
    %1 = graph.matmul %kernel4, %w2 {transpose_b} : (tensor<4x4xf32>, tensor<12x4xf32>) -> tensor<4x12xf32>
    return %kernel4, %1 : tensor<4x4xf32>, tensor<4x12xf32>
  }
  func.func private @block2.W(%arg0: tensor<4x12xf32>, %arg1: tensor<4x4xf32>) attributes {dist.stage = 0 : i64, graph.block = 2 : i64,
      graph.phase = #graph.phase<W>} {
    %0 = graph.matmul %arg0, %arg1 {transpose_a} : (tensor<4x12xf32>, tensor<4x4xf32>) -> tensor<12x4xf32>
    graph.accumulate @w2.grad.2, %0 : tensor<12x4xf32>
    return
  }
  func.func private @block1.B(%arg0: tensor<4x12xf32>, %arg1: tensor<4x12xf32>) -> (tensor<4x12xf32>, tensor<4x16xf32>) attributes {dist.stage = 0 : i64,
      graph.block = 1 : i64, graph.phase = #graph.phase<B>} {
    %kernel5 = graph.kernel @kernel5(%arg0, %arg1) : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
    %w1 = graph.read @w1 : tensor<16x12xf32>
    %0 = graph.matmul %kernel5, %w1 {transpose_b} : (tensor<4x12xf32>, tensor<16x12xf32>) -> tensor<4x16xf32>
    return %kernel5, %0 : tensor<4x12xf32>, tensor<4x16xf32>
  }
  func.func private @block1.W(%arg0: tensor<4x16xf32>, %arg1: tensor<4x12xf32>) attributes {dist.stage = 0 : i64, graph.block = 1 : i64,
      graph.phase = #graph.phase<W>} {
    %0 = graph.matmul %arg0, %arg1 {transpose_a} : (tensor<4x16xf32>, tensor<4x12xf32>) -> tensor<16x12xf32>
    graph.accumulate @w1.grad.1, %0 : tensor<16x12xf32>
    return
  }
  func.func private @block0.W(%arg0: tensor<4x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<4x8xf32>) attributes {dist.stage = 0 : i64, graph.block = 0 : i64,
      graph.phase = #graph.phase<W>} {
    %kernel6 = graph.kernel @kernel6(%arg0, %arg1) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %0 = graph.matmul %arg2, %kernel6 {transpose_a} : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    graph.accumulate @w0.grad.0, %0 : tensor<8x16xf32>
    return
  }
  func.func @micro_batch(%arg0: tensor<4x8xf32> {graph.name = "x"}, %arg1: tensor<4x4xf32> {graph.name = "target"}, %arg2: tensor<f32> {graph.name = "seed",
      graph.seed}) -> (tensor<f32> {graph.name = "loss"}) {
    %block0.F = graph.run @block0.F(%arg0) : (tensor<4x8xf32>) -> tensor<4x16xf32>
    %block1.F = graph.run @block1.F(%block0.F) : (tensor<4x16xf32>) -> tensor<4x12xf32>
    %block2.F:3 = graph.run @block2.F(%block1.F, %arg1) : (tensor<4x12xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>)
    %block2.B:2 = graph.run @block2.B(%arg2, %block2.F#1, %block2.F#0) : (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x12xf32>)
    graph.run @block2.W(%block1.F, %block2.B#0) : (tensor<4x12xf32>, tensor<4x4xf32>) -> ()
    dist.reduce @b2 use 0 of [@w2.grad.2] over [edp, ep, sp] as f32
    %block1.B:2 = graph.run @block1.B(%block1.F, %block2.B#1) : (tensor<4x12xf32>, tensor<4x12xf32>) -> (tensor<4x12xf32>, tensor<4x16xf32>)
    graph.run @block1.W(%block0.F, %block1.B#0) : (tensor<4x16xf32>, tensor<4x12xf32>) -> ()
    dist.reduce @b1 use 0 of [@w1.grad.1] over [edp, ep, sp] as f32
    graph.run @block0.W(%block0.F, %block1.B#1, %arg0) : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x8xf32>) -> ()
    dist.reduce @b0 use 0 of [@w0.grad.0] over [edp, ep, sp] as f32
    return %block2.F#2 : tensor<f32>
  }
  func.func private @block0.E(%arg0: tensor<4x8xf32>) -> tensor<4x16xf32> attributes {dist.stage = 0 : i64, graph.block = 0 : i64,
      graph.phase = #graph.phase<E>} {
    %w0 = graph.read @w0 : tensor<8x16xf32>
    %0 = graph.matmul %arg0, %w0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %kernel0 = graph.kernel @kernel0(%0) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %kernel0 : tensor<4x16xf32>
  }
  func.func private @block1.E(%arg0: tensor<4x16xf32>) -> tensor<4x12xf32> attributes {dist.stage = 0 : i64, graph.block = 1 : i64,
      graph.phase = #graph.phase<E>} {
    %w1 = graph.read @w1 : tensor<16x12xf32>
    %0 = graph.matmul %arg0, %w1 : (tensor<4x16xf32>, tensor<16x12xf32>) -> tensor<4x12xf32>
    %kernel1 = graph.kernel @kernel1(%0) : (tensor<4x12xf32>) -> tensor<4x12xf32>
    return %kernel1 : tensor<4x12xf32>
  }
  func.func private @block2.E(%arg0: tensor<4x12xf32>, %arg1: tensor<4x4xf32>) -> tensor<f32> attributes {dist.stage = 0 : i64, graph.block = 2 : i64,
      graph.phase = #graph.phase<E>} {
    %w2 = graph.read @w2 : tensor<12x4xf32>
    %0 = graph.matmul %arg0, %w2 : (tensor<4x12xf32>, tensor<12x4xf32>) -> tensor<4x4xf32>
    %kernel7 = graph.kernel @kernel7(%0, %arg1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<f32>
    return %kernel7 : tensor<f32>
  }
  func.func @evaluate(%arg0: tensor<4x8xf32> {graph.name = "x"}, %arg1: tensor<4x4xf32> {graph.name = "target"}) -> (tensor<f32> {graph.name = "loss"}) {
    %block0.E = graph.run @block0.E(%arg0) : (tensor<4x8xf32>) -> tensor<4x16xf32>
    %block1.E = graph.run @block1.E(%block0.E) : (tensor<4x16xf32>) -> tensor<4x12xf32>
    %block2.E = graph.run @block2.E(%block1.E, %arg1) : (tensor<4x12xf32>, tensor<4x4xf32>) -> tensor<f32>
    return %block2.E : tensor<f32>
  }
  func.func @update(%arg0: tensor<16xf32>) {
    %w0 = graph.read @w0 : tensor<8x16xf32>
    %w0.grad.0 = graph.read @w0.grad.0 : tensor<8x16xf32>
    %w0.m = graph.read @w0.m : tensor<8x16xf32>
    %w0.v = graph.read @w0.v : tensor<8x16xf32>
    %new_parameter, %new_m, %new_v = graph.adam %w0, %w0.grad.0, %w0.m, %w0.v, %arg0 {decoupled,
        functions = #graph.functions<kernel = @update.adamw>} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>,
        tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
    graph.write @w0, %new_parameter : tensor<8x16xf32>
    graph.write @w0.m, %new_m : tensor<8x16xf32>
    graph.write @w0.v, %new_v : tensor<8x16xf32>
    %w1 = graph.read @w1 : tensor<16x12xf32>
    %w1.grad.1 = graph.read @w1.grad.1 : tensor<16x12xf32>
    %w1.m = graph.read @w1.m : tensor<16x12xf32>
    %w1.v = graph.read @w1.v : tensor<16x12xf32>
    %new_parameter_0, %new_m_1, %new_v_2 = graph.adam %w1, %w1.grad.1, %w1.m, %w1.v, %arg0 {decoupled,
        functions = #graph.functions<kernel = @update.adamw>} : (tensor<16x12xf32>, tensor<16x12xf32>, tensor<16x12xf32>, tensor<16x12xf32>,
        tensor<16xf32>) -> (tensor<16x12xf32>, tensor<16x12xf32>, tensor<16x12xf32>)
    graph.write @w1, %new_parameter_0 : tensor<16x12xf32>
    graph.write @w1.m, %new_m_1 : tensor<16x12xf32>
    graph.write @w1.v, %new_v_2 : tensor<16x12xf32>
    %w2 = graph.read @w2 : tensor<12x4xf32>
    %w2.grad.2 = graph.read @w2.grad.2 : tensor<12x4xf32>
    %w2.m = graph.read @w2.m : tensor<12x4xf32>
    %w2.v = graph.read @w2.v : tensor<12x4xf32>
    %new_parameter_3, %new_m_4, %new_v_5 = graph.adam %w2, %w2.grad.2, %w2.m, %w2.v, %arg0 {decoupled,
        functions = #graph.functions<kernel = @update.adamw>} : (tensor<12x4xf32>, tensor<12x4xf32>, tensor<12x4xf32>, tensor<12x4xf32>,
        tensor<16xf32>) -> (tensor<12x4xf32>, tensor<12x4xf32>, tensor<12x4xf32>)
    graph.write @w2, %new_parameter_3 : tensor<12x4xf32>
    graph.write @w2.m, %new_m_4 : tensor<12x4xf32>
    graph.write @w2.v, %new_v_5 : tensor<12x4xf32>
    return
  }
  func.func private @kernel0(%arg0: tensor<4x16xf32>) -> tensor<4x16xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
    %0 = graph.tanh %arg0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
  func.func private @kernel1(%arg0: tensor<4x12xf32>) -> tensor<4x12xf32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
    %0 = graph.tanh %arg0 : (tensor<4x12xf32>) -> tensor<4x12xf32>
    return %0 : tensor<4x12xf32>
  }
  func.func private @kernel2(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>,
      tensor<f32>) attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
    %0 = graph.tanh %arg0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = graph.sub %0, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = graph.mul %1, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = graph.reduce_sum %2 {axes = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
    %4 = graph.constant dense<1.600000e+01> : tensor<f32>
    %5 = graph.div %3, %4 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %0, %1, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
  }
  func.func private @kernel3(%arg0: tensor<f32>) -> tensor<f32> attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64>} {
    %0 = graph.constant dense<1.600000e+01> : tensor<f32>
    %1 = graph.div %arg0, %0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @kernel4(%arg0: tensor<1x1xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {graph.iterate =
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
  func.func private @kernel5(%arg0: tensor<4x12xf32>, %arg1: tensor<4x12xf32>) -> tensor<4x12xf32> attributes {graph.iterate = #graph.iteration<rows>,
      graph.range = array<i64>} {
    %0 = graph.mul %arg0, %arg0 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
    %1 = graph.constant dense<1.000000e+00> : tensor<f32>
    %2 = graph.sub %1, %0 : (tensor<f32>, tensor<4x12xf32>) -> tensor<4x12xf32>
    %3 = graph.mul %arg1, %2 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
    return %3 : tensor<4x12xf32>
  }
  func.func private @kernel6(%arg0: tensor<4x16xf32>, %arg1: tensor<4x16xf32>) -> tensor<4x16xf32> attributes {graph.iterate = #graph.iteration<rows>,
      graph.range = array<i64>} {
    %0 = graph.mul %arg0, %arg0 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %1 = graph.constant dense<1.000000e+00> : tensor<f32>
    %2 = graph.sub %1, %0 : (tensor<f32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = graph.mul %arg1, %2 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    return %3 : tensor<4x16xf32>
  }
  func.func private @kernel7(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32>) -> tensor<f32> attributes {graph.iterate = #graph.iteration<rows>,
      graph.range = array<i64>} {
    %0 = graph.tanh %arg0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = graph.sub %0, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = graph.mul %1, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = graph.reduce_sum %2 {axes = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
    %4 = graph.constant dense<1.600000e+01> : tensor<f32>
    %5 = graph.div %3, %4 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %5 : tensor<f32>
  }
  func.func private @update.adamw(%arg0: tensor<64xf32>, %arg1: tensor<64xf32>, %arg2: tensor<64xf32>, %arg3: tensor<64xf32>,
      %arg4: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {graph.in_place = array<i64: 0, 2, 3>,
      graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} {
    %new_parameter, %new_m, %new_v = graph.adam %arg0, %arg1, %arg2, %arg3, %arg4 {decoupled} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>,
        tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
    return %new_parameter, %new_m, %new_v : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
}


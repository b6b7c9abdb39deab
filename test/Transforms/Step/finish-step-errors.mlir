// RUN: dsopt-opt %s -split-input-file -verify-diagnostics -finish-step

// expected-error @below {{has no schedule that ends in one agreement}}
exec.program @position0 position 0 blocks [0, 1] {
  exec.schedule {
  }
}

// -----

graph.parameter @w : tensor<128xf32> from "m" at 0 bytes 512
// expected-error @below {{holds @w, which no operation of @update with a kernel reads}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 128>] elements 128 padded 128 over [edp, ep, sp] zero 0
exec.stream @comm communication
exec.program @position0 position 0 blocks [0, 1] {
  exec.schedule {
    %agree = exec.agree norms [] losses [] order 0 over @world on @comm
  }
}

// -----

exec.stream @compute compute
exec.stream @comm communication
exec.program @position0 position 0 blocks [0, 1] {
  exec.memory @device device
  exec.buffer @statistics : memref<4xi8> activations slots 1 stride 64
  exec.buffer @x : memref<1xf32> parameters slots 1 stride 64
  exec.schedule {
    %agree = exec.agree norms [] losses [] order 0 over @world on @comm
    // expected-error @below {{changes @x, expected a bucket's parameters}}
    %fold = exec.fold @statistics bytes 4 into [@x] places [0] elements [1] momenta [0.9] on @compute
  }
}

// -----

graph.parameter @w : tensor<64xf32> from "m" at 0 bytes 256
graph.parameter @v : tensor<64xf32> from "m" at 256 bytes 256
// expected-error @below {{holds parameters that @update.a and @update.b update, expected one kernel}}
dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 64>, #dist.range<@v, 64, 64>] elements 128 padded 128 over [edp, ep, sp] zero 0
exec.stream @comm communication
exec.program @position0 position 0 blocks [0, 1] {
  exec.schedule {
    %agree = exec.agree norms [] losses [] order 0 over @world on @comm
  }
}
func.func @update(%s: tensor<16xf32>) {
  %w = graph.read @w : tensor<64xf32>
  %0 = graph.sgd %w, %w, %s {functions = #graph.functions<kernel = @update.a>} : (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32>
  graph.write @w, %0 : tensor<64xf32>
  %v = graph.read @v : tensor<64xf32>
  %1 = graph.sgd %v, %v, %s {functions = #graph.functions<kernel = @update.b>} : (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) -> tensor<64xf32>
  graph.write @v, %1 : tensor<64xf32>
  return
}

// Every operation is read, verified and printed as it was written.
// RUN: dsopt-opt %s | FileCheck %s
// RUN: dsopt-opt %s -o %t.mlir && dsopt-opt %t.mlir | diff %t.mlir -
// RUN: dsopt-opt %s -mlir-print-op-generic | dsopt-opt | diff %t.mlir -
// RUN: dsopt-opt %s -emit-bytecode | dsopt-opt | diff %t.mlir -

// CHECK: exec.stream @offload copy
exec.stream @offload copy
// CHECK: exec.stream @checkpoints disk
exec.stream @checkpoints disk
// CHECK: exec.communicator @dp over [edp, ep, sp]
exec.stream @compute compute
exec.stream @comm communication
exec.stream @send communication
exec.stream @recv communication
exec.communicator @dp over [edp, ep, sp]

// CHECK: exec.program @planned evaluation position 1 blocks [2, 4] {
exec.program @planned evaluation position 1 blocks [2, 4] {
  // CHECK: exec.memory @device device bytes 128 bound 64{{$}}
  exec.memory @device device bytes 128 bound 64
  // CHECK: exec.buffer @x at 64 : memref<4xf32> activations slots 1 stride 64{{$}}
  exec.buffer @x at 64 : memref<4xf32> activations slots 1 stride 64
  // CHECK: exec.memory @host host bytes 8192 bound 8192 alignment 4096 {live = {activations = 64 : i64}}
  exec.memory @host host bytes 8192 bound 8192 alignment 4096 {live = {activations = 64 : i64}}
  // CHECK: exec.memory @spool disk{{$}}
  exec.memory @spool disk
  // CHECK: exec.buffer @y in @host at 4096 : memref<4xf32> activations slots 1 stride 64
  exec.buffer @y in @host at 4096 : memref<4xf32> activations slots 1 stride 64
}

// CHECK: exec.program @step position 0 blocks [0, 2] {
exec.program @step position 0 blocks [0, 2] {
  exec.memory @device device
  // CHECK: exec.buffer @w : memref<64xf32> parameters slots 1 stride 256 persistent {payload = 40 : i64}
  exec.buffer @w : memref<64xf32> parameters slots 1 stride 256 persistent {payload = 40 : i64}
  // CHECK: exec.buffer @c : memref<4xi1> constants slots 1 stride 64 persistent symbol "table"
  exec.buffer @c : memref<4xi1> constants slots 1 stride 64 persistent symbol "table"
  // CHECK: exec.buffer @s0 : memref<f32> buffers slots 1 stride 64 persistent seed{{$}}
  exec.buffer @s0 : memref<f32> buffers slots 1 stride 64 persistent seed
  // CHECK: exec.buffer @"b0 w" : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0{{$}}
  exec.buffer @"b0 w" : memref<64xf32> parameters slots 1 stride 256 persistent stored of @b0
  // CHECK: exec.buffer @g1 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 1{{$}}
  exec.buffer @g1 : memref<64xf32> gradients slots 1 stride 256 accumulator of @b0 use 1
  // CHECK: exec.buffer @t : memref<64xf32> tied slots 1 stride 256 of @b0{{$}}
  exec.buffer @t : memref<64xf32> tied slots 1 stride 256 of @b0
  // CHECK: exec.schedule {
  exec.schedule {
    // CHECK: %[[X:.*]] = exec.input "x" to @x micro_batch 0 on @compute{{$}}
    %0 = exec.input "x" to @x micro_batch 0 on @compute
    // CHECK: exec.input "context" to @x[1] micro_batch 0 on @compute context
    %1 = exec.input "context" to @x[1] micro_batch 0 on @compute context
    // CHECK: exec.wait %[[X]] on @comm
    exec.wait %0 on @comm
    // CHECK: exec.run @block0.F [@x, @w+128] micro_batch 0 on @compute{{$}}
    %2 = exec.run @block0.F [@x, @w+128] micro_batch 0 on @compute
    // CHECK: exec.run @block0.W for <1 W> [@x[2]+64+256*edp] temp @t micro_batch 3 accumulate on @compute
    %3 = exec.run @block0.W for <1 W> [@x[2]+64+256*edp] temp @t micro_batch 3 accumulate on @compute
    // CHECK: exec.run @block0.E for <0 E> [] micro_batch 0 on @compute
    %4 = exec.run @block0.E for <0 E> [] micro_batch 0 on @compute
    // CHECK: exec.run @block0.E for <0 E part 2> [] micro_batch 0 on @compute
    exec.run @block0.E for <0 E part 2> [] micro_batch 0 on @compute
    // CHECK: exec.gather @w+256*edp to @w bytes 256 all_gather order 0 over @dp on @comm
    %5 = exec.gather @w+256*edp to @w bytes 256 all_gather order 0 over @dp on @comm
    // CHECK: exec.reduce @g to @s elements 64 : bf16 order 1 over @dp on @comm
    %6 = exec.reduce @g to @s elements 64 : bf16 order 1 over @dp on @comm
    // CHECK: exec.reduce @g to @s elements 64 : f32 accumulate order 2 over @dp on @comm
    %7 = exec.reduce @g to @s elements 64 : f32 accumulate order 2 over @dp on @comm
    // CHECK: exec.reduce @g to @s elements 64 : f32 as bf16 by all_to_all accumulate order 2 over @dp on @comm
    %b = exec.reduce @g to @s elements 64 : f32 as bf16 by all_to_all accumulate order 2 over @dp on @comm
    // CHECK: exec.reduce @g to @s elements 64 : f32 order 2 over @dp on @comm
    %c = exec.reduce @g to @s elements 64 : f32 by reduce_scatter order 2 over @dp on @comm
    // CHECK: exec.all_to_all @g to @h bytes 64 order 3 over @dp on @comm
    %a = exec.all_to_all @g to @h bytes 64 order 3 over @dp on @comm
    // CHECK: exec.all_to_all @g to @h bytes 64 for 128 tensor_parallel order 3 over @dp on @comm
    exec.all_to_all @g to @h bytes 64 for 128 tensor_parallel order 3 over @dp on @comm
    // CHECK: exec.gather @g to @h bytes 64 tensor_parallel order 3 over @dp on @comm
    exec.gather @g to @h bytes 64 tensor_parallel order 3 over @dp on @comm
    // CHECK: exec.add @g, @h elements 64 : f32 on @compute
    %8 = exec.add @g, @h elements 64 : f32 on @compute
    // CHECK: exec.send @x bytes 16 to 1 tag "x" micro_batch 0 send_recv over @pp on @send
    %9 = exec.send @x bytes 16 to 1 tag "x" micro_batch 0 send_recv over @pp on @send
    // CHECK: exec.recv @x bytes 16 from 1 tag "y" tied over @pp on @recv
    %10 = exec.recv @x bytes 16 from 1 tag "y" tied over @pp on @recv
    // CHECK: exec.norm @s of @b0 to @norms[1] on @compute
    %11 = exec.norm @s of @b0 to @norms[1] on @compute
    // CHECK: exec.agree norms [@norms[1]] losses [] order 3 over @world on @comm
    %12 = exec.agree norms [@norms[1]] losses [] order 3 over @world on @comm
    // CHECK: exec.agree norms [] losses [@x] measures [@x, @m] places [1, 4] lengths [1, 3] order 3 over @world on @comm
    exec.agree norms [] losses [@x] measures [@x, @m] places [1, 4] lengths [1, 3] order 3 over @world on @comm
    // CHECK: exec.agree norms [] losses [] outputs [@x, @m] numbers [0, 2] bytes [4, 8] order 3 over @world on @comm
    exec.agree norms [] losses [] outputs [@x, @m] numbers [0, 2] bytes [4, 8] order 3 over @world on @comm
    // CHECK: exec.update @adam of @b0 [@w, @s] elements 64 sliced on @compute
    %13 = exec.update @adam of @b0 [@w, @s] elements 64 sliced on @compute
    // CHECK: exec.update @adam of @b0 [@w, @s] elements 128 on @compute
    %14 = exec.update @adam of @b0 [@w, @s] elements 128 on @compute
    // CHECK: exec.update @muon of @b0 [@w, @s] elements 64 sliced unpadded on @compute
    exec.update @muon of @b0 [@w, @s] elements 64 sliced unpadded on @compute
    // CHECK: exec.transform @muon.4x4 of @b0 [@g, @s+64] elements 16 from 16 sliced temp @s on @compute
    exec.transform @muon.4x4 of @b0 [@g, @s+64] elements 16 from 16 sliced temp @s on @compute
    // CHECK: exec.transform @muon.4x4 of @b0 [@g, @s] elements 16 on @compute
    exec.transform @muon.4x4 of @b0 [@g, @s] elements 16 on @compute
    // CHECK: exec.map @kernels::@narrow [@g, @s] elements 64 on @compute
    %map = exec.map @kernels::@narrow [@g, @s] elements 64 on @compute
    // CHECK: exec.fold @m bytes 8 into [@w] places [0] elements [2] momenta [1.000000e-01] on @compute
    %15 = exec.fold @m bytes 8 into [@w] places [0] elements [2] momenta [0.1] on @compute
    // Events are called after what happened; what adds up is one number.
    // CHECK: %gather.t = exec.gather @"b0 w" to @t
    // CHECK: exec.wait %gather.t on @compute
    // CHECK: %block3.B.m2 = exec.run @block0.B for <3 B> [@"b0 w"[1]+8] micro_batch 2 on @compute
    // CHECK: %block3.B.2.m2 = exec.run @block0.B for <3 B part 2>
    // CHECK: %send.x.m0_{{[0-9]+}} = exec.send
    %16 = exec.gather @"b0 w" to @t bytes 256 all_gather order 4 over @dp on @comm
    exec.wait %16 on @compute
    %17 = exec.run @block0.B for <3 B> [@"b0 w"[1]+4+4] micro_batch 2 on @compute
    exec.run @block0.B for <3 B part 2> [@"b0 w"[1]+4+4] micro_batch 2 on @compute
    %18 = exec.send @x bytes 16 to 1 tag "x" micro_batch 0 send_recv over @pp on @send
  }
}

module @kernels {
  dist.grid @grid [pp = 2, edp = 2, ep = 1, sp = 1, tp = 1]
  func.func nested @kernel(%lo: index, %hi: index, %a: memref<16xf32>, %v: memref<4xf32>, %t: memref<16xf32>)
}

// CHECK-LABEL: @segment
func.func @segment(%a: memref<4x4xf32>, %b: memref<2x4x4xf32>, %v: memref<4xf32>, %i: memref<4xi32>) attributes {exec.segment} {
  // CHECK: %[[T:.*]] = exec.temp at 64 : memref<4x4xf32>
  %t = exec.temp at 64 : memref<4x4xf32>
  // CHECK: exec.view %[[T]] : memref<4x4xf32> to memref<2x4xf32, strided<[8, 1]>>
  %u = exec.view %t : memref<4x4xf32> to memref<2x4xf32, strided<[8, 1]>>
  // CHECK: exec.launch @kernels::@kernel range 4 grain 2(%{{.*}}, %{{.*}}) -> (%[[T]]) : memref<4x4xf32>, memref<4xf32> -> memref<4x4xf32>
  exec.launch @kernels::@kernel range 4 grain 2 (%a, %v) -> (%t) : memref<4x4xf32>, memref<4xf32> -> memref<4x4xf32>
  // CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[T]] {into_gradient, transpose_a, transpose_b} : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  exec.gemm %a, %a -> %t {into_gradient, transpose_a, transpose_b} : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  // CHECK: exec.gemm %{{.*}}, %{{.*}} plus %{{.*}} : memref<4x4xf32> -> %[[T]] of [4, 4, 4096] : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  exec.gemm %a, %a plus %a : memref<4x4xf32> -> %t of [4, 4, 4096] : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  // CHECK: exec.scatter add %{{.*}}, %{{.*}}, %{{.*}} -> %[[T]] : memref<4x4xf32>, memref<4xi32>, memref<4x4xf32> -> memref<4x4xf32>
  exec.scatter add %a, %i, %a -> %t : memref<4x4xf32>, memref<4xi32>, memref<4x4xf32> -> memref<4x4xf32>
  // CHECK: exec.scatter_add %{{.*}}, %{{.*}} -> %[[T]] {into_gradient} : memref<4x4xf32>, memref<4xi32> -> memref<4x4xf32>{{$}}
  exec.scatter_add %a, %i -> %t {into_gradient} : memref<4x4xf32>, memref<4xi32> -> memref<4x4xf32>
  // CHECK: exec.scatter_add %{{.*}}, %{{.*}} -> %[[T]] workspace %{{.*}} : memref<4x4xf32>, memref<4xi32> -> memref<4x4xf32> workspace memref<4xf32>
  exec.scatter_add %a, %i -> %t workspace %v : memref<4x4xf32>, memref<4xi32> -> memref<4x4xf32> workspace memref<4xf32>
  // CHECK: exec.scatter_add %{{.*}}, %{{.*}} -> %[[T]] workspace %{{.*}} {sums} : memref<4x4xf32>, memref<4xi32> -> memref<4x4xf32> workspace memref<4xf32>
  exec.scatter_add %a, %i -> %t workspace %v {sums} : memref<4x4xf32>, memref<4xi32> -> memref<4x4xf32> workspace memref<4xf32>
  // CHECK: exec.accumulate %{{.*}} -> %{{.*}} : memref<4xf32> -> memref<4xf32>
  exec.accumulate %v -> %v : memref<4xf32> -> memref<4xf32>
  return
}

// CHECK-LABEL: @routines
func.func @routines(%q: memref<1x2x4x4xf32>, %m: memref<4x4xi1>, %lse: memref<1x2x4xf32>, %w: memref<64xi8>) attributes {exec.segment} {
  // CHECK: exec.attention {{.*}} {causal, scale = 5.000000e-01 : f64, threads = 2 : i64} : memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4xf32>, memref<64xi8>
  exec.attention %q, %q, %q, %q, %lse, %w {causal, scale = 0.5 : f64, threads = 2 : i64} : memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4xf32>, memref<64xi8>
  // CHECK: exec.attention {{.*}} {scale = 5.000000e-01 : f64, threads = 2 : i64} : {{.*}} memref<4x4xi1>
  exec.attention %q, %q, %q, %m, %q, %lse, %w {scale = 0.5 : f64, threads = 2 : i64} : memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<4x4xi1>, memref<1x2x4x4xf32>, memref<1x2x4xf32>, memref<64xi8>
  // CHECK: exec.attention_grad {{.*}} {scale = 5.000000e-01 : f64, threads = 2 : i64}
  exec.attention_grad %q, %q, %q, %q, %lse, %q, %q, %q, %q, %w {scale = 0.5 : f64, threads = 2 : i64} : memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<1x2x4x4xf32>, memref<64xi8>
  return
}

// CHECK-LABEL: @losses
func.func @losses(%x: memref<4x8xf32>, %wt: memref<8x9xf32>, %b: memref<9xf32>, %l: memref<4xi32>, %g: memref<f32>, %w: memref<64xi8>,
                  %logs: memref<5x2x3xf32>, %targets: memref<2x2xi32>, %n: memref<2xi32>, %s: memref<2xf32>) attributes {exec.segment} {
  // CHECK: exec.linear_nll {{.*}} {bias_into_gradient, ignore_index = -100 : i64, {{.*}}weight_into_gradient} : memref<4x8xf32>, memref<8x9xf32>, memref<9xf32>, memref<4xi32>
  exec.linear_nll %x, %wt, %b, %l, %g, %g, %x, %wt, %b, %w {ignore_index = -100 : i64, weight_into_gradient, bias_into_gradient, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>} : memref<4x8xf32>, memref<8x9xf32>, memref<9xf32>, memref<4xi32>, memref<f32>, memref<f32>, memref<4x8xf32>, memref<8x9xf32>, memref<9xf32>, memref<64xi8>
  // CHECK: exec.ctc {{.*}} {blank = 0 : i64, zero_infinity}
  exec.ctc %logs, %targets, %n, %n, %w, %s {blank = 0 : i64, zero_infinity} : memref<5x2x3xf32>, memref<2x2xi32>, memref<2xi32>, memref<2xi32>, memref<64xi8>, memref<2xf32>
  // CHECK: exec.ctc_grad {{.*}} {blank = 0 : i64}
  exec.ctc_grad %logs, %targets, %n, %n, %s, %w, %logs {blank = 0 : i64} : memref<5x2x3xf32>, memref<2x2xi32>, memref<2xi32>, memref<2xi32>, memref<2xf32>, memref<64xi8>, memref<5x2x3xf32>
  return
}

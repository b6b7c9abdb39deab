// Every error of the dialect: one message that says what was got and what was
// expected.
// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

exec.program @p position 0 blocks [0, 1] {
  // expected-error @below {{'func.func' op in a program, expected a memory, a buffer or the schedule}}
  func.func private @f()
}

// -----

dist.grid @grid [pp = 1, edp = 4, ep = 1, sp = 1, tp = 1]
// expected-error @below {{'exec.communicator' op is over [edp inner 3], but axis edp has 4 ranks, expected a multiple of 3}}
exec.communicator @c over [edp inner 3]

// -----

// expected-error @below {{axes 'tp' and 'edp' are not in the order pp, edp, ep, sp, tp, each once}}
exec.communicator @c over [tp, edp]

// -----

// expected-error @below {{expected an axis: pp, edp, ep, sp or tp}}
exec.communicator @c over [[0, 1]]

// -----

// expected-error @below {{expected 'over'}}
exec.communicator @c [[0, 1]]

// -----

func.func @inside() {
  // expected-error @below {{'exec.stream' op expects parent op 'builtin.module'}}
  exec.stream @s compute
  return
}

// -----

// expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'kind' [compute, communication, copy, disk, host]}}
exec.stream @s network

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.run' op is on @compute, which is no stream of this module}}
    %0 = exec.run @f [] micro_batch 0 on @compute
  }
}

// -----

exec.stream @compute compute
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    %0 = exec.run @f [] micro_batch 0 on @compute
    // expected-error @below {{'exec.wait' op is on @comm, which is no stream of this module}}
    exec.wait %0 on @comm
  }
}

// -----

// expected-note @below {{the stream is here, of kind communication}}
exec.stream @comm communication
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.run' op is on @comm, expected a stream of kind compute}}
    %0 = exec.run @f [] micro_batch 0 on @comm
  }
}

// -----

// expected-note @below {{the stream is here, of kind copy}}
exec.stream @offload copy
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.gather' op is on @offload, expected a stream of kind communication}}
    %0 = exec.gather @x to @y bytes 64 all_gather order 0 over @dp on @offload
  }
}

// -----

// expected-error @below {{'exec.memory' op expects parent op 'exec.program'}}
exec.memory @device device

// -----

exec.program @p position 0 blocks [0, 1] {
  // expected-error @below {{'exec.memory' op has an alignment of 96, expected a power of two of at least 64}}
  exec.memory @device device alignment 96
}

// -----

exec.program @p position 0 blocks [0, 1] {
  // expected-error @below {{'exec.memory' op has an alignment of 32, expected a power of two of at least 64}}
  exec.memory @device device alignment 32
}

// -----

exec.program @p position 0 blocks [0, 1] {
  // expected-error @below {{'exec.memory' op has 100 bytes, expected a multiple of 64}}
  exec.memory @device device bytes 100 bound 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op is in @host, which is no memory of its program}}
  exec.buffer @x in @host : memref<4xf32> activations slots 1 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  // expected-error @below {{'exec.buffer' op is in no memory: expected its program to have one}}
  exec.buffer @x : memref<4xf32> activations slots 1 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op is in @device, expected constants in the program's image}}
  exec.buffer @x in @device : memref<4xf32> constants slots 1 stride 64 persistent symbol "x"
}

// -----

func.func @inside() {
  // expected-error @below {{'exec.communicator' op expects parent op 'builtin.module'}}
  exec.communicator @c over [edp]
  return
}

// -----

exec.stream @comm communication
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.gather' op travels as 'f16', expected bf16 or i8}}
    %0 = exec.gather @s to @w bytes 256 as f16 all_gather order 0 over @dp on @comm
  }
}

// -----

exec.stream @comm communication
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.gather' op of a part of its own target travels as 'bf16', expected the slice in another buffer}}
    %0 = exec.gather @w+256*edp to @w bytes 256 as bf16 all_gather order 0 over @dp on @comm
  }
}

// -----

exec.stream @comm communication
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.reduce' op of 'f32' travels as 'f16', expected f32 as bf16, or as i4 by all_to_all}}
    %0 = exec.reduce @x to @y elements 64 : f32 as f16 order 0 over @c on @comm
  }
}

// -----

exec.stream @comm communication
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.reduce' op is fast by all_to_all, where owners add along the canonical tree}}
    %0 = exec.reduce @x to @y elements 64 : f32 by all_to_all fast order 0 over @c on @comm
  }
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.all_to_all' op is from @x to itself, expected another buffer}}
    %0 = exec.all_to_all @x to @x[1] bytes 64 order 0 over @c on @comm
  }
}

// -----

exec.stream @comm communication
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.all_to_all' op has 0 bytes for each member, expected at least 1}}
    %0 = exec.all_to_all @x to @y bytes 0 order 0 over @c on @comm
  }
}

// -----

// expected-error @below {{'exec.program' op has 2 schedules, expected one}}
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
  }
  exec.schedule {
  }
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.temp' op in a schedule, expected an action, a wait or a release}}
    %0 = exec.temp at 0 : memref<4xf32>
  }
}

// -----

// expected-error @below {{'exec.schedule' op expects parent op 'exec.program'}}
exec.schedule {
}

// -----

func.func @outside() {
  // expected-error @below {{'exec.input' op expects parent op 'exec.schedule'}}
  %0 = exec.input "x" to @x micro_batch 0 on @compute
  return
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has type 'tensor<4xf32>', expected a memref of static shape}}
  exec.buffer @x : tensor<4xf32> activations slots 1 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has type 'memref<?xf32>', expected a memref of static shape}}
  exec.buffer @x : memref<?xf32> activations slots 1 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has 0 slots, expected at least 1}}
  exec.buffer @x : memref<4xf32> activations slots 0 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has a stride of 96 bytes, expected a multiple of 64 of at least 80, the bytes of 'memref<20xf32>'}}
  exec.buffer @x : memref<20xf32> activations slots 1 stride 96
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has a stride of 64 bytes, expected a multiple of 64 of at least 80, the bytes of 'memref<20xf32>'}}
  exec.buffer @x : memref<20xf32> activations slots 1 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op is at offset 32, expected a multiple of 64}}
  exec.buffer @x at 32 : memref<4xf32> activations slots 1 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op is at offset -64, expected a multiple of 64}}
  exec.buffer @x at -64 : memref<4xf32> activations slots 1 stride 64
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has the role seed, expected one of no bucket}}
  exec.buffer @a : memref<f32> buffers slots 1 stride 64 persistent seed of @b0
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has the role stored, expected one of a bucket}}
  exec.buffer @a : memref<16xf32> parameters slots 1 stride 64 persistent stored
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has the role stored, expected it persistent}}
  exec.buffer @a : memref<16xf32> parameters slots 1 stride 64 stored of @b0
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op is an accumulator of no use, expected the use of an accumulator}}
  exec.buffer @a : memref<16xf32> gradients slots 1 stride 64 accumulator of @b0
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op is of a use, expected the use of an accumulator}}
  exec.buffer @a : memref<16xf32> gradients slots 1 stride 64 of @b0 use 0
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has the role scalars and type 'memref<16xi32>', expected floats in one dimension}}
  exec.buffer @a : memref<16xi32> buffers slots 1 stride 64 persistent scalars
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-note @below {{the other is here}}
  exec.buffer @a : memref<16xf32> gradients slots 1 stride 64 accumulator of @b0 use 1
  exec.buffer @b : memref<16xf32> gradients slots 1 stride 64 accumulator of @b0 use 0
  // expected-error @below {{'exec.buffer' op has the role of "a", expected one buffer in each}}
  exec.buffer @c : memref<16xf32> gradients slots 1 stride 64 accumulator of @b0 use 1
}

// -----

exec.stream @comm communication
exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{got axis 'ranks', expected edp, ep, sp or tp}}
    %0 = exec.gather @a+64*ranks to @b bytes 64 all_gather order 0 on @comm
  }
}

// -----

func.func @view_of_strides(%x: memref<4x4xf32, strided<[8, 1]>>) {
  // expected-error @below {{'exec.view' op shows 'memref<4x4xf32, strided<[8, 1]>>' as 'memref<16xf32>', expected a contiguous source of the same element type}}
  %0 = exec.view %x : memref<4x4xf32, strided<[8, 1]>> to memref<16xf32>
  return
}

// -----

func.func @view_of_another_type(%x: memref<4x4xf32>) {
  // expected-error @below {{'exec.view' op shows 'memref<4x4xf32>' as 'memref<16xi32>', expected a contiguous source of the same element type}}
  %0 = exec.view %x : memref<4x4xf32> to memref<16xi32>
  return
}

// -----

func.func @view_beyond(%x: memref<4x4xf32>) {
  // expected-error @below {{'exec.view' op shows 'memref<4x4xf32>' as 'memref<4x4xf32, strided<[5, 1]>>', expected its elements}}
  %0 = exec.view %x : memref<4x4xf32> to memref<4x4xf32, strided<[5, 1]>>
  return
}

// -----

func.func @gemm_part(%x: memref<4x4xf32>) {
  // expected-error @below {{'exec.gemm' op is a part of a product [4, 8], expected matrices of three extents}}
  exec.gemm %x, %x -> %x of [4, 8] : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  return
}

// -----

func.func @gemm_adds(%x: memref<4x4xf32>) {
  // expected-error @below {{'exec.gemm' op adds to a sum, expected a part of a product to do so}}
  exec.gemm %x, %x plus %x : memref<4x4xf32> -> %x : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  return
}

// -----

func.func @gemm_epilogue_packed(%x: memref<4x4xf32>, %b: memref<4xf32>, %y: memref<16xbf16>) {
  // expected-error @below {{'exec.gemm_epilogue' op has a packed b of type 'memref<16xbf16>' for one of 'memref<4x4xf32>', expected a row of its elements for a matrix}}
  exec.gemm_epilogue bias %x, %x packed %y : memref<16xbf16>, %b -> %x : memref<4x4xf32>, memref<4x4xf32>, memref<4xf32> -> memref<4x4xf32>
  return
}

// -----

func.func @gemm_packed(%x: memref<4x4xf32>, %y: memref<4x16xf32>) {
  // expected-error @below {{'exec.gemm' op has a packed b of type 'memref<4x16xf32>' for one of 'memref<4x4xf32>', expected a row of its elements for a matrix}}
  exec.gemm %x, %x packed %y : memref<4x16xf32> -> %x : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  return
}

// -----

func.func @gemm_ranks(%x: memref<4x4xf32>, %y: memref<2x4x4xf32>) {
  // expected-error @below {{'exec.gemm' op has operands of rank 3 and 2 and a result of rank 2, expected equal ranks of at least 2}}
  exec.gemm %y, %x -> %x : memref<2x4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
  return
}

// -----

func.func @gemm_vectors(%x: memref<4xf32>) {
  // expected-error @below {{'exec.gemm' op has operands of rank 1 and 1 and a result of rank 1, expected equal ranks of at least 2}}
  exec.gemm %x, %x -> %x : memref<4xf32>, memref<4xf32> -> memref<4xf32>
  return
}

// -----

func.func @gemm_contraction(%x: memref<4x3xf32>, %y: memref<5x3xf32>, %z: memref<4x5xf32>) {
  exec.gemm %x, %y -> %z {transpose_b} : memref<4x3xf32>, memref<5x3xf32> -> memref<4x5xf32>
  // expected-error @below {{'exec.gemm' op contracts 3 with 5 elements, expected equal sizes}}
  exec.gemm %x, %y -> %z : memref<4x3xf32>, memref<5x3xf32> -> memref<4x5xf32>
  return
}

// -----

func.func @gemm_result(%x: memref<3x4xf32>, %y: memref<3x5xf32>, %z: memref<5x4xf32>) {
  // expected-error @below {{'exec.gemm' op has a result of type 'memref<5x4xf32>', expected 4x5 matrices}}
  exec.gemm %x, %y -> %z {transpose_a} : memref<3x4xf32>, memref<3x5xf32> -> memref<5x4xf32>
  return
}

// -----

module @kernels {}
func.func @launch(%x: memref<4xf32>) {
  // expected-error @below {{'exec.launch' op launches @kernels::@kernel0, which is no function of this module}}
  exec.launch @kernels::@kernel0 range 4 grain 1 (%x) -> (%x) : memref<4xf32> -> memref<4xf32>
  return
}

// -----

// expected-error @below {{has blocks array<i64>, expected the first and the end of one chunk or more, ascending}}
exec.program @p position 0 blocks [] {
  exec.schedule {
  }
}

// -----

// expected-error @below {{has blocks array<i64: 0, 1, 2>, expected the first and the end of one chunk or more, ascending}}
exec.program @p position 0 blocks [0, 1, 2] {
  exec.schedule {
  }
}

// -----

// expected-error @below {{has blocks array<i64: 0, 0>, expected the first and the end of one chunk or more, ascending}}
exec.program @p position 0 blocks [0, 0] {
  exec.schedule {
  }
}

// -----

// expected-error @below {{has blocks array<i64: 2, 3, 1, 2>, expected the first and the end of one chunk or more, ascending}}
exec.program @p position 0 blocks [2, 3, 1, 2] {
  exec.schedule {
  }
}

// -----

// expected-error @below {{has blocks array<i64: -1, 1>, expected the first and the end of one chunk or more, ascending}}
exec.program @p position 0 blocks [-1, 1] {
  exec.schedule {
  }
}

// -----

// expected-error @below {{product is of 0x4x3, expected 1 or more each}}
func.func private @product() attributes {exec.product = #exec.product<m = 0, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4>}

// -----

// expected-error @below {{product has lines of 3 elements that begin 2 apart, expected as many or more}}
func.func private @product() attributes {exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 2, ldb = 4, ldc = 4>}

// -----

// expected-error @below {{product has a batch of 1 dimensions and 0 strides, expected as many}}
func.func private @product() attributes {exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4, batch = [2], strides_a = [6]>}

// -----

// expected-error @below {{product adds a bias and to its result, expected one of them}}
func.func private @product() attributes {exec.product = #exec.product<m = 2, n = 4, k = 3, operands = f32, result = f32, lda = 3, ldb = 4, ldc = 4, accumulates = true, bias = true>}

// -----

func.func @loss(%x: memref<4x8xf32>, %w: memref<8x9xf32>, %l: memref<4xi32>, %g: memref<f32>, %s: memref<144xi8>) {
  // expected-error @below {{has kernels [unit], expected six, each a #exec.product_kernel or unit}}
  exec.linear_nll %x, %w, %l, %g, %g, %s {ignore_index = -100 : i64, kernels = [unit], operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0, 0, 0, 1>} : memref<4x8xf32>, memref<8x9xf32>, memref<4xi32>, memref<f32>, memref<f32>, memref<144xi8>
  return
}

// -----

// expected-error @below {{blocking has 8 rows, 0 vectors and bands of 1 blocks, expected 1 or more each}}
func.func private @product() attributes {exec.blocking = #exec.blocking<rows = 8, vectors = 0, band = 1, packing = none>}

// -----

// expected-error @below {{blocking asks for lines -2 blocks ahead, expected -1 or more}}
func.func private @product() attributes {exec.blocking = #exec.blocking<rows = 8, vectors = 1, band = 1, packing = none, result_ahead = -2>}

// -----

// expected-error @below {{table has unit, expected #exec.gemm_choice}}
module attributes {exec.gemm_table = #exec.gemm_table<arch = "znver4", vector_bits = 512, choices = [unit]>} {}

// -----

// expected-error @below {{table has two choices for #exec.gemm_choice<operands = f32, m = 1, n = 2, k = 3>, expected one}}
module attributes {exec.gemm_table = #exec.gemm_table<arch = "znver4", vector_bits = 512, choices = [
    #exec.gemm_choice<operands = f32, m = 1, n = 2, k = 3>,
    #exec.gemm_choice<operands = f32, m = 1, n = 2, k = 3, blocking = <rows = 1, vectors = 1, band = 1, packing = none>>]>} {}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.agree' op measures 3 values of 2 places and 2 lengths, expected a place and a length for each part of a metric, and as many values of each as there are micro-batches}}
    exec.agree norms [] losses [] measures [@a, @b, @c] places [0, 1] lengths [1, 1] order 0 over @world on @comm
  }
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.agree' op measures 0 elements at place 2, expected 1 or more from 0 on}}
    exec.agree norms [] losses [] measures [@a, @b] places [2] lengths [0] order 0 over @world on @comm
  }
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.schedule {
    // expected-error @below {{'exec.agree' op has 1 places of 2 outputs and 2 sizes, expected a size of each output, and as many places as there are micro-batches}}
    exec.agree norms [] losses [] outputs [@a] numbers [0, 1] bytes [4, 4] order 0 over @world on @comm
  }
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op is a state without its name, expected the name of a state, or of what is kept}}
  exec.buffer @b0.m : memref<64xf32> optimizer slots 1 stride 256 persistent state of @b0
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-error @below {{'exec.buffer' op has the name of a state, expected the name of a state, or of what is kept}}
  exec.buffer @b0.param : memref<64xf32> parameters slots 1 stride 256 persistent stored "m" of @b0
}

// -----

exec.program @p position 0 blocks [0, 1] {
  exec.memory @device device
  // expected-note @below {{the other is here}}
  exec.buffer @b0.m : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
  exec.buffer @b0.v : memref<64xf32> optimizer slots 1 stride 256 persistent state "v" of @b0
  // expected-error @below {{'exec.buffer' op has the role of "b0.m", expected one buffer in each}}
  exec.buffer @other : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
}

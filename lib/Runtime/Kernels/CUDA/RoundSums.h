//===- RoundSums.h - the kernel that rounds sums to 16 bits -----*- C++ -*-===//
//
// As text that the driver compiles, since the runtime is built without a toolkit.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_ROUNDSUMS_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_ROUNDSUMS_H

namespace dsopt::runtime::cuda {

inline constexpr char kRoundSumsName[] = "dsopt_round_sums";
inline constexpr int kRoundSumsThreads = 256;

/// `to[i, j] = from[i, j] + (accumulate ? to[i, j] : 0)` as bf16, or as f16 with `half`, block i for row i;
/// the rows of both begin `leading` elements apart.
inline constexpr char kRoundSums[] = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry dsopt_round_sums(.param .u64 to, .param .u64 from, .param .u64 columns, .param .u64 leading,
                                 .param .u64 accumulate, .param .u64 half)
{
  .reg .pred %last, %adds, %halves;
  .reg .b16 %old, %new;
  .reg .b32 %index, %step32, %bits;
  .reg .f32 %sum, %before;
  .reg .b64 %to, %from, %columns, %leading, %accumulate, %half, %row, %column, %step, %offset, %at;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %columns, [columns];
  ld.param.u64 %leading, [leading];
  ld.param.u64 %accumulate, [accumulate];
  ld.param.u64 %half, [half];
  setp.ne.u64 %adds, %accumulate, 0;
  setp.ne.u64 %halves, %half, 0;
  mov.u32 %index, %ctaid.x;
  cvt.u64.u32 %row, %index;
  mul.lo.u64 %row, %row, %leading;
  mov.u32 %index, %tid.x;
  cvt.u64.u32 %column, %index;
  mov.u32 %step32, %ntid.x;
  cvt.u64.u32 %step, %step32;
next:
  setp.ge.u64 %last, %column, %columns;
  @%last bra done;
  add.u64 %offset, %row, %column;
  shl.b64 %at, %offset, 2;
  add.u64 %at, %from, %at;
  ld.global.f32 %sum, [%at];
  shl.b64 %at, %offset, 1;
  add.u64 %at, %to, %at;
  @!%adds bra store;
  ld.global.b16 %old, [%at];
  cvt.u32.u16 %bits, %old;
  shl.b32 %bits, %bits, 16;
  mov.b32 %before, %bits;
  @%halves cvt.f32.f16 %before, %old;
  add.rn.f32 %sum, %sum, %before;
store:
  cvt.rn.bf16.f32 %new, %sum;
  @%halves cvt.rn.f16.f32 %new, %sum;
  st.global.b16 [%at], %new;
  add.u64 %column, %column, %step;
  bra next;
done:
  ret;
}
)";

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_ROUNDSUMS_H

//===- Lanes.h - one function on all lanes ----------------------*- C++ -*-===//
//
// Handlers of operations whose lanes do not know of each other. Where all lanes are
// there the loop has no condition, and the compiler makes vectors of it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_LANES_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_LANES_H

#include "Warp.h"
#include "Wide.h"

namespace softdevice {

template <class F> SOFT_INLINE void eachLane(uint32_t lanes, F &&apply) {
  if (lanes == ~0u) {
    for (int lane = 0; lane < kLanes; ++lane)
      apply(lane);
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    apply(__builtin_ctz(lanes));
}

template <class R, class A, auto f> SOFT_INLINE void map1Body(Warp &warp, const Op &op) {
  R *to = warp.row<R>(op.to);
  const A *a = warp.row<A>(op.a);
  eachLane(warp.lanes(op), [=](int lane) SOFT_LAMBDA { to[lane] = f(a[lane]); });
}

template <class R, class A, class B, auto f> SOFT_INLINE void map2Body(Warp &warp, const Op &op) {
  R *to = warp.row<R>(op.to);
  const A *a = warp.row<A>(op.a);
  const B *b = warp.row<B>(op.b);
  eachLane(warp.lanes(op), [=](int lane) SOFT_LAMBDA { to[lane] = f(a[lane], b[lane]); });
}

template <class R, class A, class B, class C, auto f> SOFT_INLINE void map3Body(Warp &warp, const Op &op) {
  R *to = warp.row<R>(op.to);
  const A *a = warp.row<A>(op.a);
  const B *b = warp.row<B>(op.b);
  const C *c = warp.row<C>(op.c);
  eachLane(warp.lanes(op), [=](int lane) SOFT_LAMBDA { to[lane] = f(a[lane], b[lane], c[lane]); });
}

template <class R, class A, auto f> inline constexpr auto map1 = run<map1Body<R, A, f>>;
template <class R, class A, class B, auto f> inline constexpr auto map2 = run<map2Body<R, A, B, f>>;
template <class R, class A, class B, class C, auto f>
inline constexpr auto map3 = run<map3Body<R, A, B, C, f>>;

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_LANES_H

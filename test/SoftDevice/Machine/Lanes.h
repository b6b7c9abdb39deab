//===- Lanes.h - one function on all lanes ----------------------*- C++ -*-===//
//
// Handlers of operations whose lanes do not know of each other. Where all lanes are
// there the loop has no condition, and the compiler makes vectors of it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_LANES_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_LANES_H

#include "Warp.h"

namespace softdevice {

template <class F> inline void eachLane(uint32_t lanes, F &&apply) {
  if (lanes == ~0u) {
    for (int lane = 0; lane < kLanes; ++lane)
      apply(lane);
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    apply(__builtin_ctz(lanes));
}

template <class R, class A, auto f> void map1(Warp &warp, const Op &op) {
  R *to = warp.row<R>(op.to);
  const A *a = warp.row<A>(op.a);
  eachLane(warp.lanes(op), [=](int lane) { to[lane] = f(a[lane]); });
}

template <class R, class A, class B, auto f> void map2(Warp &warp, const Op &op) {
  R *to = warp.row<R>(op.to);
  const A *a = warp.row<A>(op.a);
  const B *b = warp.row<B>(op.b);
  eachLane(warp.lanes(op), [=](int lane) { to[lane] = f(a[lane], b[lane]); });
}

template <class R, class A, class B, class C, auto f> void map3(Warp &warp, const Op &op) {
  R *to = warp.row<R>(op.to);
  const A *a = warp.row<A>(op.a);
  const B *b = warp.row<B>(op.b);
  const C *c = warp.row<C>(op.c);
  eachLane(warp.lanes(op), [=](int lane) { to[lane] = f(a[lane], b[lane], c[lane]); });
}

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_LANES_H

//===- Wide.h - code for processors with wide vectors -----------*- C++ -*-===//
//
// Loops over lanes are compiled twice, and the processor at hand decides which is run.
// The results are the same bits: no product and sum become one operation in either.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_WIDE_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_WIDE_H

#define SOFT_INLINE inline __attribute__((always_inline))
#define SOFT_LAMBDA __attribute__((always_inline))
#if defined(__x86_64__)
#define SOFT_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#define SOFT_WIDE __attribute__((target("arch=x86-64-v3")))
#else
#define SOFT_CLONES
#define SOFT_WIDE
#endif

namespace softdevice {

struct Warp;
struct Op;

/// Whether what has SOFT_WIDE runs here.
extern const bool kHasWide;

template <void (*body)(Warp &, const Op &)> SOFT_WIDE void runWide(Warp &warp, const Op &op) {
  body(warp, op);
}
/// A handler, of a body that is always inlined.
template <void (*body)(Warp &, const Op &)> void run(Warp &warp, const Op &op) {
  if (kHasWide)
    runWide<body>(warp, op);
  else
    body(warp, op);
}

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_WIDE_H

//===- RoutineImages.h - PTX of the runtime's routines ----------*- C++ -*-===//
//
// The kernels of what the runtime computes on a device (lib/Runtime/Kernels/CUDA/Device),
// one image for each of its files. The compiler puts those that a program uses into it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ROUTINEIMAGES_H
#define DSOPT_RUNTIME_ROUTINEIMAGES_H

#include <vector>

namespace dsopt::runtime {

struct RoutineImage {
  const char *name; ///< of the file
  const char *ptx;  ///< ends with a zero
};

/// What their PTX is for: the oldest architecture, so that drivers compile it for all newer ones.
inline constexpr char kRoutineArch[] = "sm_80";

/// Of heads of 16 bits, the largest that attention by matrix instructions takes; larger ones have images of
/// their own.
inline constexpr int kMatrixHead = 128;

/// All of them, by name.
const std::vector<RoutineImage> &routineImages();

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_ROUTINEIMAGES_H

//===- RoutineImages.cpp - the routines' kernels as PTX --------------------===//

#include "dsopt/Runtime/RoutineImages.h"

namespace dsopt::runtime::cuda {

#define DSOPT_IMAGE(name) extern const char image##name[];
#include "Images.def"
#undef DSOPT_IMAGE

std::vector<std::pair<const char *, const char *>> routineImages() {
  return {
#define DSOPT_IMAGE(name) {#name, image##name},
#include "Images.def"
#undef DSOPT_IMAGE
  };
}

} // namespace dsopt::runtime::cuda

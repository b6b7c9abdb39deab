//===- RoutineImages.cpp - PTX of the runtime's routines -------------------===//

#include "dsopt/Runtime/RoutineImages.h"

namespace dsopt::runtime {

#define DSOPT_IMAGE(name) extern const char image##name[];
#include "Images.def"
#undef DSOPT_IMAGE

const std::vector<RoutineImage> &routineImages() {
  static const std::vector<RoutineImage> images = {
#define DSOPT_IMAGE(name) {#name, image##name},
#include "Images.def"
#undef DSOPT_IMAGE
  };
  return images;
}

} // namespace dsopt::runtime

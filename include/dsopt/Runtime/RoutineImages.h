//===- RoutineImages.h - the routines' kernels as PTX -----------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_ROUTINEIMAGES_H
#define DSOPT_RUNTIME_ROUTINEIMAGES_H

#include <utility>
#include <vector>

namespace dsopt::runtime::cuda {
/// Name and PTX of each image, for sm_80 and all newer architectures.
std::vector<std::pair<const char *, const char *>> routineImages();
} // namespace dsopt::runtime::cuda

#endif // DSOPT_RUNTIME_ROUTINEIMAGES_H

//===- BuildIds.h - which libraries this process has ------------*- C++ -*-===//
//
// A build ID says of a library what its linker made it of.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TARGET_BUILDIDS_H
#define DSOPT_LIB_TARGET_BUILDIDS_H

#include <string>

namespace dsopt {
/// Those of all libraries of this process, of which each may have a part in what kernels become; empty where
/// one has none.
std::string collectBuildIds();
} // namespace dsopt

#endif // DSOPT_LIB_TARGET_BUILDIDS_H

//===- Axes.h - axes in a message -------------------------------*- C++ -*-===//

#ifndef DSOPT_LIB_DIALECT_DIST_AXES_H
#define DSOPT_LIB_DIALECT_DIST_AXES_H

#include "dsopt/Dialect/Dist/Dist.h"

namespace dsopt::dist {
/// "[edp, ep]", as operations print it.
std::string textOf(AxesAttr axes);
} // namespace dsopt::dist

#endif // DSOPT_LIB_DIALECT_DIST_AXES_H

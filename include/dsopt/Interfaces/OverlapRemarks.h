//===- OverlapRemarks.h - what could not go on beside computation -*- C++ -*-===//

#ifndef DSOPT_INTERFACES_OVERLAPREMARKS_H
#define DSOPT_INTERFACES_OVERLAPREMARKS_H

#include "llvm/ADT/StringRef.h"

namespace dsopt {

/// The category of remarks that say why communication or a copy had to wait, or is waited for.
inline constexpr llvm::StringLiteral kOverlapRemarks = "overlap";

} // namespace dsopt

#endif // DSOPT_INTERFACES_OVERLAPREMARKS_H

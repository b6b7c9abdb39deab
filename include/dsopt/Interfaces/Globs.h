//===- Globs.h - what to say of a glob that matches nothing -----*- C++ -*-===//

#ifndef DSOPT_INTERFACES_GLOBS_H
#define DSOPT_INTERFACES_GLOBS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace dsopt {

/// The end of an error about a glob that matches none of `names`: a glob that does match some of them
/// ("*bias" for "bias"), else names that are spelled nearly so, else where the names are to be seen.
std::string nearMatches(llvm::StringRef glob, llvm::ArrayRef<llvm::StringRef> names);

} // namespace dsopt

#endif // DSOPT_INTERFACES_GLOBS_H

//===- PackTemporaries.h - offsets for values with lifetimes ----*- C++ -*-===//

#ifndef DSOPT_CONVERSION_GRAPHTOEXEC_PACKTEMPORARIES_H
#define DSOPT_CONVERSION_GRAPHTOEXEC_PACKTEMPORARIES_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace dsopt::exec {
/// Bytes that are needed from operation `first` to operation `last`, inclusive.
struct Temporary {
  int64_t bytes = 0, first = 0, last = 0;
  const void *type = nullptr; ///< of the hosts that it may lie in, null: in none
  // What packTemporaries chooses:
  int64_t host = -1; ///< a host that it begins, or
  int64_t offset = 0;
};

/// Bytes that nobody needs before operation `from`.
struct Host {
  int64_t bytes = 0, from = 0;
  const void *type = nullptr;
};

/// Gives every temporary a host or an offset, a multiple of 64, such that temporaries that
/// are alive at the same operation do not overlap. Returns the bytes needed for those with an offset.
int64_t packTemporaries(llvm::MutableArrayRef<Temporary> temporaries, llvm::ArrayRef<Host> hosts);
} // namespace dsopt::exec

#endif // DSOPT_CONVERSION_GRAPHTOEXEC_PACKTEMPORARIES_H

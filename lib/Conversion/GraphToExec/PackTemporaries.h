//===- PackTemporaries.h - offsets for values with lifetimes ----*- C++ -*-===//

#ifndef DSOPT_CONVERSION_GRAPHTOEXEC_PACKTEMPORARIES_H
#define DSOPT_CONVERSION_GRAPHTOEXEC_PACKTEMPORARIES_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace dsopt::exec {
/// Bytes that are needed from operation `first` to operation `last`, inclusive.
struct Temporary {
  int64_t bytes = 0, first = 0, last = 0;
  int64_t offset = 0; ///< what packTemporaries chooses
};

/// Gives every temporary an offset, a multiple of 64, such that temporaries that
/// are alive at the same operation do not overlap. Returns the bytes needed.
int64_t packTemporaries(llvm::MutableArrayRef<Temporary> temporaries);
} // namespace dsopt::exec

#endif // DSOPT_CONVERSION_GRAPHTOEXEC_PACKTEMPORARIES_H

//===- Strike.h - what a fault does to a call -------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_SYSTEM_STRIKE_H
#define DSOPT_LIB_RUNTIME_SYSTEM_STRIKE_H

#include "dsopt/Runtime/Fault.h"

#include <cstddef>

namespace dsopt::runtime::fault {

enum class Call {
#define DSOPT_CALL(name, kind) name,
#include "dsopt/Runtime/Points.def"
};

/// What is left to do by the call itself.
struct Strike {
  int error = 0; ///< fails with this errno
  bool shortened = false, skipped = false;
  long flipped = -1; ///< this bit

  /// The call is not made: errno is set where it fails.
  bool ends() const;
  int result() const { return error ? -1 : 0; }
  size_t share(size_t bytes) const { return shortened && bytes > 1 ? bytes / 2 : bytes; }
  void flip(void *data, size_t bytes) const;
};

Strike strikeCall(Call call);

inline Strike before(Call call) {
  return active.load(std::memory_order_relaxed) ? strikeCall(call) : Strike();
}

/// The most of a written buffer that a flip copies.
constexpr size_t kFlipped = 4096;

} // namespace dsopt::runtime::fault

#endif // DSOPT_LIB_RUNTIME_SYSTEM_STRIKE_H

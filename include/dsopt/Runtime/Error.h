//===- Error.h - how the runtime fails --------------------------*- C++ -*-===//
//
// Every failure of the runtime is one `Error`: the exit status of CONTRACT
// section 7 and one message. main() catches it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ERROR_H
#define DSOPT_RUNTIME_ERROR_H

#include <new>
#include <stdexcept>
#include <string>

namespace dsopt::runtime {

/// Exit statuses.
enum Status { StatusOk = 0, StatusInput = 1, StatusFailure = 2, StatusInterrupted = 3 };

class Error : public std::runtime_error {
public:
  Error(int status, const std::string &message, bool quiet = false)
      : std::runtime_error(message), status(status), quiet(quiet) {}
  int status;
  int rank = -1;       ///< that failed, where another one says so; -1: not known, or this one
  bool recurs = false; ///< the same happens each time: starting again does not help
  /// Another rank prints the message (or the launcher does): end with `status`, print nothing.
  bool quiet;
};

/// What an exception says to a person, of the language's own ones too.
inline std::string messageOf(const std::exception &error) {
  if (dynamic_cast<const std::bad_alloc *>(&error))
    return "the system gives no more memory (limits: ulimit -v, ulimit -d, the cgroup's)";
  return error.what();
}

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_ERROR_H

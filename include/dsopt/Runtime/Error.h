//===- Error.h - how the runtime fails --------------------------*- C++ -*-===//
//
// Every failure of the runtime is one `Error`: the exit status of CONTRACT
// section 7 and one message. main() catches it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ERROR_H
#define DSOPT_RUNTIME_ERROR_H

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

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_ERROR_H

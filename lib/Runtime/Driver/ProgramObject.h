//===- ProgramObject.h - a compiled program in memory -----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_PROGRAMOBJECT_H
#define DSOPT_LIB_RUNTIME_DRIVER_PROGRAMOBJECT_H

#include "dsopt/Runtime/Session.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt::runtime {

/// A loaded shared object and its table. Stays loaded until the process ends.
class ProgramObject {
public:
  /// The programs that are appended to this executable, the device's first; none if there is none.
  static std::vector<std::unique_ptr<ProgramObject>> fromExecutable();
  static std::unique_ptr<ProgramObject> fromFile(const std::string &path);

  Program program;
  void *symbol(const std::string &name) const;
  /// The model's protobuf without its parameters; null if the program carries none.
  const char *model() const;
  uint64_t modelBytes() const;

  /// Equal for equal programs: the table's hash, and that of all code, the runtime's too.
  struct Identity {
    uint64_t table = 0, code = 0;
  };
  Identity identity() const;

private:
  void open(const std::string &path, const std::string &shownAs);
  std::string_view actions() const;
  void *handle = nullptr;
  std::string file; ///< where it was loaded from, unless this executable holds it
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_PROGRAMOBJECT_H

//===- Program.h - a loaded PTX module --------------------------*- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_PROGRAM_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_PROGRAM_H

#include "Kernel.h"
#include "Memory.h"

namespace softdevice {

/// Its variables have their places in a device's memory, as long as it lives.
class Program {
public:
  /// Throws SyntaxError where the text is no PTX, Fault where there is no room.
  Program(Memory &memory, std::string_view text);
  ~Program();
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  /// Decoded when it is first asked for; null if there is no such kernel.
  const Kernel *kernel(const std::string &name);
  /// Address and bytes of a variable in global or constant memory; 0 if there is none.
  std::pair<uint64_t, uint64_t> variable(const std::string &name) const;
  std::vector<std::string> kernels() const;
  /// "sm_90a".
  const std::string &target() const { return module.target; }

private:
  Memory &memory;
  std::shared_ptr<const Module> parsed;
  const Module &module;
  std::map<std::string, uint64_t> addresses;
  std::map<std::string, Kernel> decoded;
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_PROGRAM_H

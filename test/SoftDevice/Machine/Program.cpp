//===- Program.cpp - a loaded PTX module ----------------------------------===//

#include "Program.h"

#include <cstring>

namespace softdevice {

static bool isGlobal(const Variable &variable) {
  return variable.space == "global" || variable.space == "const";
}

Program::Program(Memory &memory, std::string_view text) : memory(memory), module(parseModule(text)) {
  for (const Variable &variable : module.variables) {
    if (!isGlobal(variable) || variable.bytes == 0)
      continue;
    uint64_t address = memory.allocate(variable.bytes, "variable " + variable.name);
    if (!address)
      throw Fault("no room for variable " + variable.name + " of " + std::to_string(variable.bytes) +
                  " bytes");
    addresses[variable.name] = address;
    char *storage = memory.reach(address, variable.bytes, /*reads=*/false, /*writes=*/true, "loading");
    std::memset(storage, 0, variable.bytes);
    std::memcpy(storage, variable.initial.data(), std::min<size_t>(variable.initial.size(), variable.bytes));
  }
}

Program::~Program() {
  for (const auto &[name, address] : addresses)
    memory.free(address);
}

const Kernel *Program::kernel(const std::string &name) {
  if (auto found = decoded.find(name); found != decoded.end())
    return &found->second;
  for (const Function &function : module.functions)
    if (function.name == name && function.isEntry && function.hasBody)
      return &decoded
                  .emplace(name, decode(module, function,
                                        [&](const std::string &variable) { return addresses.at(variable); }))
                  .first->second;
  return nullptr;
}

std::pair<uint64_t, uint64_t> Program::variable(const std::string &name) const {
  for (const Variable &variable : module.variables)
    if (variable.name == name && addresses.count(name))
      return {addresses.at(name), variable.bytes};
  return {0, 0};
}

std::vector<std::string> Program::kernels() const {
  std::vector<std::string> names;
  for (const Function &function : module.functions)
    if (function.isEntry && function.hasBody)
      names.push_back(function.name);
  return names;
}

} // namespace softdevice

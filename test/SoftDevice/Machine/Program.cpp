//===- Program.cpp - a loaded PTX module ----------------------------------===//

#include "Program.h"

#include <cstring>
#include <mutex>

namespace softdevice {

static bool isGlobal(const Variable &variable) {
  return variable.space == "global" || variable.space == "const";
}

/// What a text says; processes load the same ones again and again.
static std::shared_ptr<const Module> parse(std::string_view text) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Module>, std::less<>> known;
  static constexpr size_t kMost = 64;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = known.find(text);
  if (found == known.end()) {
    auto made = std::make_shared<const Module>(parseModule(text));
    if (known.size() == kMost)
      known.clear();
    found = known.emplace(text, std::move(made)).first;
  }
  return found->second;
}

Program::Program(Memory &memory, std::string_view text)
    : memory(memory), parsed(parse(text)), module(*parsed) {
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
    if (function.name == name && function.isEntry && function.hasBody) {
      Function whole = function;
      parseBody(whole);
      return &decoded
                  .emplace(name, decode(module, whole,
                                        [&](const std::string &variable) { return addresses.at(variable); }))
                  .first->second;
    }
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

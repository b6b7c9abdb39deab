//===- DeviceOptions.cpp - what programs for devices cannot do ------------===//

#include "DeviceOptions.h"

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using dsopt::runtime::Error;
using dsopt::runtime::ParsedOptions;

namespace {
/// An option that programs for devices do not have, unless it is `without`.
struct Refused {
  llvm::StringLiteral option, without;
};
} // namespace

static constexpr Refused kRefused[] = {
    {"offload-optimizer", "none"}, {"offload-params", "none"}, {"offload-activations", "none"}};

void dsopt::checkDeviceOptions(ModuleOp module, const ParsedOptions &options) {
  if (!isForDevice(module)) {
    if (options.text("emit") == "ptx")
      throw Error(1, "-emit=ptx prints the kernels of a device: give -target=cuda");
    return;
  }
  for (const Refused &refused : kRefused) {
    std::string name = refused.option.str(), value = options.text(name);
    // What the module was built with, where nothing is given now.
    if (!options.has(name))
      value = getOption(module, optionKey(name), StringRef(refused.without)).str();
    bool isAsked = refused.without.empty() ? options.has(name) : value != refused.without;
    if (isAsked)
      throw Error(1,
                  "-" + name + (value.empty() ? "" : "=" + value) +
                      " is not available yet with -target=cuda: leave it out, or compile with -target=cpu");
  }
}

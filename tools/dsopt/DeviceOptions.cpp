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
    if (options.text("reduction") == "fast")
      throw Error(1,
                  "-reduction=fast leaves the order of sums to NCCL: give -target=cuda; between processors "
                  "the canonical order is as fast");
    if (getOption(module, "matmul_precision", StringRef("highest")) != "highest")
      throw Error(
          1, "-matmul-precision=high rounds fp32 products of a GPU to TF32, which CPUs do not have: leave it "
             "out, or compile with -target=cuda");
    return;
  }
  if (getOption(module, "precision", StringRef("fp32")) == "fp16")
    throw Error(
        1, "-precision=fp16 is not available yet with -target=cuda: give -precision=bf16, or compile with "
           "-target=cpu");
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

//===- DeviceOptions.cpp - what programs for devices cannot do ------------===//

#include "DeviceOptions.h"

#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using dsopt::runtime::Error;
using dsopt::runtime::ParsedOptions;

void dsopt::checkDeviceOptions(ModuleOp module, const ParsedOptions &options) {
  if (!isForDevice(module) && options.text("emit") == "ptx")
    throw Error(1, "-emit=ptx prints the kernels of a device: give -target=cuda");
}

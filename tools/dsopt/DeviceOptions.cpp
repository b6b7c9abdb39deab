//===- DeviceOptions.cpp - what programs for devices alone can do ---------===//

#include "DeviceOptions.h"

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using dsopt::runtime::Error;
using dsopt::runtime::ParsedOptions;

void dsopt::checkDeviceOptions(ModuleOp module, const ParsedOptions &options) {
  if (isForDevice(module))
    return;
  if (options.text("emit") == "ptx")
    throw Error(1, "-emit=ptx prints the kernels of a device: give -target=cuda");
  if (options.text("reduction") == "fast")
    throw Error(1, "-reduction=fast leaves the order of sums to NCCL: give -target=cuda; between processors "
                   "the canonical order is as fast");
  if (options::matmul_precision(module) != "highest")
    throw Error(
        1, "-matmul-precision=high rounds fp32 products of a GPU to TF32, which CPUs do not have: leave it "
           "out, or compile with -target=cuda");
}

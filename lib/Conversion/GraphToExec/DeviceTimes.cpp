//===- DeviceTimes.cpp - what segments take on a device -------------------===//

#include "DeviceTimes.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Costs.h"
#include "dsopt/Interfaces/Interfaces.h"

using namespace mlir;
using namespace dsopt;

/// Seconds of a call at the device's limits, 0 of what is none.
static double limitOf(Operation &op, const DeviceLimits &device, SymbolTableCollection &symbols) {
  auto counted = op.getAttrOfType<IntegerAttr>(exec::kFlopsAttr);
  if (!counted)
    return 0;
  if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
    auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernel());
    return device.limitSeconds(graph::writtenType(kernel), /*isProduct=*/false, counted.getInt(),
                               graph::bytesMoved(kernel));
  }
  CallDescription call = cast<RuntimeCallOpInterface>(op).describeCall();
  return device.limitSeconds(call.type, /*isProduct=*/true, counted.getInt(), call.bytes);
}

void dsopt::noteTime(func::FuncOp segment, const DeviceLimits &device, SymbolTableCollection &symbols) {
  double seconds = 0;
  for (Operation &op : segment.getBody().front())
    if (double limit = limitOf(op, device, symbols); limit > 0)
      seconds += limit / kReachedOfLimit + kLaunchSeconds;
  segment->setAttr(exec::kPicosecondsAttr,
                   Builder(segment.getContext()).getI64IntegerAttr(int64_t(seconds * 1e12)));
}

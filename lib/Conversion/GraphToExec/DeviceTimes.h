//===- DeviceTimes.h - what segments take on a device -----------*- C++ -*-===//

#ifndef DSOPT_LIB_CONVERSION_GRAPHTOEXEC_DEVICETIMES_H
#define DSOPT_LIB_CONVERSION_GRAPHTOEXEC_DEVICETIMES_H

#include "dsopt/Interfaces/DeviceLimits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dsopt {
/// Notes on a segment what its calls take (exec.picoseconds), by their flops and bytes and the device's
/// limits.
void noteTime(mlir::func::FuncOp segment, const DeviceLimits &device, mlir::SymbolTableCollection &symbols);
} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_GRAPHTOEXEC_DEVICETIMES_H

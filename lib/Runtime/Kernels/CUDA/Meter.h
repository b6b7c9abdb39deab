//===- Meter.h - when a CUDA device did what --------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_METER_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_METER_H

#include "Core/DeviceMeter.h"
#include "Kernels/CUDA/Calls.h"

namespace dsopt::runtime::cuda {

/// Marks are events; as many are made as a step needs.
class Meter final : public DeviceMeter {
public:
  explicit Meter(Calls &calls) : calls(calls) {}

  size_t mark() override;
  double milliseconds(size_t begin, size_t end) override;
  void restart() override { used = 0; }
  KernelFigures takeFigures() override;

private:
  Calls &calls;
  std::vector<Event> events;
  size_t used = 0;
};

/// Bytes a second that copies within the device's memory read and write.
double measureBandwidth(const Device &device);

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_METER_H

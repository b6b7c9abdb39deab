//===- DeviceMeter.h - when a device did what -------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DEVICEMETER_H
#define DSOPT_LIB_RUNTIME_CORE_DEVICEMETER_H

#include "dsopt/Runtime/Session.h"

#include <cstddef>

namespace dsopt::runtime {

/// Marks places in the work that goes to a device, and says how long it took from one to another.
class DeviceMeter {
public:
  virtual ~DeviceMeter() = default;
  /// The end of what the current stream has, as a number that counts on from 0.
  virtual size_t mark() = 0;
  /// Between two marks of a stream that the device has come by.
  virtual double milliseconds(size_t begin, size_t end) = 0;
  /// All marks may be used anew.
  virtual void restart() = 0;
  /// Of the program's kernel that was launched last and of the product that was called last, once each;
  /// without one since, nothing.
  virtual KernelFigures takeFigures() = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DEVICEMETER_H

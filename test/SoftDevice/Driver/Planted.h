//===- Planted.h - faults of a device on purpose ----------------*- C++ -*-===//
//
// "fault=KIND@DEVICE:NTH" of SOFT_DEVICE: the device fails with the NTH kernel or product
// that it runs (oom: that it is asked for). As on a device, a call says so
// that comes later, and from then on all do; but for oom, which one call says.
//
//   launch   unspecified launch failure
//   ecc      uncorrectable ECC error
//   illegal  illegal address
//   lost     the device is gone
//   oom      out of memory
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_DRIVER_PLANTED_H
#define DSOPT_TEST_SOFTDEVICE_DRIVER_PLANTED_H

#include "Timeline.h"

#include <string>

namespace softdevice {

/// What the device ends with.
struct DeviceFailure {
  int status;
  std::string text;
};

class Planted {
public:
  /// False if the text says nothing of the kind.
  bool parse(const std::string &text);
  /// A work of a device, which may fail.
  Work wrap(int onDevice, Work work);
  /// Throws where a device is asked for the work that it has no memory for.
  void ask(int onDevice);

private:
  bool isDue(int onDevice) { return onDevice == device && ++count == nth; }

  int status = 0, device = -1;
  int64_t nth = 0, count = 0;
  std::string kind;
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_DRIVER_PLANTED_H

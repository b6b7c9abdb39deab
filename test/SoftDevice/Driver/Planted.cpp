//===- Planted.cpp - faults of a device on purpose ------------------------===//

#include "Planted.h"

#include "Api.h"

#include <cstdlib>

namespace softdevice {

bool Planted::parse(const std::string &text) {
  static constexpr struct {
    const char *name;
    CUresult status;
  } kKinds[] = {{"launch", CUDA_ERROR_LAUNCH_FAILED},
                {"ecc", CUDA_ERROR_ECC_UNCORRECTABLE},
                {"illegal", CUDA_ERROR_ILLEGAL_ADDRESS},
                {"lost", CUDA_ERROR_UNKNOWN},
                {"oom", CUDA_ERROR_OUT_OF_MEMORY}};
  size_t at = text.find('@'), colon = text.find(':');
  if (at == std::string::npos || colon == std::string::npos || colon < at)
    return false;
  kind = text.substr(0, at);
  device = std::atoi(text.c_str() + at + 1);
  nth = std::atoll(text.c_str() + colon + 1);
  count = 0;
  for (const auto &[name, itsStatus] : kKinds)
    if (kind == name) {
      status = itsStatus;
      return nth > 0;
    }
  return false;
}

Work Planted::wrap(int onDevice, Work work) {
  if (onDevice != device || status == CUDA_ERROR_OUT_OF_MEMORY)
    return work;
  return [this, onDevice, work = std::move(work)](std::mt19937_64 &random) {
    if (isDue(onDevice))
      throw DeviceFailure{status, "planted fault '" + kind + "'"};
    return work(random);
  };
}

void Planted::ask(int onDevice) {
  if (status == CUDA_ERROR_OUT_OF_MEMORY && isDue(onDevice))
    throw DeviceFailure{status, "planted fault '" + kind + "'"};
}

} // namespace softdevice

//===- Written.h - marks of bytes, eight at a time --------------*- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_WRITTEN_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_WRITTEN_H

#include <cstdint>
#include <cstring>

namespace softdevice {

template <class T> inline T marksAt(const uint8_t *marks) {
  T made;
  std::memcpy(&made, marks, sizeof(T));
  return made;
}

/// Whether all marks are 1.
inline bool hasAll(const uint8_t *marks, uint32_t count) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  if (count == 4)
    return marksAt<uint32_t>(marks) == static_cast<uint32_t>(kOnes);
  uint64_t different = 0;
  uint32_t i = 0;
  for (; i + 8 <= count; i += 8)
    different |= marksAt<uint64_t>(marks + i) ^ kOnes;
  for (; i < count; ++i)
    different |= marks[i] ^ 1;
  return different == 0;
}

/// Whether a mark has a bit.
inline bool hasAny(const uint8_t *marks, uint32_t count, uint8_t bit) {
  uint64_t all = 0;
  uint32_t i = 0;
  for (; i + 8 <= count; i += 8)
    all |= marksAt<uint64_t>(marks + i);
  for (; i < count; ++i)
    all |= marks[i];
  return all & 0x0101010101010101 * bit;
}

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_WRITTEN_H

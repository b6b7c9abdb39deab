//===- Memory.h - a device's memory and its mirror on the host --*- C++ -*-===//
//
// A rank's device memory is one allocation, with the places that the program planned. The
// host has as many addresses, of which it touches what goes in or out: there are what is
// loaded, inputs, what other ranks take, and what is saved. Owns the device's part.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_MEMORY_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_MEMORY_H

#include "Kernels/CUDA/Driver.h"

namespace dsopt::runtime::cuda {

class Memory {
public:
  /// An Error of status 2 says how much is missing. `mirror` outlives it.
  Memory(const Device &device, char *mirror, int64_t bytes);
  ~Memory();
  Memory(const Memory &) = delete;

  bool contains(const void *mirrored) const { return mirrored >= mirror && mirrored < mirror + bytes; }
  /// Where the device has what the host has at `mirrored`; null stays null.
  char *onDevice(const void *mirrored) const;

  /// Keeps these mirrored bytes where the device finds them, so that copies go beside the host's work. Where
  /// the system refuses that they go through a buffer of the driver's.
  void pin(char *mirrored, int64_t count);

  /// Puts a copy of mirrored bytes on a stream. Until it is done the host leaves them alone.
  void upload(const void *mirrored, int64_t count, StreamHandle stream) const;
  void download(void *mirrored, int64_t count, StreamHandle stream) const;

private:
  char *mirror;
  int64_t bytes;
  Address address = 0;
  std::map<int64_t, int64_t> pinned; ///< pages of the mirror: first, end
};

/// Bytes of the host's, whole pages, that the device finds by itself; where the system refuses that, copies
/// go through a buffer of the driver's, which takes longer.
class PinnedRange {
public:
  PinnedRange(void *begin, int64_t bytes);
  ~PinnedRange();
  PinnedRange(const PinnedRange &) = delete;

  /// Where the system allows no more: what to say.
  std::string obstacle;

private:
  void *begin;
};

/// Memory of the host from which the device copies beside what the host does.
class Pinned {
public:
  explicit Pinned(int64_t bytes);
  ~Pinned();
  Pinned(const Pinned &) = delete;
  template <typename T> T *as() const { return static_cast<T *>(memory); }

private:
  void *memory = nullptr;
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_MEMORY_H

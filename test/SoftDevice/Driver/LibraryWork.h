//===- LibraryWork.h - work of libraries in streams -------------*- C++ -*-===//
//
// What stands in for a library of the toolkit puts its work into streams by this: it says
// which bytes the work reads and writes, and gets them where it may touch them when the
// work's turn comes. The checks are those of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_DRIVER_LIBRARYWORK_H
#define DSOPT_TEST_SOFTDEVICE_DRIVER_LIBRARYWORK_H

#include "Api.h"

#include <functional>
#include <string>
#include <vector>

namespace softdevice {

/// A batch of matrices: `count` times, `stride` bytes apart, `lines` of `bytes`, `pitch` bytes apart.
struct Region {
  CUdeviceptr address;
  uint64_t bytes, lines, pitch, count, stride;
  bool isRead, isWritten;
};

/// Gets the first byte of each region.
using LibraryWork = std::function<void(const std::vector<char *> &)>;

/// No byte may be written twice, nor read in one region and written in another.
__attribute__((visibility("default"))) CUresult submitLibraryWork(CUstream stream, const std::string &what,
                                                                  const std::vector<Region> &regions,
                                                                  LibraryWork work);

/// How many handles of a library are open: none, when the last context is given back.
__attribute__((visibility("default"))) void watchHandles(const std::string &what,
                                                         std::function<size_t()> count);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_DRIVER_LIBRARYWORK_H

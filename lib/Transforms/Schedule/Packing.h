//===- Packing.h - offsets for buffers that may share bytes -----*- C++ -*-===//
#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_PACKING_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_PACKING_H

#include "Lifetimes.h"

#include "llvm/ADT/StringMap.h"

namespace dsopt {

/// Where persistent buffers lie, by name: a rank's programs share them.
struct PersistentPlaces {
  llvm::StringMap<int64_t> offsets;
  int64_t end = 0;
  /// Places a program's persistent buffers behind what is there already.
  void place(const std::vector<BufferLife> &lives);
};

struct Packing {
  std::vector<int64_t> offsets; ///< by buffer
  int64_t arena = 0;
};

/// Places the buffers that are not persistent behind all that are, each at the lowest
/// offset that is free of those it clashes with, in several orders; the smallest
/// arena is kept.
Packing packBuffers(const std::vector<BufferLife> &lives, const PersistentPlaces &persistent);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_PACKING_H

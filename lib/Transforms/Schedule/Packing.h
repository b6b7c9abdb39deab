//===- Packing.h - offsets for buffers that may share bytes -----*- C++ -*-===//
#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_PACKING_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_PACKING_H

#include "Lifetimes.h"

namespace dsopt {

struct Packing {
  std::vector<int64_t> offsets; ///< by buffer
  int64_t arena = 0;
};

/// Places persistent buffers one after the other, then the others at the lowest
/// offset that is free of those they clash with, in several orders; the smallest
/// arena is kept.
Packing packBuffers(const std::vector<BufferLife> &lives);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_PACKING_H

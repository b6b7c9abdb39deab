//===- Descriptor.h - an open file that closes itself -----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_DESCRIPTOR_H
#define DSOPT_LIB_RUNTIME_DRIVER_DESCRIPTOR_H

#include "dsopt/Runtime/System.h"

#include <utility>

namespace dsopt::runtime {

struct Descriptor {
  int fd;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) : fd(other.release()) {}
  ~Descriptor() {
    if (fd >= 0)
      sys::close(fd);
  }
  int release() { return std::exchange(fd, -1); }
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_DESCRIPTOR_H

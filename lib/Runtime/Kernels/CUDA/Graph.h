//===- Graph.h - recorded work ----------------------------------*- C++ -*-===//
//
// What was put on a stream once, to be put there again by one call: the same kernels and
// copies with the same arguments, in the same order.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_GRAPH_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_GRAPH_H

#include "Kernels/CUDA/Driver.h"

#include <functional>

namespace dsopt::runtime::cuda {

class RecordedWork {
public:
  RecordedWork() = default;
  /// Records what `issue` puts on the stream, none of which is done now. An Error of status 2 where the
  /// driver cannot record it.
  RecordedWork(StreamHandle stream, const std::function<void()> &issue);
  ~RecordedWork();
  RecordedWork(RecordedWork &&other) : handle(other.handle) { other.handle = nullptr; }
  RecordedWork &operator=(RecordedWork &&other) {
    std::swap(handle, other.handle);
    return *this;
  }
  explicit operator bool() const { return handle; }

  /// Puts it on a stream, behind what is there.
  void launch(StreamHandle stream) const { DSOPT_CUDA(cuGraphLaunch, handle, stream); }

private:
  GraphExec handle = nullptr;
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_GRAPH_H

//===- Graph.cpp - recorded work -------------------------------------------===//

#include "Kernels/CUDA/Graph.h"

#include "dsopt/Runtime/Error.h"

namespace dsopt::runtime::cuda {

namespace {
constexpr char kWhere[] = ", while work was recorded as a CUDA graph (-cuda-graph=off does without)";

/// A stream that records as long as this lives, and the graph that comes of it.
class Recording {
public:
  explicit Recording(StreamHandle stream) : stream(stream) {
    DSOPT_CUDA(cuStreamBeginCapture_v2, stream, kCaptureThreadLocal);
    records = true;
  }
  ~Recording() {
    const Driver &driver = Driver::get();
    if (records)
      driver.cuStreamEndCapture(stream, &graph);
    if (graph)
      driver.cuGraphDestroy(graph);
  }
  Recording(const Recording &) = delete;
  Graph finish() {
    records = false;
    DSOPT_CUDA(cuStreamEndCapture, stream, &graph);
    return graph;
  }

private:
  StreamHandle stream;
  bool records = false;
  Graph graph = nullptr;
};
} // namespace

RecordedWork::RecordedWork(StreamHandle stream, const std::function<void()> &issue) {
  try {
    Recording recording(stream);
    issue();
    DSOPT_CUDA(cuGraphInstantiateWithFlags, &handle, recording.finish(), 0);
  } catch (const Failure &failure) {
    throw Failure(failure.what() + std::string(kWhere));
  } catch (const Error &error) {
    throw Error(error.status, error.what() + std::string(kWhere));
  }
}

RecordedWork::~RecordedWork() {
  if (handle)
    Driver::get().cuGraphExecDestroy(handle);
}

} // namespace dsopt::runtime::cuda

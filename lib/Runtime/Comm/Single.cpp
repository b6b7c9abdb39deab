//===- Single.cpp - the engine of one rank alone ---------------------------===//

#include "Kernels/CPU/Elementwise.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"

#include <cstring>

namespace dsopt::runtime {
namespace {

class SingleEngine final : public Engine {
public:
  SingleEngine() { becomeRank(0, 1); }
  const char *name() const override { return "single"; }
  void startGather(int, const Communicator &, const void *slice, void *target, int64_t bytes,
                   TrafficClass) override {
    if (slice != target)
      std::memmove(target, slice, bytes);
  }
  void startReduce(int, const Communicator &, Element type, const void *whole, void *target, int64_t elements,
                   bool accumulate) override {
    if (accumulate || whole != target)
      treeSum(type, &whole, 1, target, elements, accumulate);
  }
  void startSend(int, int peer, const void *, int64_t, uint64_t, TrafficClass) override { alone(peer); }
  void startRecv(int, int peer, void *, int64_t, uint64_t) override { alone(peer); }
  void startAllToAll(int, const Communicator &, const void *source, void *target, int64_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void startExchange(int, const Communicator &, const void *record, int64_t bytes, void *all) override {
    std::memcpy(all, record, bytes);
  }
  bool poll(int) override { return true; }
  Waker &waker() override { return own; }

private:
  Waker::Bell bell{};
  Waker own{bell, /*shared=*/false, {}};
  [[noreturn]] static void alone(int peer) {
    throw Error(StatusFailure, "a rank alone cannot exchange with rank " + std::to_string(peer));
  }
};

} // namespace

std::unique_ptr<Engine> makeSingleEngine() { return std::make_unique<SingleEngine>(); }

} // namespace dsopt::runtime

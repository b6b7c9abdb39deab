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
  bool poll(int) override { return true; }
  Waker &waker() override { return own; }

private:
  void beginGather(int, const Communicator &, const void *slice, void *target, int64_t bytes) override {
    if (slice != target)
      std::memmove(target, slice, bytes);
  }
  void beginReduce(int, const Communicator &, Element type, const void *whole, void *target, int64_t elements,
                   bool accumulate) override {
    if (accumulate || whole != target)
      treeSum(type, &whole, 1, target, elements, accumulate);
  }
  void beginSend(int, int peer, const void *, int64_t, uint64_t) override { alone(peer); }
  void beginRecv(int, int peer, void *, int64_t, uint64_t) override { alone(peer); }
  void beginAllToAll(int, const Communicator &, const void *source, void *target, int64_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void beginShift(int, const Communicator &, const void *source, void *target, int64_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void beginExchange(int, const Communicator &, const void *record, int64_t bytes, void *all) override {
    std::memcpy(all, record, bytes);
  }
  void beginAgreement(int, const Communicator &, int64_t *, const RecordShape &) override {}

  Waker::Bell bell{};
  Waker own{bell, /*shared=*/false, {}};
  [[noreturn]] static void alone(int peer) {
    throw Error(StatusFailure, "a rank alone cannot exchange with rank " + std::to_string(peer));
  }
};

} // namespace

std::unique_ptr<Engine> makeSingleEngine() { return std::make_unique<SingleEngine>(); }

} // namespace dsopt::runtime

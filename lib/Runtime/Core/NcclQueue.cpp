//===- NcclQueue.cpp - a queue of communication on a device ---------------===//

#include "Core/NcclQueue.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace dsopt::runtime {
namespace {

/// How long a rank to which NCCL says that something failed leaves the word to who knows more: a peer that
/// has failed, or the launcher. Of several the first one speaks.
constexpr std::chrono::milliseconds kOthersFirst{500}, kTurn{100};
constexpr int kTurns = 20;

class NcclQueue final : public ActionQueue {
public:
  NcclQueue(QueueOwner &owner, const NcclPlace &place, DeviceOrder &order, Engine &engine, int slot,
            const std::vector<NcclAction> &actions, const std::vector<Staged> &staged)
      : ActionQueue(owner), place(place), order(order), engine(engine), slot(slot), actions(actions),
        host(owner, place.memory, engine, slot, staged) {
    order.join(stream, /*computes=*/false);
    order.join(host.copyStream(), /*computes=*/false);
  }

  void reserve(size_t count) override {
    ActionQueue::reserve(count);
    flying.reserve(count);
  }

  bool poll() override {
    if (failure)
      return leaveToOthers();
    if (!isBusy() && host.isIdle() && waiting() < 0)
      return false;
    try {
      return drive();
    } catch (const nccl::Failure &error) {
      fail(error.what());
      return true;
    }
  }
  int64_t inFlight() const override {
    return first < flying.size() ? flying[first] : issuing >= 0 ? issuing : host.inFlight();
  }
  bool isWorking() const override { return isBusy() || failure || host.isWorking(); }
  void abandon() override {
    if (isBusy())
      place.world.abort();
    host.abandon();
    cuda::Driver::get().cuStreamSynchronize(stream);
  }

protected:
  bool isMet(int64_t dependency) const override {
    return owner.isComplete(dependency) || (actions[waiting()].group && order.isIssued(dependency));
  }

private:
  bool isBusy() const { return issuing >= 0 || first < flying.size(); }

  bool drive() {
    bool moved = host.poll();
    moved |= retire();
    // The engine knows first of peers that are no more.
    if (isBusy())
      engine.poll(slot);
    while (true) {
      if (issuing >= 0) {
        if (!actions[issuing].group->isSettled())
          return moved;
        goOn();
      } else {
        // In order: one takes its turn when the others before it are done.
        bool isHosts = waiting() >= 0 && !actions[waiting()].group;
        if (!host.isIdle() || (isHosts && isBusy()))
          return moved;
        int64_t action = takeReady();
        if (action < 0)
          return moved;
        if (isHosts)
          host.begin(action);
        else
          begin(action);
      }
      moved = true;
    }
  }

  /// What the device has done.
  bool retire() {
    bool moved = false;
    for (; first < flying.size() && order.takeDone(flying[first]); moved = true) {
      int64_t action = flying[first++];
      owner.communicated(since);
      owner.finish(action, since);
      since = QueueOwner::Clock::now();
    }
    if (first == flying.size()) {
      flying.clear();
      first = 0;
    } else {
      actions[flying[first]].group->isSettled();
    }
    return moved;
  }

  void begin(int64_t action) {
    if (!isBusy())
      since = QueueOwner::Clock::now();
    order.follow(stream, takenDependencies());
    issuing = action;
    offset = 0;
    const NcclAction &one = actions[action];
    owner.start(action, slot, QueueOwner::Clock::now());
    engine.countSent(one.traffic, one.sent);
    issue(one);
  }

  /// What was issued last is on the stream.
  void goOn() {
    const NcclAction &one = actions[issuing];
    if (one.kind == ActionKind::Reduce && !isFast(one)) {
      addPiece(one);
      offset += piece(one);
      if (offset < one.bytes) {
        issue(one);
        return;
      }
    }
    order.issue(issuing, stream);
    flying.push_back(std::exchange(issuing, -1));
  }

  /// One rank alone has no communicator of NCCL's.
  static bool isFast(const NcclAction &one) { return one.fast && one.group->size() > 1; }
  /// Bytes of each member's part that the staging buffer takes at once, and what is left of them.
  int64_t room(const NcclAction &one) const {
    int64_t bytes = place.stagingBytes / one.group->size() / 64 * 64;
    if (one.group->size() == 1)
      return one.bytes;
    if (bytes == 0)
      throw Error(StatusInput, "the program has no staging buffer for NCCL's reductions");
    return bytes;
  }
  int64_t piece(const NcclAction &one) const { return std::min(room(one), one.bytes - offset); }

  void issue(const NcclAction &one) {
    nccl::Communicator &group = *one.group;
    int self = group.self();
    transfers.clear();
    switch (one.kind) {
    case ActionKind::Gather:
      if (group.size() > 1)
        group.gather(one.source, one.target, one.bytes, stream);
      else if (one.source != one.target)
        copy(one.target, one.source, one.bytes);
      return;
    case ActionKind::AllToAll:
      copy(one.target + self * one.bytes, one.source + self * one.bytes, one.bytes);
      for (int peer = 0; peer < group.size(); ++peer)
        if (peer != self) {
          transfers.push_back({peer, one.source + peer * one.bytes, nullptr, one.bytes});
          transfers.push_back({peer, nullptr, one.target + peer * one.bytes, one.bytes});
        }
      break;
    case ActionKind::Shift:
      if (group.size() == 1) {
        copy(one.target, one.source, one.bytes);
        return;
      }
      transfers.push_back({(self + 1) % group.size(), one.source, nullptr, one.bytes});
      transfers.push_back({(self + group.size() - 1) % group.size(), nullptr, one.target, one.bytes});
      break;
    case ActionKind::Reduce:
      if (isFast(one)) {
        group.reduce(one.source, one.target, one.bytes / bytesOf(one.type), one.type, stream);
        return;
      }
      for (int peer = 0; peer < group.size(); ++peer)
        if (peer != self) {
          transfers.push_back({peer, one.source + peer * one.bytes + offset, nullptr, piece(one)});
          transfers.push_back({peer, nullptr, place.staging + peer * room(one), piece(one)});
        }
      break;
    case ActionKind::Send:
      transfers.push_back({1, one.source, nullptr, one.bytes});
      break;
    default: // Recv
      transfers.push_back({0, nullptr, one.target, one.bytes});
      break;
    }
    if (!transfers.empty())
      group.exchange(transfers, stream);
  }

  void addPiece(const NcclAction &one) {
    int64_t width = bytesOf(one.type);
    const nccl::Communicator &group = *one.group;
    place.world.sum.launch(stream, one.type,
                           {one.source + group.self() * one.bytes + offset, place.staging, room(one) / width,
                            group.self(), group.size()},
                           one.target + offset, piece(one) / width, one.accumulate);
  }

  void copy(char *target, const char *source, int64_t bytes) {
    DSOPT_CUDA(cuMemcpyDtoDAsync_v2, cuda::addressOf(target), cuda::addressOf(source),
               static_cast<size_t>(bytes), stream);
  }

  void fail(const char *what) {
    int64_t action = first < flying.size() ? flying[first] : issuing;
    failure.emplace(owner.failed(action, what));
    speaksAt = QueueOwner::Clock::now() + kOthersFirst + kTurn * std::min(engine.rank(), kTurns);
  }
  bool leaveToOthers() {
    // Throws what they say.
    engine.poll(slot);
    if (QueueOwner::Clock::now() < speaksAt)
      return false;
    throw *failure;
  }

  NcclPlace place;
  DeviceOrder &order;
  Engine &engine;
  int slot;
  const std::vector<NcclAction> &actions;
  StagedFlight host;
  cuda::Stream stream;
  std::vector<nccl::Transfer> transfers; ///< of the operation that is issued
  int64_t issuing = -1, offset = 0;      ///< the action that goes to the stream, and how far a reduction is
  std::vector<int64_t> flying;           ///< from `first` on
  size_t first = 0;
  QueueOwner::Clock::time_point since, speaksAt;
  std::optional<Error> failure;
};

} // namespace

std::unique_ptr<ActionQueue> makeNcclQueue(QueueOwner &owner, const NcclPlace &place, DeviceOrder &order,
                                           Engine &engine, int slot, const std::vector<NcclAction> &actions,
                                           const std::vector<Staged> &staged) {
  return std::make_unique<NcclQueue>(owner, place, order, engine, slot, actions, staged);
}

} // namespace dsopt::runtime

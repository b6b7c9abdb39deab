//===- AsyncSave.cpp - a checkpoint while steps go on ----------------------===//

#include "Core/AsyncSave.h"
#include "Core/ThreadPool.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <system_error>

namespace dsopt::runtime {

AsyncSave::AsyncSave(const SavePlan &plan, Engine &engine, int64_t stagingBytes, std::vector<int> cpus,
                     RemoteState *remote)
    : plan(plan), engine(engine), cpus(std::move(cpus)), remote(remote), staging(allocateArena(stagingBytes)),
      stagingBytes(stagingBytes) {
  if (remote)
    remote->bringTo(staging, stagingBytes);
  const Position &position = plan.program.positions[plan.info.position];
  std::map<int64_t, size_t> numbers; // of regions, by buffer
  auto add = [&](int64_t index) {
    if (!numbers.emplace(index, regions.size()).second)
      return;
    const Buffer &buffer = position.buffers[index];
    const char *begin = plan.addresses.at(buffer);
    regions.push_back({begin, begin + (buffer.slots - 1) * buffer.stride + buffer.bytes});
  };
  // What is changed first is taken first.
  for (const Action &action : position.actions)
    for (int64_t index : action.changes)
      add(index);
  auto regionOf = [&](size_t piece) {
    int64_t index = plan.saved.held[plan.segments[plan.pieces[piece].segment].held].buffer.buffer;
    add(index);
    return numbers.at(index);
  };
  order.resize(plan.pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<size_t> regionOfPiece;
  for (size_t piece : order)
    regionOfPiece.push_back(regionOf(piece));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(regionOfPiece[a], a) < std::pair(regionOfPiece[b], b);
  });
  std::vector<StreamPiece> pieces;
  for (size_t piece : order)
    pieces.push_back({plan.pieces[piece].address, plan.pieces[piece].end - plan.pieces[piece].begin,
                      regionOfPiece[piece]});
  stream = std::make_unique<StateStream>(std::move(pieces), regions.size(), staging, stagingBytes,
                                         engine.waker(), remote);
}

AsyncSave::~AsyncSave() {
  stream->end();
  join();
  if (remote)
    remote->bringTo(nullptr, 0);
  sys::munmap(staging, stagingBytes);
}

void AsyncSave::start(std::function<void()> body) {
  done = false;
  failure = nullptr;
  try {
    thread = startThread([this, body = std::move(body)] {
      placeThread(cpus);
      try {
        body();
      } catch (...) {
        failure = std::current_exception();
      }
      done = true;
      engine.waker().ring();
    });
  } catch (...) {
    done = true;
    throw;
  }
}

void AsyncSave::join() {
  if (thread.joinable())
    thread.join();
}

void AsyncSave::check() {
  if (!done || !failure)
    return;
  join();
  std::rethrow_exception(failure);
}

void AsyncSave::fetchShared() const {
  for (const auto *ranges : {&plan.units, &plan.chunks})
    for (const SharedRange &range : *ranges)
      for (size_t i = range.first; i < range.last; ++i) {
        const Segment &segment = plan.segments[i];
        if (segment.rank != plan.info.rank)
          continue;
        int64_t begin = std::max(segment.begin, range.begin), end = std::min(segment.end, range.end);
        char *address = plan.addressOf(segment, begin);
        if (remote->has(address))
          remote->fetch(address, address, end - begin);
      }
}

void AsyncSave::begin(std::unique_ptr<Saver> next, std::function<void()> whenNamed) {
  if (remote)
    fetchShared();
  next->begin();
  saver = std::move(next);
  named = std::move(whenNamed);
  stream->begin();
  stage = Stage::Writing;
  start([this] {
    while (auto taken = stream->next()) {
      saver->write(plan.pieces[order[taken->piece]], taken->bytes);
      stream->release(*taken);
    }
    if (!stream->hasEnded())
      saver->finish();
  });
}

void AsyncSave::agree() {
  join();
  check();
  saver->agree();
  stage = Stage::Naming;
  if (plan.info.rank == 0)
    start([this] {
      saver->commit();
      named();
    });
}

void AsyncSave::finish() {
  if (stage == Stage::None)
    return;
  if (stage == Stage::Writing)
    agree();
  join();
  check();
  engine.barrier();
  saver.reset();
  stage = Stage::None;
}

std::vector<size_t> AsyncSave::regionsIn(const char *begin, const char *end) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < regions.size(); ++i)
    if (regions[i].begin < end && begin < regions[i].end)
      found.push_back(i);
  return found;
}

bool AsyncSave::take(const std::vector<size_t> &which) {
  check();
  return std::any_of(which.begin(), which.end(), [&](size_t region) { return stream->stage(region); });
}

} // namespace dsopt::runtime

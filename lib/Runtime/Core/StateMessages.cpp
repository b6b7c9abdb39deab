//===- StateMessages.cpp - state that ranks hand to each other -------------===//

#include "Core/StateMessages.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {

/// What state on disk goes by way of, null where `held` is not there: the host's largest buffer that lives
/// within a step. There is one: steps bring what lies on disk to the host.
static const Buffer *findWindow(const Position &position, const Ref &held) {
  auto kindOf = [&](const Buffer &buffer) { return position.memories[buffer.memory].kind; };
  if (kindOf(position.buffers[held.buffer]) != MemoryKind::Disk)
    return nullptr;
  const Buffer *window = nullptr;
  for (const Buffer &buffer : position.buffers)
    if (kindOf(buffer) == MemoryKind::Host && !buffer.persistent && buffer.symbol.empty() &&
        buffer.bytes > 0 && (!window || buffer.bytes > window->bytes))
      window = &buffer;
  if (!window)
    throw Error(StatusInput, "program table: nothing brings buffer '" + position.buffers[held.buffer].name +
                                 "' from disk to the host");
  return window;
}

static const Position &positionOf(const Program &program, int rank) {
  return program.positions[rankInfo(program, rank).position];
}

void sendState(Engine &engine, const Program &program, const Addresses &addresses, const Ref &held, int to,
               const char *source, int64_t bytes, uint64_t tag) {
  const Buffer *window = findWindow(positionOf(program, engine.rank()), held);
  for (int64_t at = 0, piece; at < bytes; at += piece) {
    piece = window ? std::min(window->bytes, bytes - at) : bytes;
    const char *from = source + at;
    if (window)
      from = static_cast<const char *>(std::memcpy(addresses.at(*window), from, piece));
    engine.startSend(Engine::kControlSlot, to, from, piece, tag, TrafficClass::Control);
    engine.complete(Engine::kControlSlot);
  }
}

void receiveState(Engine &engine, const Program &program, const Ref &held, int from, char *target,
                  int64_t bytes, uint64_t tag) {
  const Buffer *window = findWindow(positionOf(program, from), held);
  for (int64_t at = 0, piece; at < bytes; at += piece) {
    piece = window ? std::min(window->bytes, bytes - at) : bytes;
    engine.startRecv(Engine::kControlSlot, from, target + at, piece, tag);
    engine.complete(Engine::kControlSlot);
  }
}

} // namespace dsopt::runtime

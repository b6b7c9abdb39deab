//===- StateStream.cpp - state that is taken while steps go on -------------===//

#include "Core/StateStream.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {

StateStream::StateStream(std::vector<StreamPiece> given, size_t regions, char *staging, int64_t stagingBytes,
                         Waker &waker, RemoteState *remote)
    : pieces(std::move(given)), staging(staging), stagingBytes(stagingBytes), waker(waker), remote(remote),
      left(regions), claimed(pieces.size(), true), cursor(pieces.size()), cursors(regions), ends(regions) {
  int64_t most = 0;
  for (const StreamPiece &piece : pieces)
    if (isRemote(piece))
      most = std::max(most, piece.bytes);
  this->stagingBytes -= most;
  fetched = staging + this->stagingBytes;
  for (size_t i = 0; i < pieces.size(); ++i)
    ends[pieces[i].region] = i + 1;
  staged.reserve(pieces.size());
}

void StateStream::begin() {
  std::fill(claimed.begin(), claimed.end(), false);
  cursor = first = 0;
  staged.clear();
  ended = false;
  for (std::atomic<int64_t> &count : left)
    count = 0;
  for (size_t i = pieces.size(); i-- > 0;) {
    cursors[pieces[i].region] = i;
    left[pieces[i].region].fetch_add(1);
  }
}

std::optional<StateStream::Taken> StateStream::next() {
  if (ended)
    return std::nullopt;
  std::unique_lock<std::mutex> lock(mutex);
  if (first < staged.size())
    return Taken{staged[first].piece, staging + staged[first].begin, true};
  while (cursor < pieces.size() && claimed[cursor])
    ++cursor;
  if (cursor == pieces.size())
    return std::nullopt;
  claimed[cursor] = true;
  size_t taken = cursor;
  const StreamPiece &piece = pieces[taken];
  if (!isRemote(piece))
    return Taken{taken, piece.address};
  lock.unlock();
  remote->fetch(fetched, piece.address, piece.bytes);
  left[piece.region].fetch_sub(1, std::memory_order_release);
  waker.ring();
  return Taken{taken, fetched, /*isStaged=*/false, /*isFetched=*/true};
}

void StateStream::release(const Taken &taken) {
  if (taken.isStaged) {
    std::lock_guard<std::mutex> lock(mutex);
    ++first;
  } else if (!taken.isFetched) {
    left[pieces[taken.piece].region].fetch_sub(1, std::memory_order_release);
  }
  waker.ring();
}

int64_t StateStream::findRoom(int64_t bytes) const {
  if (first == staged.size())
    return bytes <= stagingBytes ? 0 : -1;
  int64_t begin = staged[first].begin, end = staged.back().end;
  if (end <= begin) // goes on at the beginning
    return bytes <= begin - end ? end : -1;
  if (bytes <= stagingBytes - end)
    return end;
  return bytes <= begin ? 0 : -1;
}

bool StateStream::stage(size_t region) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t &at = cursors[region];
  while (at < ends[region] && claimed[at])
    ++at;
  if (at >= ends[region])
    return false;
  const StreamPiece &piece = pieces[at];
  int64_t room = findRoom(piece.bytes);
  if (room < 0)
    return false;
  if (isRemote(piece))
    remote->fetch(staging + room, piece.address, piece.bytes);
  else
    std::memcpy(staging + room, piece.address, piece.bytes);
  staged.push_back({at, room, room + piece.bytes});
  claimed[at] = true;
  left[region].fetch_sub(1, std::memory_order_relaxed);
  return true;
}

} // namespace dsopt::runtime

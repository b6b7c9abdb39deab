//===- StateStream.h - state that is taken while steps go on ----*- C++ -*-===//
//
// Pieces of memory that a writer takes one after the other, while actions wait for
// those that they are about to change. What the writer does not come to in time the
// waiting rank copies into a staging buffer, where it waits for the writer instead.
// What a device has both of them bring: the waiting rank to the staging buffer, the writer
// to the end of it, where there is room for one piece.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_STATESTREAM_H
#define DSOPT_LIB_RUNTIME_CORE_STATESTREAM_H

#include "dsopt/Runtime/Waker.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace dsopt::runtime {

/// Bytes of one region, which is held as a whole.
struct StreamPiece {
  const char *address = nullptr;
  int64_t bytes = 0;
  size_t region = 0;
};

/// State that the host has to bring from elsewhere, by its addresses in the host's mirror.
class RemoteState {
public:
  virtual ~RemoteState() = default;
  virtual bool has(const char *address) const = 0;
  /// By any thread; returns when the bytes are there.
  virtual void fetch(char *to, const char *from, int64_t bytes) = 0;
  /// Where most bytes are brought to from now on; null: nowhere any more.
  virtual void bringTo(char *begin, int64_t bytes) = 0;
};

class StateStream {
public:
  /// Pieces of a region lie side by side in `pieces`, which are taken in their order. What is waited for
  /// rings the waker. `remote`: what has some of them, if any.
  StateStream(std::vector<StreamPiece> pieces, size_t regions, char *staging, int64_t stagingBytes,
              Waker &waker, RemoteState *remote = nullptr);

  /// All pieces are to be taken anew; nobody takes any.
  void begin();

  // The writer's, one at a time.
  struct Taken {
    size_t piece = 0;
    const char *bytes = nullptr;
    bool isStaged = false;
    bool isFetched = false; ///< nothing waits for it any more
  };
  /// The next piece and where it lies now; none when all were taken, or it is over.
  std::optional<Taken> next();
  /// It is written.
  void release(const Taken &taken);
  /// No more pieces are taken.
  void end() { ended = true; }
  bool hasEnded() const { return ended; }

  // By the thread that runs actions.
  /// Whether something of the region is still to be taken.
  bool holds(size_t region) const { return left[region].load(std::memory_order_acquire) > 0; }
  /// Copies a piece of the region into the staging buffer; false if there is none that nobody takes, or no
  /// room.
  bool stage(size_t region);

private:
  struct Staged {
    size_t piece;
    int64_t begin, end;
  };
  /// Where so many bytes fit behind those that are staged, -1: nowhere.
  int64_t findRoom(int64_t bytes) const;
  bool isRemote(const StreamPiece &piece) const { return remote && remote->has(piece.address); }

  std::vector<StreamPiece> pieces;
  char *staging;
  int64_t stagingBytes;
  Waker &waker;
  RemoteState *remote;
  char *fetched = nullptr;                ///< where the writer brings a piece
  std::vector<std::atomic<int64_t>> left; ///< pieces of each region
  std::atomic<bool> ended{false};

  std::mutex mutex; ///< of all that follows
  std::vector<char> claimed;
  size_t cursor = 0;           ///< before it all are claimed
  std::vector<size_t> cursors; ///< the same in each region
  std::vector<size_t> ends;    ///< of the regions
  std::vector<Staged> staged;  ///< from `first` on not written yet
  size_t first = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_STATESTREAM_H

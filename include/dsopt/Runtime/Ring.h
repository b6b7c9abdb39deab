//===- Ring.h - reads and writes that go on at once (io_uring) --*- C++ -*-===//
//
// Part of the seam of System.h: results and errno are the system's, and `DSOPT_FAULT`
// strikes each read and write by itself.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_RING_H
#define DSOPT_RUNTIME_RING_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/types.h>

struct io_uring_sqe;
struct io_uring_cqe;

namespace dsopt::runtime::sys {

class Ring {
public:
  Ring() = default;
  ~Ring();
  Ring(const Ring &) = delete;

  /// Room for `depth` at once; -1 and errno where the kernel has no rings, or allows none.
  int open(unsigned depth);
  bool isOpen() const { return fd >= 0; }

  /// Whether there is room for one more.
  bool hasRoom() const { return !idle.empty(); }
  /// Prepares a read or a write; `data` stays until it is taken.
  void read(int file, void *data, size_t bytes, off_t offset, uint64_t tag) {
    prepare(file, static_cast<char *>(data), bytes, offset, tag, /*reads=*/true);
  }
  void write(int file, const void *data, size_t bytes, off_t offset, uint64_t tag) {
    prepare(file, const_cast<char *>(static_cast<const char *>(data)), bytes, offset, tag, /*reads=*/false);
  }
  /// Starts what was prepared and returns when one is complete. -1 and errno: nothing more can be started.
  int enter();
  /// Takes one that is complete: bytes, or a negative errno. False: there is none.
  bool take(uint64_t &tag, ssize_t &result);

private:
  /// One under way.
  struct Flight {
    uint64_t tag = 0;
    char *data = nullptr;
    size_t bytes = 0;
    long flipped = -1;
    int error = 0; ///< it was not started
    bool reads = false;
  };
  void prepare(int file, char *data, size_t bytes, off_t offset, uint64_t tag, bool reads);

  int fd = -1;
  char *rings = nullptr;
  io_uring_sqe *entries = nullptr;
  size_t ringBytes = 0, entryBytes = 0;
  unsigned *submitTail = nullptr, *submitOrder = nullptr, *completeHead = nullptr, *completeTail = nullptr;
  io_uring_cqe *completions = nullptr;
  unsigned submitMask = 0, completeMask = 0, prepared = 0;
  std::vector<Flight> flights;
  std::vector<unsigned> idle, struck; ///< indices of flights: free ones, and those that failed on purpose
};

} // namespace dsopt::runtime::sys

#endif // DSOPT_RUNTIME_RING_H

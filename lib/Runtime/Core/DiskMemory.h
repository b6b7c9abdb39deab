//===- DiskMemory.h - a rank's memory on disk -------------------*- C++ -*-===//
//
// One file without a name in the folder of -nvme-path, all of its bytes reserved before
// step 0; it is gone when the process is. What a step brings from there and takes back
// goes through direct I/O, on a thread of its own. What loads and saves the state does
// so by address: the file is mapped as well.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DISKMEMORY_H
#define DSOPT_LIB_RUNTIME_CORE_DISKMEMORY_H

#include "dsopt/Runtime/Ring.h"
#include "dsopt/Runtime/Session.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dsopt::runtime {

/// Bytes on their way from the disk's memory or to it. Whoever submits it keeps it until it is complete.
struct DiskTransfer {
  char *to = nullptr;
  const char *from = nullptr;
  int64_t bytes = 0;

private:
  friend class DiskMemory;
  std::atomic<bool> complete{true};
  int error = 0; ///< errno
  DiskTransfer *next = nullptr;
};

class DiskMemory {
public:
  /// An Error names the folder and what it lacks. `waker` is rung when a transfer is complete.
  DiskMemory(std::string folder, int64_t bytes, int rank, const DiskOptions &options, Waker &waker);
  ~DiskMemory();
  DiskMemory(const DiskMemory &) = delete;

  /// Where its bytes are mapped.
  char *begin() const { return memory; }
  /// What keeps it from direct I/O, or from more than one request at once; empty: nothing.
  const std::string &obstacle() const { return notDirect; }

  /// One address of the transfer lies in this memory.
  void submit(DiskTransfer &transfer);
  /// Whether it is complete; an Error of status 2 if it failed.
  bool poll(const DiskTransfer &transfer) const;
  /// Returns when it is complete, whether it failed or not.
  void wait(const DiskTransfer &transfer);

  /// What was changed by address is on disk from here on, and takes no memory. An Error if it failed.
  void settle();

private:
  void open();
  void reserve();
  void openDirectly();
  void work();
  /// An errno, 0 where all was moved.
  int move(const DiskTransfer &transfer);
  int move(int file, char *at, int64_t place, int64_t bytes, bool reads) const;
  /// Whole blocks, many at once.
  int moveBlocks(char *at, int64_t place, int64_t bytes, bool reads);
  bool holds(const char *address) const { return address >= memory && address < memory + bytes; }
  [[noreturn]] void failed(int status, const std::string &what, int error) const;
  void close();

  std::string folder;
  int64_t bytes;
  int rank;
  Waker &waker;
  int file = -1, direct = -1; ///< the same file
  char *memory = nullptr;
  DiskOptions options;
  std::string notDirect;
  sys::Ring ring; ///< the thread's

  std::mutex mutex;
  std::condition_variable submitted, completed;
  DiskTransfer *first = nullptr, *last = nullptr;
  bool ending = false;
  std::thread thread;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DISKMEMORY_H

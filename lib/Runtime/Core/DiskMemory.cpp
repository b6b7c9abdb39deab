//===- DiskMemory.cpp - a rank's memory on disk ----------------------------===//

#include "Core/DiskMemory.h"
#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Mappings.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dsopt::runtime {

/// Of places, addresses and lengths: no file system asks for more.
static constexpr int64_t kBlock = 4096;
/// Less than what a call moves at most.
static constexpr int64_t kPiece = 1 << 30;

DiskMemory::DiskMemory(std::string folder, int64_t bytes, int rank, const DiskOptions &options, Waker &waker)
    : folder(std::move(folder)), bytes(bytes), rank(rank), waker(waker), options(options) {
  try {
    open();
    reserve();
    openDirectly();
    void *mapped = sys::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
      failed(StatusFailure, "map", errno);
    memory = static_cast<char *>(mapped);
  } catch (...) {
    close();
    throw;
  }
  registerMapping(memory, bytes, this->folder + " (the file of rank " + std::to_string(rank) + ")");
  thread = startThread([this] { work(); });
}

DiskMemory::~DiskMemory() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  submitted.notify_one();
  thread.join();
  close();
}

void DiskMemory::close() {
  if (memory) {
    forgetMapping(memory);
    sys::munmap(memory, bytes);
  }
  for (int one : {file, direct})
    if (one >= 0)
      sys::close(one);
}

void DiskMemory::failed(int status, const std::string &what, int error) const {
  throw Error(status, folder + ": rank " + std::to_string(rank) + " cannot " + what +
                          " its file there (-nvme-path): " + std::strerror(error));
}

void DiskMemory::open() {
  file = sys::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0)
    return;
  // EISDIR: of kernels and file systems that do not know of files without names.
  if (errno != EOPNOTSUPP && errno != EISDIR)
    failed(statusOfCreating(errno), "make", errno);
  std::string name = folder + "/dsopt-" + std::to_string(getpid()) + "-" + std::to_string(rank);
  file = sys::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || sys::unlink(name.c_str()) != 0)
    failed(statusOfCreating(errno), "make", errno);
}

void DiskMemory::reserve() {
  int result = sys::fallocate(file, 0, 0, bytes);
  // A file system that reserves nothing by itself is made to by writing.
  if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
    std::vector<char> zeros(std::min<int64_t>(bytes, 1 << 20));
    result = 0;
    for (int64_t at = 0; at < bytes && result == 0;) {
      ssize_t written = sys::pwrite(file, zeros.data(), std::min<int64_t>(zeros.size(), bytes - at), at);
      if (written < 0 && errno != EINTR)
        result = -1;
      at += std::max<ssize_t>(written, 0);
    }
  }
  if (result == 0)
    return;
  if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
    failed(StatusFailure, "reserve", errno);
  int error = errno;
  struct statvfs info{};
  std::string free = sys::fstatvfs(file, &info) == 0
                         ? std::to_string(static_cast<uint64_t>(info.f_bavail) * info.f_frsize)
                         : "an unknown number of";
  throw Error(StatusFailure, folder + ": rank " + std::to_string(rank) + " needs " + std::to_string(bytes) +
                                 " bytes of disk there (-nvme-path), where " + free +
                                 " are free: " + std::strerror(error));
}

/// The file once more, past the page cache.
void DiskMemory::openDirectly() {
  std::string path = "/proc/self/fd/" + std::to_string(file);
  direct = sys::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  // Some file systems take the flag and refuse what is done with it.
  alignas(kBlock) char block[kBlock];
  if (direct >= 0 && sys::pread(direct, block, std::min(bytes, kBlock), 0) < 0) {
    int error = errno;
    sys::close(std::exchange(direct, -1));
    errno = error;
  }
  if (direct < 0)
    notDirect = folder + ": no direct I/O there (" + std::strerror(errno) +
                "): what is kept on disk goes through the page cache";
  else if (ring.open(static_cast<unsigned>(options.queueDepth)) != 0)
    notDirect = folder + ": no io_uring here (" + std::strerror(errno) +
                "): what is kept on disk is read and written one block after the other";
}

void DiskMemory::submit(DiskTransfer &transfer) {
  transfer.error = 0;
  transfer.next = nullptr;
  transfer.complete.store(false, std::memory_order_relaxed);
  {
    std::lock_guard<std::mutex> lock(mutex);
    (first ? last->next : first) = &transfer;
    last = &transfer;
  }
  submitted.notify_one();
}

bool DiskMemory::poll(const DiskTransfer &transfer) const {
  if (!transfer.complete.load(std::memory_order_acquire))
    return false;
  if (transfer.error)
    failed(StatusFailure, holds(transfer.from) ? "read" : "write", transfer.error);
  return true;
}

void DiskMemory::wait(const DiskTransfer &transfer) {
  std::unique_lock<std::mutex> lock(mutex);
  completed.wait(lock, [&] { return transfer.complete.load(); });
}

void DiskMemory::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    submitted.wait(lock, [this] { return first || ending; });
    if (!first)
      return;
    DiskTransfer *transfer = std::exchange(first, first->next);
    lock.unlock();
    transfer->error = move(*transfer);
    lock.lock();
    transfer->complete.store(true, std::memory_order_release);
    completed.notify_all();
    waker.ring();
  }
}

int DiskMemory::move(const DiskTransfer &transfer) {
  bool reads = holds(transfer.from);
  char *at = reads ? transfer.to : const_cast<char *>(transfer.from);
  int64_t place = (reads ? transfer.from : transfer.to) - memory;
  bool isAligned = place % kBlock == 0 && reinterpret_cast<uintptr_t>(at) % kBlock == 0;
  // The last bytes of a buffer may be no block.
  int64_t blocks = direct >= 0 && isAligned ? transfer.bytes / kBlock * kBlock : 0;
  if (int error =
          ring.isOpen() ? moveBlocks(at, place, blocks, reads) : move(direct, at, place, blocks, reads))
    return error;
  return move(file, at + blocks, place + blocks, transfer.bytes - blocks, reads);
}

int DiskMemory::move(int with, char *at, int64_t place, int64_t count, bool reads) const {
  for (int64_t done = 0; done < count;) {
    int64_t piece = std::min(count - done, kPiece);
    ssize_t moved = reads ? sys::pread(with, at + done, piece, place + done)
                          : sys::pwrite(with, at + done, piece, place + done);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved <= 0)
      return moved < 0 ? errno : EIO;
    done += moved;
    // What is left begins within a block.
    if (done % kBlock)
      with = file;
  }
  return 0;
}

int DiskMemory::moveBlocks(char *at, int64_t place, int64_t count, bool reads) {
  int64_t size = options.blockSize, next = 0, flying = 0;
  int error = 0;
  while (flying > 0 || (next < count && !error)) {
    for (; next < count && !error && ring.hasRoom(); next += size, ++flying) {
      int64_t piece = std::min(size, count - next);
      if (reads)
        ring.read(direct, at + next, piece, place + next, next);
      else
        ring.write(direct, at + next, piece, place + next, next);
    }
    // What flies may still touch the memory, and nobody else can tell when it ends.
    if (ring.enter() != 0) {
      std::fprintf(stderr, "dsopt: error: %s: rank %d cannot %s its file there (-nvme-path): io_uring: %s\n",
                   folder.c_str(), rank, reads ? "read" : "write", std::strerror(errno));
      std::abort();
    }
    uint64_t tag = 0;
    for (ssize_t moved = 0; ring.take(tag, moved); --flying) {
      auto first = static_cast<int64_t>(tag);
      int64_t piece = std::min(size, count - first);
      if (moved < 0)
        error = error ? error : static_cast<int>(-moved);
      else if (moved == 0)
        error = error ? error : EIO;
      else if (moved < piece && !error)
        error = move(moved % kBlock ? file : direct, at + first + moved, place + first + moved, piece - moved,
                     reads);
    }
  }
  return error;
}

void DiskMemory::settle() {
  if (sys::fsync(file) != 0)
    failed(StatusFailure, "write", errno);
  sys::madvise(memory, bytes, MADV_DONTNEED);
  posix_fadvise(file, 0, bytes, POSIX_FADV_DONTNEED);
}

} // namespace dsopt::runtime

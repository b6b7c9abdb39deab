//===- Ring.cpp - io_uring by its system calls ----------------------------===//

#include "dsopt/Runtime/Ring.h"
#include "Strike.h"
#include "dsopt/Runtime/Liveness.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dsopt::runtime::fault;

namespace dsopt::runtime::sys {

int Ring::open(unsigned depth) {
  Strike strike = before(Call::ring);
  if (strike.ends())
    return -1;
  io_uring_params params{};
  fd = static_cast<int>(syscall(SYS_io_uring_setup, depth, &params));
  if (fd < 0)
    return -1;
  ringBytes = std::max(params.sq_off.array + params.sq_entries * sizeof(unsigned),
                       params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe));
  entryBytes = params.sq_entries * sizeof(io_uring_sqe);
  auto map = [&](size_t bytes, off_t offset) {
    void *mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
    return mapped == MAP_FAILED ? nullptr : static_cast<char *>(mapped);
  };
  bool isSingle = params.features & IORING_FEAT_SINGLE_MMAP;
  rings = isSingle ? map(ringBytes, IORING_OFF_SQ_RING) : nullptr;
  entries = rings ? reinterpret_cast<io_uring_sqe *>(map(entryBytes, IORING_OFF_SQES)) : nullptr;
  if (!entries) {
    int error = isSingle ? errno : ENOSYS;
    ::close(fd);
    fd = -1;
    errno = error;
    return -1;
  }
  auto at = [&](unsigned offset) { return reinterpret_cast<unsigned *>(rings + offset); };
  submitTail = at(params.sq_off.tail);
  submitMask = *at(params.sq_off.ring_mask);
  submitOrder = at(params.sq_off.array);
  completeHead = at(params.cq_off.head);
  completeTail = at(params.cq_off.tail);
  completeMask = *at(params.cq_off.ring_mask);
  completions = reinterpret_cast<io_uring_cqe *>(rings + params.cq_off.cqes);
  flights.resize(std::min(depth, params.sq_entries));
  idle.resize(flights.size());
  std::iota(idle.begin(), idle.end(), 0u);
  struck.reserve(flights.size());
  return 0;
}

Ring::~Ring() {
  if (entries)
    ::munmap(entries, entryBytes);
  if (rings)
    ::munmap(rings, ringBytes);
  if (fd >= 0)
    ::close(fd);
}

void Ring::prepare(int file, char *data, size_t bytes, off_t offset, uint64_t tag, bool reads) {
  Strike strike = before(reads ? Call::ringRead : Call::ringWrite);
  unsigned index = idle.back();
  idle.pop_back();
  flights[index] = {tag, data, bytes, strike.flipped, strike.error, reads};
  if (strike.error) {
    struck.push_back(index);
    return;
  }
  if (!reads)
    strike.flip(data, bytes);
  unsigned tail = *submitTail;
  io_uring_sqe &entry = entries[tail & submitMask];
  std::memset(&entry, 0, sizeof entry);
  entry.opcode = reads ? IORING_OP_READ : IORING_OP_WRITE;
  entry.fd = file;
  entry.addr = reinterpret_cast<uint64_t>(data);
  entry.len = static_cast<unsigned>(strike.share(bytes));
  entry.off = static_cast<uint64_t>(offset);
  entry.user_data = index;
  submitOrder[tail & submitMask] = tail & submitMask;
  __atomic_store_n(submitTail, tail + 1, __ATOMIC_RELEASE);
  ++prepared;
}

int Ring::enter() {
  beat(); // a rank that moves bytes of files gets on
  if (before(Call::ringEnter).ends())
    return -1;
  unsigned least = struck.empty() ? 1 : 0;
  while (true) {
    long started = syscall(SYS_io_uring_enter, fd, prepared, least, IORING_ENTER_GETEVENTS, nullptr, 0);
    if (started >= 0) {
      prepared -= static_cast<unsigned>(started);
      return 0;
    }
    // The kernel has no memory for more at the moment: what is under way ends.
    if (errno != EINTR && errno != EAGAIN && errno != EBUSY)
      return -1;
  }
}

bool Ring::take(uint64_t &tag, ssize_t &result) {
  unsigned index = 0;
  if (!struck.empty()) {
    index = struck.back();
    struck.pop_back();
    result = -flights[index].error;
  } else {
    unsigned head = *completeHead;
    if (head == __atomic_load_n(completeTail, __ATOMIC_ACQUIRE))
      return false;
    const io_uring_cqe &completion = completions[head & completeMask];
    index = static_cast<unsigned>(completion.user_data);
    result = completion.res;
    __atomic_store_n(completeHead, head + 1, __ATOMIC_RELEASE);
    // What was to be written is again as it was.
    Strike strike;
    strike.flipped = flights[index].flipped;
    strike.flip(flights[index].data, flights[index].bytes);
  }
  tag = flights[index].tag;
  idle.push_back(index);
  return true;
}

} // namespace dsopt::runtime::sys

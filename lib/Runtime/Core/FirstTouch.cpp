//===- FirstTouch.cpp - memory that is there before it is used -------------===//

#include "Core/FirstTouch.h"
#include "Core/ThreadPool.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>

namespace dsopt::runtime {

/// Asked for at once: some huge pages.
static constexpr int64_t kPiece = 8 << 20;
/// The smallest page there is.
static constexpr int64_t kPage = 4096;

FirstTouch::FirstTouch(char *memory, int64_t bytes, int count, const std::vector<int> &cpus)
    : memory(memory), bytes(bytes) {
  if (bytes < kPiece)
    return;
  try {
    for (int thread = 0; thread < count; ++thread)
      threads.push_back(startThread([this, cpus] {
        placeThread(cpus);
        touch();
      }));
  } catch (const Error &) {
    // Those that there are touch all of it.
  }
}

FirstTouch::~FirstTouch() {
  next = bytes;
  join();
}

void FirstTouch::join() {
  for (std::thread &thread : threads)
    thread.join();
  threads.clear();
}

void FirstTouch::touch() {
  for (int64_t at; (at = next.fetch_add(kPiece)) < bytes;) {
    char *piece = memory + at;
    int64_t size = std::min(kPiece, bytes - at);
    int result = 0;
    do
      result = sys::madvise(piece, size, MADV_POPULATE_WRITE);
    while (result != 0 && (errno == EINTR || errno == EAGAIN));
    if (result == 0)
      continue;
    if (errno != EINVAL) {
      failure = errno;
      next = bytes;
      return;
    }
    // A system that does not know the call. Somebody may be writing weights there.
    for (int64_t byte = 0; byte < size; byte += kPage)
      __atomic_fetch_or(piece + byte, 0, __ATOMIC_RELAXED);
  }
}

void FirstTouch::finish() {
  join();
  if (failure)
    throw Error(StatusFailure, "the system does not give the " + std::to_string(bytes) +
                                   " bytes of memory that were planned: " + std::strerror(failure));
}

} // namespace dsopt::runtime

//===- Futex.h - waiting on a word of memory --------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_FUTEX_H
#define DSOPT_LIB_RUNTIME_CORE_FUTEX_H

#include <atomic>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dsopt::runtime {

/// Sleeps while `word` is `seen`, at most `microseconds` (negative: no limit). `shared`: between processes.
inline void futexWait(std::atomic<uint32_t> &word, uint32_t seen, bool shared, int microseconds = -1) {
  timespec limit{microseconds / 1000000, (microseconds % 1000000) * 1000l};
  syscall(SYS_futex, &word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, seen,
          microseconds < 0 ? nullptr : &limit, nullptr, 0);
}

inline void futexWake(std::atomic<uint32_t> &word, int count, bool shared) {
  syscall(SYS_futex, &word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

inline void pause() { __builtin_ia32_pause(); }

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_FUTEX_H

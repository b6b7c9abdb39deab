//===- FirstTouch.h - memory that is there before it is used ----*- C++ -*-===//
//
// The system gives a page of an arena when somebody first touches it, and fills it
// with zeros. Left to the first step, which goes through nearly all of them, that
// takes about as long as half a step: here all threads ask for them while weights
// are read.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_FIRSTTOUCH_H
#define DSOPT_LIB_RUNTIME_CORE_FIRSTTOUCH_H

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace dsopt::runtime {

class FirstTouch {
public:
  /// Begins, with threads as a pool's; what the memory holds stays.
  FirstTouch(char *memory, int64_t bytes, int threads, const std::vector<int> &cpus);
  /// What was not asked for by now comes as it is used.
  ~FirstTouch();
  FirstTouch(const FirstTouch &) = delete;

  /// Waits for all of it; an Error of status 2 if the system does not give it.
  void finish();

private:
  void touch();
  void join();

  char *memory;
  int64_t bytes;
  std::atomic<int64_t> next{0};
  std::atomic<int> failure{0}; ///< an error number
  std::vector<std::thread> threads;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_FIRSTTOUCH_H

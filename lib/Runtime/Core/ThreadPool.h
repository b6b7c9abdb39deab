//===- ThreadPool.h - a rank's threads --------------------------*- C++ -*-===//
//
// The caller and `threads - 1` workers run one job at a time. Ranges are cut at
// multiples of a grain, so that results never depend on the number of threads.
// Idle workers spin for a moment, then sleep on a futex. Nothing allocates after
// construction. What a thread throws, the caller throws once all are done. Make it
// after the fork.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_THREADPOOL_H
#define DSOPT_LIB_RUNTIME_CORE_THREADPOOL_H

#include <atomic>
#include <csignal>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace dsopt::runtime {

/// Keeps the calling thread on these CPUs, on any if there are none. Where that is not allowed it runs where
/// it may.
void placeThread(const std::vector<int> &cpus);

class ThreadPool {
public:
  /// `spin`: pauses before a thread sleeps; 0 where threads outnumber CPUs. `init` runs first in every
  /// thread, the caller's too.
  /// `cpus`: where the threads run, the caller too; as inherited if empty. None has one of its own: whatever
  /// else runs there would stop it while others are idle.
  ThreadPool(int threads, int spin, void (*init)() = nullptr, const std::vector<int> &cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const { return static_cast<int>(workers.size()) + 1; }

  /// Whether all workers spin: a job then costs a fraction of a microsecond to hand over, not a wake-up.
  bool awake() const { return spin != 0 && sleepers.load(std::memory_order_relaxed) == 0; }

  /// `body(begin, end, thread)` on one contiguous part of [begin, end) a thread, cut at `begin` plus
  /// multiples of `grain`.
  template <typename Body> void split(int64_t begin, int64_t end, int64_t grain, Body &&body) {
    int64_t units = (end - begin + grain - 1) / grain;
    if (units <= 1 || threads() == 1) {
      if (begin < end)
        body(begin, end, 0);
      return;
    }
    int64_t count = threads();
    auto part = [&](int thread) {
      int64_t first = begin + units * thread / count * grain,
              last = begin + units * (thread + 1) / count * grain;
      if (last > end)
        last = end;
      if (first < last)
        body(first, last, thread);
    };
    run(&call<decltype(part)>, &part);
  }

  /// `body(index, thread)` for each index in [0, count), `chunk` at a time: a thread takes what `split` would
  /// give it, whose data it probably wrote or read last, then what is left of some others' parts.
  template <typename Body> void forEach(int64_t count, int64_t chunk, Body &&body) {
    if (count <= chunk || threads() == 1) {
      for (int64_t i = 0; i < count; ++i)
        body(i, 0);
      return;
    }
    int64_t chunks = (count + chunk - 1) / chunk, parts = threads();
    auto begin = [&](int64_t thread) { return chunks * thread / parts; };
    for (int64_t thread = 0; thread < parts; ++thread)
      taken[thread].next.store(begin(thread), std::memory_order_relaxed);
    auto takeFrom = [&](int64_t owner, int thread) {
      std::atomic<int64_t> &next = taken[owner].next;
      int64_t last = begin(owner + 1);
      while (next.load(std::memory_order_relaxed) < last) {
        int64_t first = next.fetch_add(1, std::memory_order_relaxed);
        if (first >= last)
          return;
        for (int64_t i = first * chunk; i < (first + 1) * chunk && i < count; ++i)
          body(i, thread);
      }
    };
    auto part = [&](int thread) {
      takeFrom(thread, thread);
      // Those whose numbers differ in one bit: to look at all would take long where there are many.
      for (int64_t bit = 1; bit < parts; bit *= 2)
        if ((thread ^ bit) < parts)
          takeFrom(thread ^ bit, thread);
    };
    run(&call<decltype(part)>, &part);
  }

private:
  using Job = void (*)(void *context, int thread);
  template <typename Part> static void call(void *context, int thread) {
    (*static_cast<Part *>(context))(thread);
  }
  void run(Job job, void *context);
  /// This thread's part of the job; keeps what it throws.
  void attempt(int thread);
  void work(int thread, void (*init)());
  void end();

  /// The next chunk of each thread's part.
  struct alignas(64) Taken {
    std::atomic<int64_t> next{0};
  };

  std::vector<Taken> taken;
  std::vector<std::exception_ptr> thrown; ///< by the threads in a job
  std::vector<std::thread> workers;
  int spin;
  Job job = nullptr;
  void *context = nullptr;
  std::atomic<bool> ending{false};
  alignas(64) std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<uint32_t> running{0};
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_THREADPOOL_H

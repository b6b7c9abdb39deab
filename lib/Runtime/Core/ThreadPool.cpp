//===- ThreadPool.cpp - a rank's threads -----------------------------------===//

#include "Core/ThreadPool.h"
#include "Core/Futex.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Process.h"

#include <algorithm>
#include <sched.h>
#include <utility>

namespace dsopt::runtime {

void placeThread(const std::vector<int> &cpus) {
  if (cpus.empty())
    return;
  int most = *std::max_element(cpus.begin(), cpus.end()) + 1;
  size_t bytes = CPU_ALLOC_SIZE(most);
  cpu_set_t *set = CPU_ALLOC(most);
  CPU_ZERO_S(bytes, set);
  for (int cpu : cpus)
    CPU_SET_S(cpu, bytes, set);
  sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

ThreadPool::ThreadPool(int threads, int spin, void (*init)(), const std::vector<int> &cpus)
    : taken(threads), thrown(threads), spin(spin) {
  placeThread(cpus);
  if (init)
    init();
  try {
    for (int i = 1; i < threads; ++i)
      workers.push_back(startThread([this, i, init, cpus] {
        placeThread(cpus);
        work(i, init);
      }));
  } catch (const Error &error) {
    end();
    throw Error(error.status, "of " + std::to_string(threads) + " threads of a rank (-threads) " +
                                  std::to_string(workers.size() + 1) + " run: " + error.what());
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  ending = true;
  generation.fetch_add(1);
  futexWake(generation, 1 << 30, false);
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::work(int thread, void (*init)()) {
  if (init)
    init();
  for (uint32_t seen = 0;; ++seen) {
    for (int i = 0; i < spin && generation.load(std::memory_order_relaxed) == seen; ++i)
      pause();
    while (generation.load() == seen) {
      sleepers.fetch_add(1);
      futexWait(generation, seen, false);
      sleepers.fetch_sub(1);
    }
    if (ending)
      return;
    attempt(thread);
    if (running.fetch_sub(1) == 1)
      futexWake(running, 1, false);
  }
}

void ThreadPool::run(Job newJob, void *newContext) {
  job = newJob;
  context = newContext;
  running.store(static_cast<uint32_t>(workers.size()));
  generation.fetch_add(1);
  if (sleepers.load() != 0)
    futexWake(generation, 1 << 30, false);
  attempt(0);
  for (int i = 0; i < spin && running.load(std::memory_order_acquire) != 0; ++i)
    pause();
  for (uint32_t left; (left = running.load(std::memory_order_acquire)) != 0;)
    futexWait(running, left, false);
  // All are through with what lies on the caller's stack. Of several the first thread's is told.
  std::exception_ptr first;
  for (std::exception_ptr &error : thrown)
    if (std::exception_ptr own = std::exchange(error, nullptr); own && !first)
      first = own;
  if (first)
    std::rethrow_exception(first);
}

void ThreadPool::attempt(int thread) {
  try {
    job(context, thread);
  } catch (...) {
    thrown[thread] = std::current_exception();
  }
}

} // namespace dsopt::runtime

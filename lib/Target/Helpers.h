//===- Helpers.h - threads that help the one that has work ------*- C++ -*-===//

#ifndef DSOPT_LIB_TARGET_HELPERS_H
#define DSOPT_LIB_TARGET_HELPERS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <pthread.h>
#include <vector>

namespace dsopt {

/// `work` on at most so many threads, this one among them: it takes what is left to do until nothing is. A
/// limit of processes or memory makes them fewer.
inline void workTogether(size_t threads, llvm::function_ref<void()> work) {
  std::vector<pthread_t> helpers;
  auto run = [](void *work) -> void * {
    (*static_cast<llvm::function_ref<void()> *>(work))();
    return nullptr;
  };
  pthread_t helper;
  while (helpers.size() + 1 < threads && pthread_create(&helper, nullptr, run, &work) == 0)
    helpers.push_back(helper);
  work();
  for (pthread_t one : helpers)
    pthread_join(one, nullptr);
}

} // namespace dsopt

#endif // DSOPT_LIB_TARGET_HELPERS_H

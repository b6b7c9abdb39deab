//===- ParameterNorms.h - the norms of parameters ---------------*- C++ -*-===//
//
// What -log-norms adds to a step: each rank sums the squares of its slices exactly, so that
// how parameters were cut changes no bit.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_PARAMETERNORMS_H
#define DSOPT_LIB_RUNTIME_CORE_PARAMETERNORMS_H

#include "Core/Addresses.h"
#include "Core/SquareSums.h"
#include "dsopt/Runtime/Engine.h"

namespace dsopt::runtime {

class ParameterNorms {
public:
  ParameterNorms(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                 ThreadPool &pool);

  /// By parameter, -1 of those that are not trained. Collective; parameters are where addresses say.
  void exchange(std::vector<float> &result);

private:
  const Program &program;
  Engine &engine;
  ThreadPool &pool;
  SquareSums parameters;
  std::vector<int64_t> tracked, norms, allNorms;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_PARAMETERNORMS_H

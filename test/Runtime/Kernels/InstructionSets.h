//===- InstructionSets.h - those that attention has kernels for -*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_INSTRUCTIONSETS_H
#define DSOPT_TEST_RUNTIME_KERNELS_INSTRUCTIONSETS_H

#include <string>
#include <vector>

namespace dsopt::runtime::attention {

/// What a processor has beside its baseline.
struct InstructionSet {
  std::string name;
  std::vector<std::string> features;
};

/// The sets that this processor has, narrow ones first.
inline std::vector<InstructionSet> instructionSetsHere() {
  std::vector<InstructionSet> sets{{"baseline", {}}};
#ifdef __x86_64__
  std::vector<std::string> features{"avx2", "fma"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    sets.push_back({"avx2", features});
  features.insert(features.end(), {"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    sets.push_back({"avx512", features});
  features.push_back("avx512bf16");
  if (__builtin_cpu_supports("avx512bf16"))
    sets.push_back({"avx512bf16", features});
#endif
  return sets;
}

} // namespace dsopt::runtime::attention

#endif // DSOPT_TEST_RUNTIME_KERNELS_INSTRUCTIONSETS_H

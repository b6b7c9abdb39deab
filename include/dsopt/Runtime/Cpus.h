//===- Cpus.h - how many CPUs a process may use -----------------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_CPUS_H
#define DSOPT_RUNTIME_CPUS_H

#include <cstdint>
#include <vector>

namespace dsopt::runtime {

/// CPUs by affinity mask and cgroup quota together; at least 1.
int64_t availableCpus();

/// The CPUs of a process and the machine it runs on, to be exchanged between ranks.
struct CpuRecord {
  uint64_t machine = 0;
  int64_t quota = 0; ///< of the cgroup, in whole CPUs; 0: none
  uint64_t mask[16] = {};
};
CpuRecord cpuRecord();

/// Threads for rank `rank`: its CPUs divided by the ranks of its machine that share them; at least 1.
int64_t cpuShare(const std::vector<CpuRecord> &records, int rank);

/// The CPUs of its own for rank `rank` if the ranks of its machine with `threads` threads each do not
/// outnumber them: an equal part of those it shares, in order. Empty where they do or a quota says less.
std::vector<int> cpusOfRank(const std::vector<CpuRecord> &records, int rank, int64_t threads);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_CPUS_H

//===- Cpus.h - how many CPUs a process may use -----------------*- C++ -*-===//

#ifndef DSOPT_RUNTIME_CPUS_H
#define DSOPT_RUNTIME_CPUS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dsopt::runtime {

/// CPUs by affinity mask and cgroup quota together; at least 1.
int64_t availableCpus();

/// CPUs by number: as many as Linux knows on any machine.
inline constexpr int kMostCpus = 8192;
using CpuMask = std::array<uint64_t, kMostCpus / 64>;

/// The CPUs of a process and the machine it runs on, to be exchanged between ranks.
struct CpuRecord {
  uint64_t machine = 0;
  int64_t quota = 0; ///< of the cgroup, in whole CPUs; 0: none
  CpuMask mask{};    ///< all zeros: not known
};
CpuRecord cpuRecord();

/// The mask by sched_getaffinity, which `get` calls with a set of so many bytes: a kernel that knows more
/// CPUs than fit refuses with EINVAL. All zeros if it cannot be had.
CpuMask affinityMask(const std::function<int(size_t bytes, void *set)> &get);

/// Threads for rank `rank`: its CPUs divided by the ranks of its machine that share them; at least 1.
int64_t cpuShare(const std::vector<CpuRecord> &records, int rank);

/// The ranks of the machine of rank `rank` that may run on some of its CPUs, itself included, and the CPUs
/// that these have together.
struct Sharing {
  int64_t ranks = 0, cpus = 0;
};
Sharing sharingOf(const std::vector<CpuRecord> &records, int rank);

/// How many lower ranks are on the machine of rank `rank`.
int localRank(const std::vector<CpuRecord> &records, int rank);

/// The CPUs of its own for rank `rank` if the ranks of its machine with `threads` threads each do not
/// outnumber them: an equal part of those it shares, in order. Empty where they do or a quota says less.
std::vector<int> cpusOfRank(const std::vector<CpuRecord> &records, int rank, int64_t threads);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_CPUS_H

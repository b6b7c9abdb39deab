//===- Cpus.cpp - affinity mask and cgroup quota --------------------------===//

#include "dsopt/Runtime/Cpus.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <string>

#include <sched.h>
#include <unistd.h>

using namespace dsopt::runtime;

/// Whole CPUs of one cgroup folder, 0 without a limit.
static int64_t quotaOf(const std::string &folder) {
  std::string quota;
  double period = 0, microseconds = 0;
  if (std::ifstream file(folder + "/cpu.max"); file >> quota >> period && quota != "max")
    microseconds = std::atof(quota.c_str());
  else if (std::ifstream v1(folder + "/cpu.cfs_quota_us"); v1 >> microseconds)
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  return microseconds > 0 && period > 0 ? static_cast<int64_t>((microseconds + period - 1) / period) : 0;
}

static int64_t cgroupQuota() {
  int64_t least = 0;
  auto take = [&](int64_t quota) {
    if (quota > 0)
      least = least ? std::min(least, quota) : quota;
  };
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    std::string root = "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos)
        continue;
      root += "/cpu";
    }
    // A limit of any folder above counts as well.
    for (;; path.resize(std::max<size_t>(path.rfind('/'), 0))) {
      if (path == "/")
        path.clear();
      take(quotaOf(root + path));
      if (path.empty() || path.rfind('/') == std::string::npos)
        break;
    }
  }
  return least;
}

CpuRecord dsopt::runtime::cpuRecord() {
  CpuRecord record;
  // Containers have names of their own, and one name may be that of two machines.
  std::string machine;
  if (!std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), machine)) {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    machine = name;
  }
  record.machine = std::hash<std::string>()(machine);
  record.quota = cgroupQuota();
  record.mask = affinityMask(
      [](size_t bytes, void *set) { return sched_getaffinity(0, bytes, static_cast<cpu_set_t *>(set)); });
  return record;
}

CpuMask dsopt::runtime::affinityMask(const std::function<int(size_t bytes, void *set)> &get) {
  CpuMask mask{};
  for (int cpus = 1024; cpus <= kMostCpus; cpus *= 2) {
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    cpu_set_t *set = CPU_ALLOC(cpus);
    CPU_ZERO_S(bytes, set);
    bool known = get(bytes, set) == 0;
    for (int cpu = 0; known && cpu < cpus; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set))
        mask[cpu / 64] |= uint64_t(1) << (cpu % 64);
    CPU_FREE(set);
    if (known || errno != EINVAL)
      break;
  }
  return mask;
}

static int64_t countCpus(const CpuMask &mask) {
  int64_t cpus = 0;
  for (uint64_t word : mask)
    cpus += __builtin_popcountll(word);
  return cpus;
}

static bool overlap(const CpuMask &a, const CpuMask &b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] & b[i])
      return true;
  return false;
}

Sharing dsopt::runtime::sharingOf(const std::vector<CpuRecord> &records, int rank) {
  const CpuRecord &mine = records[rank];
  Sharing sharing;
  CpuMask together{};
  for (const CpuRecord &other : records) {
    if (other.machine != mine.machine || !overlap(other.mask, mine.mask))
      continue;
    ++sharing.ranks;
    for (size_t i = 0; i < together.size(); ++i)
      together[i] |= other.mask[i];
  }
  sharing.cpus = countCpus(together);
  if (mine.quota > 0)
    sharing.cpus = std::min(sharing.cpus, mine.quota);
  return sharing;
}

int64_t dsopt::runtime::cpuShare(const std::vector<CpuRecord> &records, int rank) {
  const CpuRecord &mine = records[rank];
  int64_t sharing = 0, onMachine = 0;
  for (const CpuRecord &other : records) {
    if (other.machine != mine.machine)
      continue;
    ++onMachine;
    sharing += overlap(other.mask, mine.mask);
  }
  int64_t share = countCpus(mine.mask) / std::max<int64_t>(sharing, 1);
  if (mine.quota > 0)
    share = std::min(share, mine.quota / std::max<int64_t>(onMachine, 1));
  return std::max<int64_t>(share, 1);
}

int dsopt::runtime::localRank(const std::vector<CpuRecord> &records, int rank) {
  return static_cast<int>(std::count_if(records.begin(), records.begin() + rank, [&](const CpuRecord &lower) {
    return lower.machine == records[rank].machine;
  }));
}

std::vector<int> dsopt::runtime::cpusOfRank(const std::vector<CpuRecord> &records, int rank,
                                            int64_t threads) {
  const CpuRecord &mine = records[rank];
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu)
    if (mine.mask[cpu / 64] >> (cpu % 64) & 1)
      cpus.push_back(cpu);
  // Ranks with one mask share it; masks that overlap otherwise are somebody's plan.
  int64_t sharing = 0, before = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const CpuRecord &other = records[i];
    if (other.machine != mine.machine)
      continue;
    if (!overlap(other.mask, mine.mask))
      continue;
    if (mine.mask != other.mask)
      return {};
    before += i < static_cast<size_t>(rank);
    ++sharing;
  }
  if (sharing == 0) // its CPUs are not known
    return {};
  int64_t share = static_cast<int64_t>(cpus.size()) / sharing;
  if (share < threads || (mine.quota > 0 && mine.quota < static_cast<int64_t>(cpus.size())))
    return {};
  return {cpus.begin() + before * share, cpus.begin() + (before + 1) * share};
}

int64_t dsopt::runtime::availableCpus() { return cpuShare({cpuRecord()}, 0); }

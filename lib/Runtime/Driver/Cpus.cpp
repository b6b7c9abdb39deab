//===- Cpus.cpp - affinity mask and cgroup quota --------------------------===//

#include "dsopt/Runtime/Cpus.h"

#include <algorithm>
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
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  record.machine = std::hash<std::string>()(name);
  record.quota = cgroupQuota();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < 1024; ++cpu)
      if (CPU_ISSET(cpu, &set))
        record.mask[cpu / 64] |= uint64_t(1) << (cpu % 64);
  return record;
}

int64_t dsopt::runtime::cpuShare(const std::vector<CpuRecord> &records, int rank) {
  const CpuRecord &mine = records[rank];
  int64_t cpus = 0, sharing = 0, onMachine = 0;
  for (uint64_t word : mine.mask)
    cpus += __builtin_popcountll(word);
  for (const CpuRecord &other : records) {
    if (other.machine != mine.machine)
      continue;
    ++onMachine;
    bool overlaps = false;
    for (int i = 0; i < 16; ++i)
      overlaps |= (other.mask[i] & mine.mask[i]) != 0;
    sharing += overlaps;
  }
  int64_t share = cpus / std::max<int64_t>(sharing, 1);
  if (mine.quota > 0)
    share = std::min(share, mine.quota / std::max<int64_t>(onMachine, 1));
  return std::max<int64_t>(share, 1);
}

std::vector<int> dsopt::runtime::cpusOfRank(const std::vector<CpuRecord> &records, int rank,
                                            int64_t threads) {
  const CpuRecord &mine = records[rank];
  std::vector<int> cpus;
  for (int cpu = 0; cpu < 1024; ++cpu)
    if (mine.mask[cpu / 64] >> (cpu % 64) & 1)
      cpus.push_back(cpu);
  // Ranks with one mask share it; masks that overlap otherwise are somebody's plan.
  int64_t sharing = 0, before = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const CpuRecord &other = records[i];
    if (other.machine != mine.machine)
      continue;
    bool overlaps = false;
    for (int word = 0; word < 16; ++word)
      overlaps |= (other.mask[word] & mine.mask[word]) != 0;
    if (!overlaps)
      continue;
    if (!std::equal(std::begin(mine.mask), std::end(mine.mask), other.mask))
      return {};
    before += i < static_cast<size_t>(rank);
    ++sharing;
  }
  int64_t share = static_cast<int64_t>(cpus.size()) / sharing;
  if (share < threads || (mine.quota > 0 && mine.quota < static_cast<int64_t>(cpus.size())))
    return {};
  return {cpus.begin() + before * share, cpus.begin() + (before + 1) * share};
}

int64_t dsopt::runtime::availableCpus() { return cpuShare({cpuRecord()}, 0); }

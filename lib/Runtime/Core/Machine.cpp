//===- Machine.cpp - what the program needs of this machine; names of ranks ===//

#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

/// The feature as __builtin_cpu_supports names it, which takes literals only.
static bool supports(const std::string &feature) {
  __builtin_cpu_init();
  // clang-format off
#define CHECK(name) if (feature == name) return __builtin_cpu_supports(name);
  CHECK("sse3") CHECK("ssse3") CHECK("sse4.1") CHECK("sse4.2") CHECK("popcnt") CHECK("f16c")
  CHECK("fma") CHECK("avx") CHECK("avx2") CHECK("bmi") CHECK("bmi2") CHECK("avx512f") CHECK("avx512cd")
  CHECK("avx512bw") CHECK("avx512dq") CHECK("avx512vl") CHECK("avx512ifma") CHECK("avx512vbmi")
  CHECK("avx512vbmi2") CHECK("avx512vnni") CHECK("avx512bitalg") CHECK("avx512vpopcntdq")
  CHECK("avx512bf16") CHECK("gfni") CHECK("vpclmulqdq")
  CHECK("amx-tile") CHECK("amx-bf16")
#undef CHECK
      // clang-format on
      return true; // nothing the generated code depends on
}

void checkMachine(const Program &program) {
  for (const std::string &feature : program.features)
    if (!supports(feature))
      throw Error(StatusInput, "the program was compiled for " + program.arch +
                                   ", but this machine's CPU has no " + feature +
                                   ": compile it with -arch=native here, or with a lower -arch");
}

RankInfo rankInfo(const Program &program, int rank) {
  const Grid &grid = program.grid;
  RankInfo info;
  info.rank = rank;
  for (size_t axis = 0; axis < kAxes; ++axis)
    info.coordinates[axis] = grid.coordinate(rank, static_cast<Axis>(axis));
  info.position = static_cast<int>(grid.coordinate(rank, Axis::pp));
  info.slice = static_cast<int>(rank % grid.perPosition() / grid.stride(Axis::sp));
  info.dpRank = static_cast<int>(info.slice / grid.size(Axis::sp));
  return info;
}

std::string describeRank(const Program &program, int rank) {
  RankInfo info = rankInfo(program, rank);
  std::string places;
  auto add = [&](const char *what, int64_t place) {
    places += (places.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(place);
  };
  if (program.pp() > 1)
    add("stage", info.position);
  // Of one axis alone the rank's number says it.
  auto addAlong = [&](const char *what, int64_t size, int64_t place) {
    if (size > 1 && size < program.ranks())
      add(what, place);
  };
  addAlong("data-parallel rank", program.dp(), info.dpRank);
  addAlong("sequence-parallel rank", program.sp(), info.coordinates[static_cast<size_t>(Axis::sp)]);
  addAlong("tensor-parallel rank", program.tp(), info.coordinates[static_cast<size_t>(Axis::tp)]);
  return "rank " + std::to_string(rank) + (places.empty() ? "" : " (" + places + ")");
}

std::vector<int64_t> arenasOf(const Program &program) {
  std::vector<int64_t> arenas;
  for (int rank = 0; rank < program.ranks(); ++rank)
    arenas.push_back(arenaOf(program.positions[rankInfo(program, rank).position]));
  return arenas;
}

std::vector<int64_t> memoriesOf(const Program &program, MemoryKind kind) {
  std::vector<int64_t> bytes(program.ranks());
  for (int rank = 0; rank < program.ranks(); ++rank)
    for (const Memory &memory : program.positions[rankInfo(program, rank).position].memories)
      if (memory.kind == kind)
        bytes[rank] += memory.bytes;
  return bytes;
}

std::vector<char *> memoriesIn(char *arena, char *disk, const Position &position) {
  std::vector<char *> begins;
  for (const Memory &memory : position.memories) {
    bool onDisk = memory.kind == MemoryKind::Disk;
    begins.push_back(onDisk ? disk : arena);
    if (!onDisk)
      arena += pages(memory.bytes);
  }
  return begins;
}

std::string describeWorld(const Program &program) {
  return std::to_string(program.ranks()) + " (dp " + std::to_string(program.dp()) + " x pp " +
         std::to_string(program.pp()) + (program.sp() > 1 ? " x sp " + std::to_string(program.sp()) : "") +
         (program.tp() > 1 ? " x tp " + std::to_string(program.tp()) : "") + ")";
}

const Action *findAction(const Program &program, int position, int64_t action) {
  for (size_t list = 0; list < countLists(program) && action >= 0; ++list) {
    const std::vector<Position> &positions = positionsOf(program, list);
    int64_t count = positions.empty() ? 0 : positions[position].actions.size();
    if (action < count)
      return &positions[position].actions[action];
    action -= count;
  }
  return nullptr;
}

std::string describeAction(const Program &program, int rank, int64_t action) {
  RankInfo info = rankInfo(program, rank);
  if (info.position >= static_cast<int>(program.positions.size()))
    return "";
  const Action *found = findAction(program, info.position, action);
  return !found ? "" : found->name.empty() ? "action " + std::to_string(action) : found->name;
}

} // namespace dsopt::runtime

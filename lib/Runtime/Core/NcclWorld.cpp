//===- NcclWorld.cpp - a rank's communicators of NCCL ---------------------===//

#include "Core/NcclWorld.h"
#include "Core/Together.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace dsopt::runtime {

/// Of a member that died meanwhile its host's engine knows more.
static constexpr std::chrono::seconds kPartingLimit{10};
static constexpr std::chrono::milliseconds kLook{1};

std::string ncclObstacle(Engine &engine, const cuda::Device &device) {
  struct Record {
    cuda::Uuid device;
    char hasLibrary;
    char text[255];
  } mine{};
  mine.device = device.uuid();
  try {
    nccl::Library::get();
    mine.hasLibrary = 1;
  } catch (const Error &error) {
    std::strncpy(mine.text, error.what(), sizeof(mine.text) - 1);
  }
  std::vector<Record> all(engine.size());
  engine.exchange(&mine, sizeof(mine), all.data());
  for (int rank = 0; rank < engine.size(); ++rank)
    for (int other = 0; other < rank; ++other)
      if (std::memcmp(&all[rank].device, &all[other].device, sizeof(cuda::Uuid)) == 0)
        return "ranks " + std::to_string(other) + " and " + std::to_string(rank) + " share a GPU";
  for (const Record &record : all)
    if (!record.hasLibrary)
      return record.text;
  return "";
}

NcclWorld::NcclWorld(Engine &engine, cuda::Device &device, NcclPlan planned)
    : sum(device), engine(engine), plan(std::move(planned)), groups(plan.groups.size()) {
  // The first member of a group makes its id: a record has room for those of who makes most.
  std::vector<size_t> made(engine.size());
  for (const std::vector<int> &members : plan.groups)
    ++made[members.front()];
  size_t room = *std::max_element(made.begin(), made.end());
  std::vector<nccl::UniqueId> own(room), all(room * engine.size());
  const nccl::Library &library = nccl::Library::get();
  together(engine, [&] {
    for (size_t i = 0; i < made[engine.rank()]; ++i)
      library.check(library.ncclGetUniqueId(&own[i]), "ncclGetUniqueId");
  });
  engine.exchange(own.data(), static_cast<int64_t>(room * sizeof(nccl::UniqueId)), all.data());
  std::fill(made.begin(), made.end(), 0);
  library.check(library.ncclGroupStart(), "ncclGroupStart");
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::vector<int> &members = plan.groups[i];
    int first = members.front();
    size_t place = made[first]++;
    auto self = std::find(members.begin(), members.end(), engine.rank());
    if (self == members.end())
      continue;
    groups[i] = std::make_unique<nccl::Communicator>(members, static_cast<int>(self - members.begin()));
    if (members.size() > 1)
      groups[i]->join(all[first * room + place]);
  }
  library.check(library.ncclGroupEnd(), "ncclGroupEnd");
  await("to join", std::chrono::seconds(engine.stallSeconds()));
}

void NcclWorld::await(const char *what, std::chrono::seconds limit) {
  auto begin = std::chrono::steady_clock::now();
  for (const auto &group : groups)
    while (group && !group->isSettled()) {
      // Throws where a peer has failed.
      engine.poll(Engine::kControlSlot);
      if (limit.count() > 0 && std::chrono::steady_clock::now() - begin > limit)
        throw Error(StatusFailure, "rank " + std::to_string(engine.rank()) + " has waited " +
                                       std::to_string(limit.count()) + " s for NCCL " + what + " " +
                                       describeRanks(group->ranks()));
      std::this_thread::sleep_for(kLook);
    }
}

NcclWorld::~NcclWorld() {
  // Whatever fails here, the run has its result: what is left is given up.
  try {
    for (const auto &group : groups)
      if (group && group->isOpen())
        group->leave();
    await("to leave", kPartingLimit);
    for (const auto &group : groups)
      if (group && group->isOpen())
        group->close();
  } catch (const Error &) {
    abort();
  }
}

void NcclWorld::abort() {
  for (const auto &group : groups)
    if (group)
      group->abort();
}

} // namespace dsopt::runtime

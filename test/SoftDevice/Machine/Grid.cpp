//===- Grid.cpp - blocks and their barriers -------------------------------===//

#include "Warp.h"

#include <algorithm>

namespace softdevice {

/// The limits of current devices.
static constexpr uint32_t kMostThreads = 1024, kMostY = 65535;
static constexpr int64_t kMostShared = 227 << 10;

template <class T, class F> static void fill(Warp &warp, uint32_t place, F value) {
  for (int lane = 0; lane < kLanes; ++lane)
    warp.row<T>(place)[lane] = static_cast<T>(value(lane));
}

/// Fills the rows of special registers: those of a block anew for each, the others once.
static void fillSpecials(Warp &warp) {
  const Grid &grid = warp.block.grid;
  uint32_t warps = static_cast<uint32_t>(warp.block.warps.size());
  for (const auto &row : grid.kernel.specials) {
    uint32_t place = row.first;
    Special special = row.second;
    auto axis = [&](Special first) { return static_cast<int>(special) - static_cast<int>(first); };
    auto constant = [&](uint64_t value) { fill<uint32_t>(warp, place, [&](int) { return value; }); };
    if (special <= Special::TidZ) {
      uint32_t x = grid.threads[0], y = grid.threads[1];
      fill<uint32_t>(warp, place, [&](int lane) {
        uint32_t thread = warp.number * kLanes + lane;
        return axis(Special::TidX) == 0   ? thread % x
               : axis(Special::TidX) == 1 ? thread / x % y
                                          : thread / x / y;
      });
    } else if (special <= Special::NtidZ) {
      constant(grid.threads[axis(Special::NtidX)]);
    } else if (special <= Special::CtaidZ) {
      constant(warp.block.position[axis(Special::CtaidX)]);
    } else if (special <= Special::NctaidZ) {
      constant(grid.blocks[axis(Special::NctaidX)]);
    } else {
      switch (special) {
      case Special::LaneId:
        fill<uint32_t>(warp, place, [](int lane) { return lane; });
        break;
      case Special::WarpId:
        constant(warp.number);
        break;
      case Special::NWarpId:
        constant(warps);
        break;
      case Special::NSmId:
        constant(1);
        break;
      case Special::LaneMaskEq:
        fill<uint32_t>(warp, place, [](int lane) { return 1u << lane; });
        break;
      case Special::LaneMaskLt:
        fill<uint32_t>(warp, place, [](int lane) { return (1u << lane) - 1; });
        break;
      case Special::LaneMaskLe:
        fill<uint32_t>(warp, place, [](int lane) { return (2ull << lane) - 1; });
        break;
      case Special::LaneMaskGt:
        fill<uint32_t>(warp, place, [](int lane) { return ~((2ull << lane) - 1); });
        break;
      case Special::LaneMaskGe:
        fill<uint32_t>(warp, place, [](int lane) { return ~((1u << lane) - 1); });
        break;
      case Special::DynamicSharedBytes:
        constant(grid.dynamicShared);
        break;
      default:
        // The clocks, whose rows are filled when they are read, and the multiprocessor, which is 0.
        constant(0);
      }
    }
  }
}

Block::Block(Grid &grid)
    : grid(grid), shared(grid.kernel.sharedEnd + grid.dynamicShared, grid.kernel.sharedGaps) {
  uint32_t threads = grid.threads[0] * grid.threads[1] * grid.threads[2];
  uint32_t count = (threads + kLanes - 1) / kLanes;
  warps.reserve(count);
  for (uint32_t number = 0; number < count; ++number) {
    Warp &warp = warps.emplace_back(Warp{*this, static_cast<int>(number)});
    uint32_t here = std::min<uint32_t>(threads - number * kLanes, kLanes);
    warp.all = here == kLanes ? ~0u : (1u << here) - 1;
    warp.storage = grid.kernel.rows;
    warp.local.resize(grid.kernel.localBytes * kLanes);
  }
}

void Block::pass() {
  grid.times.now = grid.memory.nextTime();
  shared.pass(grid.times.now);
}

void Block::run(uint32_t x, uint32_t y, uint32_t z) {
  position[0] = x, position[1] = y, position[2] = z;
  shared.clear();
  pass();
  grid.times.block = grid.times.now;
  grid.began.push_back({grid.times.now, x + grid.blocks[0] * (y + grid.blocks[1] * z)});
  for (Warp &warp : warps) {
    warp.predicates.assign(grid.kernel.predicates, 0);
    warp.predicates[0] = ~0u;
    warp.alive = warp.active = warp.all;
    warp.waiting = warp.parked = 0;
    warp.lowest = INT_MAX;
    warp.pc = 0;
    warp.barrier = -1;
    warp.copies.clear();
    std::fill(std::begin(warp.committed), std::end(warp.committed), 0);
    std::fill(warp.local.begin(), warp.local.end(), char(0xA5));
    fillSpecials(warp);
  }
  std::vector<Warp *> left;
  for (Warp &warp : warps)
    left.push_back(&warp);
  while (!left.empty()) {
    std::shuffle(left.begin(), left.end(), grid.random);
    for (Warp *warp : left)
      warp->run();
    auto ended = [](const Warp *warp) { return warp->alive == 0; };
    auto waits = std::find_if_not(left.begin(), left.end(), ended);
    if (waits == left.end())
      return;
    // All warps, or none, come to a barrier, and to the same.
    for (const Warp &warp : warps)
      if (warp.alive == 0 || warp.barrier != (*waits)->barrier) {
        const Warp &other = **waits;
        throw Fault(
            "warp " + std::to_string(warp.number) +
            (warp.alive ? " waits at barrier " + std::to_string(warp.barrier) : std::string(" has ended")) +
            " while others wait at barrier " + std::to_string(other.barrier) + ": " +
            describePlace(other, grid.kernel.ops[other.pc - 1], __builtin_ctz(other.active)));
      }
    for (Warp &warp : warps)
      warp.barrier = -1;
    pass();
  }
}

void checkShape(const Grid &grid) {
  const Kernel &kernel = grid.kernel;
  auto refuse = [&](const std::string &why) { throw Fault("kernel " + kernel.name + ": " + why); };
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid.blocks[axis] == 0 || grid.threads[axis] == 0)
      refuse("a grid or block has no extent");
    if (axis && grid.blocks[axis] > kMostY)
      refuse(std::to_string(grid.blocks[axis]) + " blocks along y or z, expected at most " +
             std::to_string(kMostY));
    if (kernel.required[axis] && grid.threads[axis] != kernel.required[axis])
      refuse("a block has " + std::to_string(grid.threads[axis]) + " threads, expected the " +
             std::to_string(kernel.required[axis]) + " of .reqntid");
    threads *= grid.threads[axis];
  }
  uint64_t most = kMostThreads;
  if (kernel.most[0])
    most = std::max<int64_t>(kernel.most[0], 1) * std::max<int64_t>(kernel.most[1], 1) *
           std::max<int64_t>(kernel.most[2], 1);
  if (threads > most)
    refuse("a block has " + std::to_string(threads) + " threads, expected at most " + std::to_string(most));
  if (kernel.sharedBytes + grid.dynamicShared > kMostShared)
    refuse("a block needs " + std::to_string(kernel.sharedBytes + grid.dynamicShared) +
           " bytes of shared memory, expected at most " + std::to_string(kMostShared));
}

void runGrid(Grid &grid) {
  checkShape(grid);
  grid.cached.assign(grid.kernel.ops.size(), nullptr);
  grid.times.launch = grid.memory.beginLaunch();
  uint64_t count = uint64_t(grid.blocks[0]) * grid.blocks[1] * grid.blocks[2];
  // Any order of blocks is one: a random stride through them.
  uint64_t stride = count > 2 ? grid.random() % count | 1 : 1, at = grid.random() % count;
  while (std::__gcd(stride, count) != 1)
    stride += 2;
  Block block(grid);
  for (uint64_t i = 0; i < count; ++i, at = (at + stride) % count)
    block.run(at % grid.blocks[0], at / grid.blocks[0] % grid.blocks[1],
              at / grid.blocks[0] / grid.blocks[1]);
}

Footprint Grid::footprint() const {
  std::vector<const Touched *> all;
  for (const auto &[allocation, one] : touched)
    all.push_back(&one);
  std::sort(all.begin(), all.end(),
            [](auto *a, auto *b) { return a->allocation->address < b->allocation->address; });
  Footprint made;
  for (const Touched *one : all)
    for (bool isWrite : {false, true}) {
      const std::vector<uint64_t> &chunks = isWrite ? one->writes : one->reads;
      for (size_t i = 0; i < chunks.size(); ++i)
        if (chunks[i])
          made.addChunks(one->allocation->address + i * 64 * Footprint::kChunk, chunks[i], isWrite);
    }
  return made;
}

} // namespace softdevice

//===- Access.cpp - lanes and the memories they reach ---------------------===//

#include "Access.h"
#include "Wide.h"
#include "Written.h"

#include <algorithm>

namespace softdevice {

static std::string kindOf(bool writes) { return writes ? "a write" : "a read"; }

/// "block 3 writes".
static std::string describe(const Grid &grid, const Conflict &conflict) {
  const Times &times = grid.times;
  if (conflict.with == times.severalBlocks())
    return "several blocks read";
  if (conflict.with == times.severalWarps())
    return "several warps read";
  if (conflict.with >= times.now)
    return "warp " + std::to_string(conflict.with - times.now) + " " + conflict.does;
  auto after = std::upper_bound(grid.began.begin(), grid.began.end(), conflict.with,
                                [](Stamp stamp, const auto &block) { return stamp < block.first; });
  return "block " + std::to_string(std::prev(after)->second) + " " + conflict.does;
}

/// Notes what a launch touches, for the order between launches, and who does, for that between blocks and
/// warps.
static void note(Warp &warp, const Op &op, int lane, Allocation *allocation, uint64_t offset, uint32_t bytes,
                 bool reads, bool writes) {
  Grid &grid = warp.block.grid;
  Touched *&cached = grid.cached[op.index];
  if (!cached || cached->allocation != allocation) {
    cached = &grid.touched[allocation];
    if (!cached->allocation) {
      cached->allocation = allocation;
      size_t words = allocation->bytes / Footprint::kChunk / 64 + 1;
      cached->reads.resize(words);
      cached->writes.resize(words);
    }
  }
  cached->mark(offset, bytes, reads, writes);
  Stamp mine = grid.times.now + warp.number;
  if (Conflict other = allocation->owners.note(offset, bytes, grid.times, mine, reads, writes); other.does)
    throw Fault("a race: " + kindOf(writes) + " of " + std::to_string(bytes) +
                " bytes of global memory that " + describe(grid, other) +
                " with nothing between: " + describePlace(warp, op, lane));
}

/// What `reachGlobal` returns where the operation was in the allocation before and nothing is wrong; null if
/// something may be, and then nothing has changed.
SOFT_INLINE char *reachGlobalQuick(Warp &warp, const Op &op, uint64_t address, uint32_t bytes, bool writes) {
  Grid &grid = warp.block.grid;
  Touched *touched = grid.cached[op.index];
  if (!touched)
    return nullptr;
  Allocation &allocation = *touched->allocation;
  uint64_t offset = address - allocation.address;
  if (offset >= allocation.bytes || bytes > allocation.bytes - offset)
    return nullptr;
  if (!writes && !allocation.isHost && !hasAll(&allocation.written[offset], bytes))
    return nullptr;
  if (!allocation.owners.noteQuick(offset, bytes, grid.times, grid.times.now + warp.number, writes))
    return nullptr;
  if (writes && !allocation.isHost)
    std::memset(&allocation.written[offset], 1, bytes);
  touched->mark(offset, bytes, !writes, writes);
  return allocation.storage + offset;
}

static char *reachGlobal(Warp &warp, const Op &op, int lane, uint64_t address, uint32_t bytes, bool reads,
                         bool writes) {
  Grid &grid = warp.block.grid;
  Touched *last = grid.cached[op.index];
  Allocation *found = last ? last->allocation : nullptr;
  if (!found || address - found->address >= found->bytes)
    found = grid.memory.find(address);
  uint64_t offset = found ? address - found->address : 0;
  if (!found || offset + bytes > found->bytes)
    // Says what is wrong.
    grid.memory.reach(address, bytes, reads, writes, "a global " + kindOf(writes).substr(2));
  if (reads && !found->isHost)
    if (const void *hole = std::memchr(&found->written[offset], 0, bytes))
      throw Fault("a global read of " + std::to_string(bytes) + " bytes that nobody wrote, at byte " +
                  std::to_string(static_cast<const uint8_t *>(hole) - found->written.data()) + " of " +
                  found->what + " of " + std::to_string(found->bytes) + ": " + describePlace(warp, op, lane));
  if (writes && !found->isHost)
    std::memset(&found->written[offset], 1, bytes);
  note(warp, op, lane, found, offset, bytes, reads, writes);
  return found->storage + offset;
}

static char *reachIn(Warp &warp, const Op &op, Space space, int lane, uint64_t address, uint32_t bytes,
                     bool reads, bool writes) {
  if (space == Space::Generic) {
    if (address - kSharedWindow < kWindowBytes) {
      space = Space::Shared;
      address -= kSharedWindow;
    } else if (address - kLocalWindow < kWindowBytes) {
      space = Space::Local;
      address -= kLocalWindow;
    } else {
      space = Space::Global;
    }
  }
  switch (space) {
  case Space::Shared:
    return warp.block.shared.reach(address, bytes, warp.number, reads, writes);
  case Space::Local: {
    uint64_t own = warp.block.grid.kernel.localBytes;
    if (address + bytes > own)
      throw Fault(kindOf(writes) + " of " + std::to_string(bytes) + " bytes at " + std::to_string(address) +
                  " of local memory, which has " + std::to_string(own));
    return warp.local.data() + lane * own + address;
  }
  case Space::Parameter:
    if (address + bytes > static_cast<uint64_t>(warp.block.grid.kernel.parameterBytes) || writes)
      throw Fault(kindOf(writes) + " of " + std::to_string(bytes) + " bytes at " + std::to_string(address) +
                  " of " + std::to_string(warp.block.grid.kernel.parameterBytes) + " bytes of parameters");
    return const_cast<char *>(warp.block.grid.parameters) + address;
  default:
    return reachGlobal(warp, op, lane, address, bytes, reads, writes);
  }
}

/// What `reach` returns where nothing is wrong, at once, of memory that all lanes see alike; null if
/// something may be.
static char *reachQuick(Warp &warp, const Op &op, Space space, uint64_t address, uint32_t unit,
                        uint32_t bytes, bool writes) {
  if (address & (unit - 1))
    return nullptr;
  if (space == Space::Generic && address - kSharedWindow < kWindowBytes) {
    space = Space::Shared;
    address -= kSharedWindow;
  }
  switch (space) {
  case Space::Shared:
    return warp.block.shared.reachQuick(address, bytes, warp.number, writes);
  case Space::Generic:
  case Space::Global:
  case Space::Constant:
    return reachGlobalQuick(warp, op, address, bytes, writes);
  default:
    return nullptr;
  }
}

char *reach(Warp &warp, const Op &op, Space space, int lane, uint64_t address, uint32_t unit, uint32_t bytes,
            bool reads, bool writes) {
  if (reads != writes)
    if (char *place = reachQuick(warp, op, space, address, unit, bytes, writes))
      return place;
  try {
    if (address % unit)
      throw Fault(kindOf(writes) + " of " + std::to_string(unit) +
                  " bytes at an address that is no multiple of that");
    return reachIn(warp, op, space, lane, address, bytes, reads, writes);
  } catch (const Fault &fault) {
    if (std::strstr(fault.what(), "PTX line"))
      throw;
    throw Fault(std::string(fault.what()) + ": " + describePlace(warp, op, lane));
  }
}

Space takeSpace(Decoder &decoder, const Operand &address) {
  std::string word =
      decoder.takeOne({"global", "shared", "shared::cta", "local", "param", "param::entry", "const"});
  // A generic address of a variable has its window added before.
  return word == "global"  ? Space::Global
         : word[0] == 's'  ? Space::Shared
         : word == "local" ? Space::Local
         : word[0] == 'p'  ? Space::Parameter
         : word == "const" ? Space::Constant
                           : Space::Generic;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// How the addresses of lanes lie: one value behind the other, all at one place, or otherwise.
enum class Pattern { Row, One, Other };

/// Of lanes that follow each other, from `first` on. What is added to all changes nothing.
template <class T>
SOFT_INLINE Pattern patternOf(const T *addresses, uint32_t lanes, int first, uint32_t stride) {
  T start = addresses[first], notRow = 0, notOne = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    T counts = -static_cast<T>(lanes >> lane & 1);
    T distance = addresses[lane] - start;
    notOne |= distance & counts;
    notRow |= (distance - static_cast<T>(static_cast<T>(lane - first) * stride)) & counts;
  }
  return !notOne ? Pattern::One : !notRow ? Pattern::Row : Pattern::Other;
}
SOFT_CLONES static Pattern patternOfWide(const uint64_t *addresses, uint32_t lanes, int first,
                                         uint32_t stride) {
  return patternOf(addresses, lanes, first, stride);
}
SOFT_CLONES static Pattern patternOfNarrow(const uint32_t *addresses, uint32_t lanes, int first,
                                           uint32_t stride) {
  return patternOf(addresses, lanes, first, stride);
}

namespace {
/// The lanes of a load or store, and where they go.
struct Access {
  uint32_t lanes;
  int first = 0, count = 0; ///< lanes that follow each other; otherwise none
  Pattern pattern = Pattern::Other;
  const char *row;
  bool isWide;
  uint64_t offset;

  uint64_t address(int lane) const {
    return (isWide ? reinterpret_cast<const uint64_t *>(row)[lane]
                   : reinterpret_cast<const uint32_t *>(row)[lane]) +
           offset;
  }

  Access(Warp &warp, const Op &op, uint32_t stride)
      : lanes(warp.lanes(op)), row(warp.row<char>(op.a)), isWide(op.width == 8), offset(op.number) {
    if (!lanes || static_cast<Space>(op.mode) == Space::Local)
      return;
    first = __builtin_ctz(lanes);
    count = __builtin_popcount(lanes);
    if (lanes >> first != ~0u >> (kLanes - count))
      return;
    pattern = isWide ? patternOfWide(reinterpret_cast<const uint64_t *>(row), lanes, first, stride)
                     : patternOfNarrow(reinterpret_cast<const uint32_t *>(row), lanes, first, stride);
  }
};
} // namespace

/// The places of lanes, each on its own.
template <bool writes>
static void reachLanes(Warp &warp, const Op &op, const Access &access, uint32_t unit, uint32_t bytes,
                       char **places) {
  Space space = static_cast<Space>(op.mode);
  int last = -1;
  uint64_t before = 0;
  eachLane(access.lanes, [&](int lane) {
    uint64_t address = access.address(lane);
    char *place = nullptr;
    // Neighbours often read the same; of local memory each lane has its own.
    if (!writes && last >= 0 && before == address && space != Space::Local &&
        address - kLocalWindow >= kWindowBytes)
      place = places[last];
    else if (space == Space::Shared && !(address & (unit - 1)))
      place = warp.block.shared.reachQuick(address, bytes, warp.number, writes);
    else if (space == Space::Global && !(address & (unit - 1)))
      place = reachGlobalQuick(warp, op, address, bytes, writes);
    if (!place)
      place = reach(warp, op, space, lane, address, unit, bytes, !writes, writes);
    places[lane] = place;
    last = lane;
    before = address;
  });
}

/// Between registers of `width` bytes and memory, for lanes that follow each other.
template <int width, bool isLoad>
static void moveRow(Warp &warp, const Op &op, const Access &access, char *begin, uint32_t step) {
  for (size_t i = 0; i < op.rows.size(); ++i) {
    char *row = warp.row<char>(op.rows[i]) + access.first * width, *from = begin + i * width;
    if (step == width)
      std::memcpy(isLoad ? row : from, isLoad ? from : row, access.count * width);
    else
      for (int lane = 0; lane < access.count; ++lane)
        std::memcpy(isLoad ? row + lane * width : from + lane * step,
                    isLoad ? from + lane * step : row + lane * width, width);
  }
}

/// The same for lanes at places of their own. Of two that write one place the later is the last.
template <int width, bool isLoad>
static void moveLanes(Warp &warp, const Op &op, const Access &access, char *const *places) {
  for (size_t i = 0; i < op.rows.size(); ++i) {
    char *row = warp.row<char>(op.rows[i]);
    eachLane(access.lanes, [=](int lane) SOFT_LAMBDA {
      std::memcpy(isLoad ? row + lane * width : places[lane] + i * width,
                  isLoad ? places[lane] + i * width : row + lane * width, width);
    });
  }
}

/// One behind the other, all at one place, or of parameters, of which nothing is noted: where the first one's
/// values are, and how far apart those of lanes. Null: each lane on its own.
static char *reachTogether(Warp &warp, const Op &op, const Access &access, uint32_t bytes, uint32_t &step) {
  Space space = static_cast<Space>(op.mode);
  uint32_t stride = op.to;
  bool isRow = access.pattern == Pattern::Row && bytes == stride;
  if (!isRow && access.pattern != Pattern::One)
    return nullptr;
  step = isRow ? stride : 0;
  uint64_t address = access.address(access.first);
  return space == Space::Parameter && !isRow
             ? reach(warp, op, space, access.first, address, stride, bytes, true, false)
             : reachQuick(warp, op, space, address, stride, isRow ? bytes * access.count : bytes,
                          /*writes=*/false);
}

/// `op.rows` are the registers' rows, `op.c` the width of one, `op.second` whether it is signed, `op.bytes`
/// of one value, `op.to` of all; the last ones have no row where nobody looks at them.
template <int width> static void load(Warp &warp, const Op &op) {
  uint32_t bytes = op.bytes * static_cast<uint32_t>(op.rows.size()), step;
  Access access(warp, op, op.to);
  if (char *from = reachTogether(warp, op, access, bytes, step))
    return moveRow<width, true>(warp, op, access, from, step);
  char *places[kLanes];
  reachLanes<false>(warp, op, access, op.to, bytes, places);
  moveLanes<width, true>(warp, op, access, places);
}

/// To registers wider than the values.
template <class Value, class Register> static void loadExtended(Warp &warp, const Op &op) {
  uint32_t bytes = op.bytes * static_cast<uint32_t>(op.rows.size()), step;
  Access access(warp, op, op.to);
  char *places[kLanes];
  if (char *from = reachTogether(warp, op, access, bytes, step))
    for (int lane = 0; lane < access.count; ++lane)
      places[access.first + lane] = from + lane * step;
  else
    reachLanes<false>(warp, op, access, op.to, bytes, places);
  for (size_t i = 0; i < op.rows.size(); ++i) {
    Register *row = warp.row<Register>(op.rows[i]);
    eachLane(access.lanes, [=](int lane) {
      Value value;
      std::memcpy(&value, places[lane] + i * sizeof(Value), sizeof(Value));
      row[lane] = static_cast<Register>(value);
    });
  }
}

template <int width> static void store(Warp &warp, const Op &op) {
  uint32_t stride = op.bytes * static_cast<uint32_t>(op.rows.size());
  Access access(warp, op, stride);
  if (access.pattern == Pattern::Row)
    if (char *to = reachQuick(warp, op, static_cast<Space>(op.mode), access.address(access.first), stride,
                              stride * access.count, /*writes=*/true))
      return moveRow<width, false>(warp, op, access, to, stride);
  char *places[kLanes];
  reachLanes<true>(warp, op, access, stride, stride, places);
  moveLanes<width, false>(warp, op, access, places);
}

/// Of registers wider than the values.
static void storeCut(Warp &warp, const Op &op) {
  uint32_t stride = op.bytes * static_cast<uint32_t>(op.rows.size());
  Access access(warp, op, stride);
  char *places[kLanes];
  reachLanes<true>(warp, op, access, stride, stride, places);
  eachLane(access.lanes, [&](int lane) {
    for (size_t i = 0; i < op.rows.size(); ++i)
      std::memcpy(places[lane] + i * op.bytes, warp.row<char>(op.rows[i]) + lane * op.c, op.bytes);
  });
}

using Run = void (*)(Warp &, const Op &);

template <class Value> static Run extendedHandler(uint32_t width) {
  return width == 2   ? loadExtended<Value, int16_t>
         : width == 4 ? loadExtended<Value, int32_t>
                      : loadExtended<Value, int64_t>;
}

static Run memoryHandler(uint32_t bytes, uint32_t width, bool isLoad, bool isSigned) {
  if (bytes != width && !isLoad)
    return storeCut;
  if (bytes != width)
    return bytes == 1   ? isSigned ? extendedHandler<int8_t>(width) : extendedHandler<uint8_t>(width)
           : bytes == 2 ? isSigned ? extendedHandler<int16_t>(width) : extendedHandler<uint16_t>(width)
           : bytes == 8 ? extendedHandler<int64_t>(width)
           : isSigned   ? extendedHandler<int32_t>(width)
                        : extendedHandler<uint32_t>(width);
  switch (bytes) {
  case 1:
    return isLoad ? load<1> : store<1>;
  case 2:
    return isLoad ? load<2> : store<2>;
  case 4:
    return isLoad ? load<4> : store<4>;
  case 8:
    return isLoad ? load<8> : store<8>;
  default:
    return isLoad ? load<16> : store<16>;
  }
}

bool decodeMemory(Decoder &decoder, Op &op) {
  bool isLoad = decoder.base() == "ld" || decoder.base() == "ldu", isStore = decoder.base() == "st";
  if (decoder.base() == "prefetch" || decoder.base() == "prefetchu" || decoder.base() == "applypriority")
    return false;
  if ((!isLoad && !isStore) || !decoder.has(2))
    return false;
  const Operand &address = decoder.operand(isLoad ? 1 : 0), &value = decoder.operand(isLoad ? 0 : 1);
  // How long something stays in a cache, and who sees it when: each access is done when its operation is.
  while (!decoder
              .takeOne({"volatile",
                        "weak",
                        "relaxed",
                        "acquire",
                        "release",
                        "cta",
                        "gpu",
                        "sys",
                        "cluster",
                        "nc",
                        "ca",
                        "cg",
                        "cs",
                        "cv",
                        "lu",
                        "wb",
                        "wt",
                        "L1::no_allocate",
                        "L1::evict_last",
                        "L1::evict_first",
                        "L1::evict_normal",
                        "L2::64B",
                        "L2::128B",
                        "L2::256B"})
              .empty())
    ;
  op.mode = static_cast<uint8_t>(takeSpace(decoder, address));
  std::string vector = decoder.takeOne({"v2", "v4", "v8"});
  Type type = decoder.takeType();
  std::vector<const Operand *> values;
  if (value.kind == Operand::Kind::Vector)
    for (const Operand &part : value.parts)
      values.push_back(&part);
  else
    values.push_back(&value);
  size_t expected = vector.empty() ? 1 : vector[1] - '0';
  if (type == Type::None || values.size() != expected)
    return false;
  op.bytes = bytesOf(type);
  op.c = op.bytes;
  op.second = isSigned(type);
  for (const Operand *one : values) {
    op.rows.push_back(isLoad ? decoder.write(*one) : decoder.read(*one, type));
    if (one->kind == Operand::Kind::Register)
      op.c = decoder.width(*one, type);
  }
  // Compilers read more than they need, where the address allows it.
  op.to = op.bytes * static_cast<uint32_t>(op.rows.size());
  while (isLoad && op.rows.size() > 1 && !decoder.isUsed(*values.back())) {
    op.rows.pop_back();
    values.pop_back();
  }
  decoder.address(address, op);
  op.run = memoryHandler(op.bytes, op.c, isLoad, op.second);
  return true;
}

} // namespace softdevice

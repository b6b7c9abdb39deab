//===- Access.cpp - lanes and the memories they reach ---------------------===//

#include "Access.h"

namespace softdevice {

static std::string kindOf(bool writes) { return writes ? "a write" : "a read"; }

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
      size_t chunks = (allocation->bytes + Footprint::kChunk - 1) / Footprint::kChunk;
      cached->reads.resize(chunks);
      cached->writes.resize(chunks);
    }
  }
  for (uint64_t chunk = offset / Footprint::kChunk; chunk <= (offset + bytes - 1) / Footprint::kChunk;
       ++chunk) {
    if (reads)
      cached->reads[chunk] = true;
    if (writes)
      cached->writes[chunk] = true;
  }
  Accessor who{warp.block.number, warp.block.shared.now(), static_cast<uint32_t>(warp.number)};
  if (std::string other = cached->owners.note(offset, bytes, who, reads, writes); !other.empty())
    throw Fault("a race: " + kindOf(writes) + " of " + std::to_string(bytes) +
                " bytes of global memory that " + other +
                " with nothing between: " + describePlace(warp, op, lane));
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

char *reach(Warp &warp, const Op &op, Space space, int lane, uint64_t address, uint32_t unit, uint32_t bytes,
            bool reads, bool writes) {
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

/// How the lanes of a whole warp lie: one behind the other, all at one place, or otherwise.
enum class Pattern { Row, One, Other };

static Pattern patternOf(Warp &warp, const Op &op, uint32_t stride) {
  if (warp.lanes(op) != ~0u || static_cast<Space>(op.mode) == Space::Local)
    return Pattern::Other;
  uint64_t first = addressOf(warp, op, 0);
  bool isRow = true, isOne = true;
  for (int lane = 1; lane < kLanes; ++lane) {
    uint64_t address = addressOf(warp, op, lane);
    isRow &= address == first + static_cast<uint64_t>(lane) * stride;
    isOne &= address == first;
  }
  // Generic addresses of local memory are each lane's own.
  if (static_cast<Space>(op.mode) == Space::Generic && first - kLocalWindow < kWindowBytes)
    return Pattern::Other;
  return isRow ? Pattern::Row : isOne ? Pattern::One : Pattern::Other;
}

static void writeExtended(char *row, int width, int lane, const char *from, uint32_t bytes, bool isSigned) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  if (isSigned && bytes < 8 && (value >> (8 * bytes - 1) & 1))
    value |= ~0ull << 8 * bytes;
  std::memcpy(row + lane * width, &value, width);
}

/// The bytes of all lanes from the first one's on; null where something is wrong, which is then some lane's.
static char *reachTogether(Warp &warp, const Op &op, uint32_t unit, uint32_t bytes, bool reads, bool writes) {
  try {
    return reach(warp, op, static_cast<Space>(op.mode), 0, addressOf(warp, op, 0), unit, bytes, reads,
                 writes);
  } catch (const Fault &) {
    return nullptr;
  }
}

/// `op.rows` are the registers' rows, `op.c` the width of one, `op.second` whether it is signed, `op.bytes`
/// of one value, `op.to` of all; the last ones have no row where nobody looks at them.
static void load(Warp &warp, const Op &op) {
  uint32_t count = static_cast<uint32_t>(op.rows.size()), width = op.c, stride = op.to;
  uint32_t bytes = op.bytes * count;
  Space space = static_cast<Space>(op.mode);
  auto take = [&](int lane, const char *from) {
    for (uint32_t i = 0; i < count; ++i) {
      char *row = warp.row<char>(op.rows[i]);
      if (width == 4 && op.bytes == 4)
        std::memcpy(row + lane * 4, from + i * 4, 4);
      else if (width == op.bytes)
        std::memcpy(row + lane * width, from + i * width, width);
      else
        writeExtended(row, width, lane, from + i * op.bytes, op.bytes, op.second);
    }
  };
  Pattern pattern = bytes == stride ? patternOf(warp, op, stride) : Pattern::Other;
  bool isRow = pattern == Pattern::Row;
  if (const char *from =
          pattern == Pattern::Other
              ? nullptr
              : reachTogether(warp, op, stride, isRow ? stride * kLanes : stride, true, false)) {
    for (int lane = 0; lane < kLanes; ++lane)
      take(lane, from + (isRow ? lane * stride : 0));
    return;
  }
  eachLane(warp.lanes(op), [&](int lane) {
    take(lane, reach(warp, op, space, lane, addressOf(warp, op, lane), stride, bytes, true, false));
  });
}

static void store(Warp &warp, const Op &op) {
  uint32_t count = static_cast<uint32_t>(op.rows.size()), width = op.c, stride = op.bytes * count;
  Space space = static_cast<Space>(op.mode);
  auto put = [&](int lane, char *to) {
    for (uint32_t i = 0; i < count; ++i)
      std::memcpy(to + i * op.bytes, warp.row<char>(op.rows[i]) + lane * width, op.bytes);
  };
  if (char *to = patternOf(warp, op, stride) == Pattern::Row
                     ? reachTogether(warp, op, stride, stride * kLanes, false, true)
                     : nullptr) {
    for (int lane = 0; lane < kLanes; ++lane)
      put(lane, to + lane * stride);
    return;
  }
  eachLane(warp.lanes(op), [&](int lane) {
    put(lane, reach(warp, op, space, lane, addressOf(warp, op, lane), stride, stride, false, true));
  });
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
  op.run = isLoad ? load : store;
  return true;
}

} // namespace softdevice

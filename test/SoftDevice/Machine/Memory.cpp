//===- Memory.cpp - what kernels and copies read and write ----------------===//

#include "Memory.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace softdevice {

/// Between two allocations, so that running past one never reaches the next.
static constexpr uint64_t kGap = 256;
/// cuMemAlloc's alignment.
static constexpr uint64_t kAlignment = 256;
static constexpr int kUnwritten = 0xA5;

static std::string number(uint64_t value) { return std::to_string(value); }

//===----------------------------------------------------------------------===//
// Footprints
//===----------------------------------------------------------------------===//

static bool isBefore(const std::pair<uint64_t, uint64_t> &chunks, uint64_t group) {
  return chunks.first < group;
}

void Footprint::insert(Chunks &chunks, uint64_t group, uint64_t bits) {
  auto place = chunks.end();
  // Most are added in order.
  if (!chunks.empty() && chunks.back().first >= group)
    place = std::lower_bound(chunks.begin(), chunks.end(), group, isBefore);
  if (place != chunks.end() && place->first == group)
    place->second |= bits;
  else
    chunks.insert(place, {group, bits});
}

void Footprint::add(uint64_t address, uint64_t bytes, bool isWrite) {
  if (bytes == 0)
    return;
  uint64_t first = address / kChunk, last = (address + bytes - 1) / kChunk;
  for (uint64_t group = first / 64; group <= last / 64; ++group) {
    uint64_t from = group == first / 64 ? first % 64 : 0, to = group == last / 64 ? last % 64 : 63;
    insert(isWrite ? writes : reads, group, (~0ull >> (63 - to)) & (~0ull << from));
  }
}

void Footprint::addChunks(uint64_t address, uint64_t bits, bool isWrite) {
  if (address % kChunk) {
    for (; bits; bits &= bits - 1)
      add(address + __builtin_ctzll(bits) * kChunk, kChunk, isWrite);
    return;
  }
  uint64_t group = address / kChunk / 64, shift = address / kChunk % 64;
  if (uint64_t low = bits << shift)
    insert(isWrite ? writes : reads, group, low);
  if (uint64_t high = shift ? bits >> (64 - shift) : 0)
    insert(isWrite ? writes : reads, group + 1, high);
}

uint64_t Footprint::common(const Chunks &a, const Chunks &b) {
  if (a.size() > b.size())
    return common(b, a);
  auto from = b.begin();
  for (const auto &[group, bits] : a) {
    from = std::lower_bound(from, b.end(), group, isBefore);
    if (from == b.end())
      return 0;
    if (from->first == group && (from->second & bits))
      return (group * 64 + __builtin_ctzll(from->second & bits)) * kChunk;
  }
  return 0;
}

uint64_t Footprint::conflict(const Footprint &other) const {
  for (uint64_t address :
       {common(writes, other.writes), common(writes, other.reads), common(reads, other.writes)})
    if (address)
      return address;
  return 0;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Memory::Memory(uint64_t capacity) : capacity(capacity) {
  // Twice the room: gaps and fragmentation take addresses, not memory.
  size = 2 * capacity;
  void *seen = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  file = memfd_create("soft-device", MFD_CLOEXEC);
  void *mapped = MAP_FAILED;
  if (file >= 0 && ftruncate(file, size) == 0)
    mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (seen == MAP_FAILED || mapped == MAP_FAILED)
    throw Fault("the software device cannot map " + number(size) + " bytes: " + std::strerror(errno));
  base = next = reinterpret_cast<uint64_t>(seen);
  alias = static_cast<char *>(mapped);
}

Memory::~Memory() {
  munmap(reinterpret_cast<void *>(base), size);
  munmap(alias, size);
  close(file);
}

uint64_t Memory::allocate(uint64_t bytes, const std::string &what) {
  uint64_t room = (bytes + kGap + kAlignment - 1) / kAlignment * kAlignment, address = 0;
  if (bytes == 0 || bytes > left())
    return 0;
  for (auto &[begin, length] : holes)
    if (length >= room) {
      address = begin;
      uint64_t rest = length - room;
      holes.erase(begin);
      if (rest)
        holes[address + room] = rest;
      break;
    }
  if (!address) {
    if (next + room > base + size)
      return 0;
    address = next;
    next += room;
  }
  Allocation &made = all[address];
  made.address = address;
  made.bytes = bytes;
  made.storage = alias + (address - base);
  made.written.assign(bytes, 0);
  made.what = what;
  std::memset(made.storage, kUnwritten, bytes);
  used += bytes;
  return address;
}

void Memory::addHost(void *address, uint64_t bytes) {
  Allocation &made = all[reinterpret_cast<uint64_t>(address)];
  made.address = reinterpret_cast<uint64_t>(address);
  made.bytes = bytes;
  made.storage = static_cast<char *>(address);
  made.isHost = true;
  made.what = "host memory";
}

void Memory::free(uint64_t address) {
  auto found = all.find(address);
  if (found == all.end())
    throw Fault("freed address " + number(address) + " was not allocated");
  if (!found->second.isHost) {
    uint64_t room = (found->second.bytes + kGap + kAlignment - 1) / kAlignment * kAlignment;
    used -= found->second.bytes;
    // Pages go back: what is allocated next begins anew anyway.
    uint64_t page = 4096, begin = (address - base + page - 1) / page * page,
             end = (address - base + room) / page * page;
    if (end > begin)
      fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);
    auto after = holes.emplace(address, room).first;
    if (auto following = std::next(after); following != holes.end() && address + room == following->first) {
      after->second += following->second;
      holes.erase(following);
    }
    if (after != holes.begin())
      if (auto before = std::prev(after); before->first + before->second == address) {
        before->second += after->second;
        holes.erase(after);
      }
  }
  all.erase(found);
}

Allocation *Memory::find(uint64_t address) {
  auto after = all.upper_bound(address);
  if (after == all.begin())
    return nullptr;
  Allocation &before = std::prev(after)->second;
  return address - before.address < before.bytes ? &before : nullptr;
}

Stamp Memory::nextTime() {
  if (time > ~0u - 2 * kStampsOfTime)
    throw Fault("more blocks and barriers in a launch than the software device can tell apart");
  return time += kStampsOfTime;
}

Stamp Memory::beginLaunch() {
  if (time > ~0u / 2) {
    for (auto &[address, allocation] : all)
      allocation.owners.clear();
    time = 0;
  }
  return nextTime();
}

char *Memory::reach(uint64_t address, uint64_t bytes, bool reads, bool writes, const std::string &what) {
  Allocation *found = find(address);
  if (!found) {
    auto after = all.upper_bound(address);
    std::string beside;
    if (after != all.begin() && isDevice(address)) {
      const Allocation &before = std::prev(after)->second;
      uint64_t past = address - before.address - before.bytes;
      beside =
          " (" + number(past) + " bytes past the end of " + before.what + " of " + number(before.bytes) + ")";
    }
    throw Fault(what + " of " + number(bytes) + " bytes at an address that is not allocated" + beside);
  }
  uint64_t offset = address - found->address;
  if (offset + bytes > found->bytes)
    throw Fault(what + " of " + number(bytes) + " bytes reaches " + number(offset + bytes - found->bytes) +
                " bytes past the end of " + found->what + " of " + number(found->bytes));
  if (!found->isHost) {
    auto first = found->written.begin() + offset;
    if (reads)
      if (auto hole = std::find(first, first + bytes, 0); hole != first + bytes)
        throw Fault(what + " of " + number(bytes) + " bytes reads what nobody wrote, at byte " +
                    number(hole - found->written.begin()) + " of " + found->what + " of " +
                    number(found->bytes));
    if (writes)
      std::fill(first, first + bytes, 1);
  }
  return found->storage + offset;
}

} // namespace softdevice

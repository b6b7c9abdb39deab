//===- Memory.h - what kernels and copies read and write --------*- C++ -*-===//
//
// Device memory lies twice in the address space: at addresses that fault when the
// host touches them, which are what programs see, and at others for the device alone.
// Beside each byte is whether anything was ever written there.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_MEMORY_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_MEMORY_H

#include "Owners.h"

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace softdevice {

/// What a program did that a device does not do or that is an error on it. The text says all of it.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which parts of memory something reads and writes, in chunks of `kChunk` bytes; to find two that touch the
/// same ones without an order between them.
class Footprint {
public:
  static constexpr uint64_t kChunk = 64;
  void add(uint64_t address, uint64_t bytes, bool isWrite);
  /// Adds those of the 64 times `kChunk` bytes from an address on that have a bit.
  void addChunks(uint64_t address, uint64_t bits, bool isWrite);
  /// An address of a chunk that both touch and at least one writes; 0 if there is none.
  uint64_t conflict(const Footprint &other) const;
  bool isEmpty() const { return reads.empty() && writes.empty(); }

private:
  /// 64 chunks by their first's number / 64, in order.
  using Chunks = std::vector<std::pair<uint64_t, uint64_t>>;
  static void insert(Chunks &chunks, uint64_t group, uint64_t bits);
  static uint64_t common(const Chunks &a, const Chunks &b);
  Chunks reads, writes;
};

struct Allocation {
  uint64_t address = 0, bytes = 0;
  char *storage = nullptr;      ///< where its bytes are for the device
  std::vector<uint8_t> written; ///< 0 or 1 for each
  Owners owners;
  bool isHost = false;
  std::string what; ///< for messages: "an allocation", "@table of module 1"
};

class Memory {
public:
  /// `capacity` bytes of device memory.
  explicit Memory(uint64_t capacity);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// 0 where there is no room. Bytes are not 0 at first.
  uint64_t allocate(uint64_t bytes, const std::string &what);
  /// Memory of the host that kernels may touch, at its own address.
  void addHost(void *address, uint64_t bytes);
  /// Throws where `address` is not what was returned.
  void free(uint64_t address);
  /// The allocation that holds the address; null if there is none.
  Allocation *find(uint64_t address);
  /// Whether the address is one of the device's, allocated or not.
  bool isDevice(uint64_t address) const { return address - base < size; }

  /// The bytes at an address for the device, for `bytes` of one allocation; throws a Fault that begins with
  /// `what` ("copy to the host"). Reads of what was never written throw where `reads`.
  char *reach(uint64_t address, uint64_t bytes, bool reads, bool writes, const std::string &what);

  /// A time for a launch, with which what was noted in those before is of no account.
  Stamp beginLaunch();
  /// A time later than all before.
  Stamp nextTime();
  Stamp time = 0; ///< the last one

  uint64_t total() const { return capacity; }
  uint64_t left() const { return capacity - used; }
  size_t allocations() const { return all.size(); }
  const std::map<uint64_t, Allocation> &list() const { return all; }

private:
  uint64_t capacity, used = 0;
  uint64_t base = 0, size = 0, next = 0;
  char *alias = nullptr;
  int file = -1;
  std::map<uint64_t, Allocation> all;
  std::map<uint64_t, uint64_t> holes; ///< freed ranges by address
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_MEMORY_H

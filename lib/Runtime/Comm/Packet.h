//===- Packet.h - numbers and texts one after the other ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_PACKET_H
#define DSOPT_LIB_RUNTIME_COMM_PACKET_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace dsopt::runtime {

/// What one side writes.
class Packet {
public:
  std::string bytes;
  void number(uint64_t value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    bytes += value;
  }
};

/// What the other reads, whatever it may be: past the end everything is 0 and empty, and `good` says so.
class PacketReader {
public:
  explicit PacketReader(std::string_view bytes) : rest(bytes) {}

  uint64_t number() {
    uint64_t value = 0;
    if (!take(sizeof value))
      return 0;
    std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  int64_t integer() { return static_cast<int64_t>(number()); }
  std::string text() { return take(number()) ? std::string(taken) : std::string(); }
  /// How many of something follow that take `bytes` each at least.
  uint64_t count(size_t bytes) {
    uint64_t value = number();
    if (value > rest.size() / bytes)
      isGood = false;
    return isGood ? value : 0;
  }
  /// Whether all of it was there.
  bool good() const { return isGood; }
  /// Whether that was all.
  bool ended() const { return isGood && rest.empty(); }

private:
  bool take(uint64_t bytes) {
    isGood = isGood && bytes <= rest.size();
    if (!isGood)
      return false;
    taken = rest.substr(0, bytes);
    rest.remove_prefix(bytes);
    return true;
  }
  std::string_view rest, taken;
  bool isGood = true;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_PACKET_H

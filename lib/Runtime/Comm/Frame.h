//===- Frame.h - what precedes everything on the wire -----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_FRAME_H
#define DSOPT_LIB_RUNTIME_COMM_FRAME_H

#include "dsopt/Runtime/Engine.h"

#include <cstddef>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {

/// An operation is named by space and number: the collectives of a communicator are counted, values have
/// tags. Both the header and what follows it are checked: a bit that flips on the way is found before
/// anything uses it.
struct Frame {
  enum Kind : uint8_t { Credit, Data, Fail, Bye, Heartbeat };
  static constexpr uint32_t kMagic = 0x6d617265;
  static constexpr uint16_t kValues = Engine::kCommunicators;

  uint32_t magic = kMagic;
  Kind frame = Credit;
  uint8_t kind = 0;         ///< of the operation
  uint16_t space = kValues; ///< or the communicator's number
  uint64_t number = 0;      ///< of the operation; Fail: the status; Heartbeat: the step
  int64_t total = 0;        ///< bytes of the operation between these two ranks; Heartbeat: the action
  int64_t offset = 0;       ///< Data: of its first byte; Credit: how far the other may send; Fail: said?
  int64_t length = 0;       ///< bytes that follow
  uint64_t bodyCheck = 0;   ///< XXH3 of these
  uint64_t headCheck = 0;   ///< XXH3 of all before it

  bool names(const Frame &other) const { return space == other.space && number == other.number; }
  /// With both checks.
  void seal(const void *body) {
    bodyCheck = length > 0 ? XXH3_64bits(body, length) : 0;
    headCheck = XXH3_64bits(this, offsetof(Frame, headCheck));
  }
  bool intact() const {
    return magic == kMagic && headCheck == XXH3_64bits(this, offsetof(Frame, headCheck));
  }
};
static_assert(sizeof(Frame) == 56, "no byte of a frame is without meaning");

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_FRAME_H

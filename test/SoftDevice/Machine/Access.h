//===- Access.h - lanes and the memories they reach -------------*- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_ACCESS_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_ACCESS_H

#include "Decoder.h"
#include "Lanes.h"

namespace softdevice {

/// The memory that an instruction names: `op.mode`.
enum class Space : uint8_t { Generic, Global, Shared, Local, Parameter, Constant };

/// The address of an operation's lane in its space.
inline uint64_t addressOf(Warp &warp, const Op &op, int lane) {
  uint64_t base = op.width == 8 ? warp.row<uint64_t>(op.a)[lane] : warp.row<uint32_t>(op.a)[lane];
  return base + op.number;
}

/// The bytes that a lane reads or writes, in units that its address must be a multiple of; a Fault with its
/// place where it must not.
char *reach(Warp &warp, const Op &op, Space space, int lane, uint64_t address, uint32_t unit, uint32_t bytes,
            bool reads, bool writes);

/// Takes .global, .shared and so on, and for symbols the space that they are in.
Space takeSpace(Decoder &decoder, const Operand &address);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_ACCESS_H

//===- Kernel.h - a function of PTX, ready to run ---------------*- C++ -*-===//
//
// An instruction is decoded once into a handler and the places of its operands; a
// handler works on the 32 lanes of a warp. A register is a row of 32 values in the
// warp's storage; literals, addresses of variables and special registers are rows that
// are filled before, so that an operand is always the place of a row. Predicates are
// masks, and predicate 0 is true.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_KERNEL_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_KERNEL_H

#include "Ptx/Syntax.h"

#include <functional>
#include <set>

namespace softdevice {

inline constexpr int kLanes = 32;

/// Where shared and local memory begin among generic addresses: above all of the host's.
inline constexpr uint64_t kSharedWindow = 1ull << 48, kLocalWindow = 1ull << 49, kWindowBytes = 1ull << 32;

/// Behind each variable in shared memory, so that running past one never reaches the next.
inline constexpr int64_t kSharedGap = 16;

struct Warp;

struct Op {
  void (*run)(Warp &, const Op &) = nullptr;
  uint32_t to = 0, a = 0, b = 0, c = 0; ///< rows, or predicates
  uint32_t second = 0;                  ///< of another predicate, as destination or operand
  uint32_t guard = 0;
  bool negated = false, secondNegated = false;
  uint8_t width = 0;          ///< bytes of a register that is not as wide as the type
  uint8_t mode = 0;           ///< of a handler: rounding, space, kind
  uint32_t bytes = 0;         ///< of a value in memory
  int64_t number = 0;         ///< an offset, or the next operation of a branch
  std::vector<uint32_t> rows; ///< of vectors, matrices and branch tables
  int index = 0, line = 0;
  std::string text;
};

enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NWarpId,
  SmId,
  NSmId,
  LaneMaskEq,
  LaneMaskLt,
  LaneMaskLe,
  LaneMaskGt,
  LaneMaskGe,
  Clock,
  Clock64,
  GlobalTimer,
  DynamicSharedBytes
};

struct Kernel {
  std::string name, target;
  std::vector<Op> ops;
  std::vector<char> rows; ///< what a warp's storage is at first
  uint32_t predicates = 1;
  std::vector<std::pair<uint32_t, Special>> specials; ///< rows to be filled
  std::vector<Variable> parameters;
  std::vector<int64_t> parameterOffsets;
  int64_t parameterBytes = 0;
  int64_t sharedBytes = 0;         ///< of static variables, as a device counts them
  int64_t sharedEnd = 0;           ///< where dynamic memory begins: variables have gaps between them here
  std::vector<int64_t> sharedGaps; ///< each of `kSharedGap` bytes
  int64_t localBytes = 0;
  int64_t required[3] = {0, 0, 0}, most[3] = {0, 0, 0};
  /// Each spelling that is not understood, with its line: running into one is a fault.
  std::vector<std::string> unsupported;
};

/// Decodes a kernel. `addressOf` gives the device address of a variable of the module in global or constant
/// memory. Throws SyntaxError where operands are wrong for an instruction.
Kernel decode(const Module &module, const Function &function,
              const std::function<uint64_t(const std::string &)> &addressOf);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_KERNEL_H

//===- Packing.h - offsets for buffers that may share bytes -----*- C++ -*-===//
#ifndef DSOPT_ANALYSIS_EXEC_PACKING_H
#define DSOPT_ANALYSIS_EXEC_PACKING_H

#include "dsopt/Analysis/Exec/Lifetimes.h"

#include "llvm/ADT/StringMap.h"

#include <map>

namespace dsopt {

/// Where persistent buffers lie in a memory, by name: a rank's programs share them.
struct PersistentPlaces {
  size_t memory = 0;
  llvm::StringMap<int64_t> offsets = {};
  int64_t end = 0;
  /// Places a program's persistent buffers behind what is there already.
  void place(const std::vector<BufferLife> &lives);
};

struct Packing {
  std::vector<int64_t> offsets; ///< by buffer, -1: in another memory
  int64_t arena = 0;
};

/// Places a program's buffers in a memory that are not persistent behind all that are, each at the
/// lowest offset that is free of those it clashes with, in several orders; the smallest
/// arena is kept, or the first of `enough` bytes.
Packing packBuffers(const ProgramLife &program, const PersistentPlaces &persistent, int64_t enough);

/// A memory of one position's ranks.
struct MemoryPlan {
  exec::MemoryOp memory;         ///< of the first program
  std::vector<Packing> packings; ///< of the programs
  int64_t arena = 0;
  size_t largest = 0; ///< the program that needs it
};

/// What the programs of one position's ranks need.
struct PositionPlan {
  std::vector<const ProgramLife *> lives; ///< of its programs
  std::vector<MemoryPlan> memories;       ///< as they declare them

  /// Bytes of the device's memories.
  int64_t deviceBytes() const;
};

/// Plans the programs of a position, that of a step first: it says where what is persistent lies. A memory of
/// `enough` bytes need not be smaller.
mlir::FailureOr<PositionPlan> planPosition(llvm::ArrayRef<exec::ProgramOp> programs, LifeAnalysis &analysis,
                                           int64_t enough = 0);
/// A module's programs by position, as `planPosition` takes them.
std::map<int64_t, llvm::SmallVector<exec::ProgramOp>> programsByPosition(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_PACKING_H

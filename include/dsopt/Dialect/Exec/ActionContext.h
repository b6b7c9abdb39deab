//===- ActionContext.h - what actions are told to find their bytes -*- C++ -*-===//
//
// An action knows the buffers it names; of what it runs, whose bucket it changes and how
// many ranks join it, the context knows.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_EXEC_ACTIONCONTEXT_H
#define DSOPT_DIALECT_EXEC_ACTIONCONTEXT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace dsopt::exec {
class RefAttr;

/// Bytes [begin, end) of a buffer's slot that an action touches on some rank.
struct Access {
  mlir::StringAttr buffer;
  int64_t slot = 0, begin = 0, end = 0;
  int64_t place = 0; ///< the number that the analysis gives the slot of the buffer, from 0
  bool reads = false, writes = false;
  /// Every rank touches all of [begin, end), not only its own part.
  bool exact = true;
};

/// What a segment or kernel does with a buffer that it is given.
struct BufferUse {
  int64_t bytes = 0; ///< of a kernel: of one element, or of one row
  bool reads = false, writes = false;
  bool always = false; ///< reads what it writes in runs that do not accumulate, too
  bool whole = false;  ///< of a kernel: all elements read the same bytes
};
struct SegmentUse {
  llvm::SmallVector<BufferUse> arguments;
  llvm::SmallVector<unsigned> gradients; ///< the arguments that are
  int64_t temp = 0;
};
struct BucketUse {
  int64_t slice = 0, padded = 0;         ///< elements
  int64_t gradientBytes = 0;             ///< of an element of its gradient
  int64_t parameters = 0;                ///< that it holds
  bool hasMaster = false;                ///< the first of its states
  llvm::SmallVector<BufferUse> operands; ///< of its update, each of one element: parameter, gradient, states
};

class ActionContext {
public:
  virtual ~ActionContext() = default;
  /// Bytes of a slot of a buffer of the action's program; none if there is no such buffer.
  virtual std::optional<int64_t> slotBytes(mlir::Operation *action, mlir::StringAttr buffer) = 0;
  /// The segment, flat kernel or bucket of that name, null if there is none.
  virtual const SegmentUse *segment(mlir::StringAttr name) = 0;
  virtual const SegmentUse *kernel(mlir::SymbolRefAttr name) = 0;
  virtual const BucketUse *bucketUse(mlir::StringAttr name) = 0;
  /// How many join a collective. Emits an error and fails where its communicator is not right.
  virtual mlir::FailureOr<int64_t> countMembers(mlir::Operation *collective) = 0;

  /// Bytes at an address, and in each rank's part of it.
  virtual void add(RefAttr ref, int64_t bytes, bool reads, bool writes) = 0;
  /// The step's scalars, which the agreement writes.
  virtual void addScalars(mlir::Operation *action, bool reads, bool writes) = 0;
};
} // namespace dsopt::exec

#endif // DSOPT_DIALECT_EXEC_ACTIONCONTEXT_H

//===- Routines.h - what routines of the runtime are asked ------*- C++ -*-===//
//
// The types that RoutineOpInterface and RuntimeCallOpInterface talk in.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_ROUTINES_H
#define DSOPT_INTERFACES_ROUTINES_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace dsopt {
/// How elements may lie that a routine reads or writes.
enum class Strides {
  Contiguous, ///< one after the other
  Rows,       ///< the last dimension is contiguous, the others have any strides
  Matrix,     ///< rows or columns of the last two dimensions are contiguous
};

/// As what a value of floating point is stored, where storage is narrower than computation.
enum class Storage {
  Any,    ///< as whoever else decides
  Narrow, ///< rounded
  Wide,   ///< as it is computed, f32
};

/// What a routine's scratch depends on.
struct RoutineTarget {
  int64_t threads = 1;
  bool isDevice = false;
};

/// Where a routine's operands and results lie.
struct RoutineBuffers {
  /// The memref of an operand or a result, or of the gradient that a result is added to; null for null.
  llvm::function_ref<mlir::Value(mlir::Value)> of;
  /// Whether a result is added to a gradient.
  llvm::function_ref<bool(mlir::Value)> accumulates;
  mlir::Value workspace; ///< null where none is needed
  /// The memref of a cache, by its symbol (CachingOpInterface).
  llvm::function_ref<mlir::Value(mlir::FlatSymbolRefAttr)> cache;
};

/// Builds the call that an operation of a segment becomes, in the LLVM dialect.
class RuntimeCallBuilder {
public:
  virtual ~RuntimeCallBuilder() = default;
  /// The pointer to a memref's first element; null's for a null value.
  virtual mlir::Value pointer(mlir::Value memref) = 0;
  /// The pointer to a constant of 64-bit integers that describe the routine's work.
  virtual mlir::Value descriptor(llvm::StringRef routine, llvm::ArrayRef<int64_t> fields) = 0;
  virtual mlir::Value constant(int64_t value) = 0;
  /// The run's accumulate flag for a gradient, else 0.
  virtual mlir::Value accumulates(bool intoGradient) = 0;
  /// Calls a function of the runtime, whose first argument is the runtime itself.
  virtual void call(llvm::StringRef function, llvm::ArrayRef<mlir::Value> arguments) = 0;
  /// The pointer to a kernel of the host. An error at `op` where there is none of the name.
  virtual llvm::FailureOr<mlir::Value> kernel(mlir::Operation *op, mlir::SymbolRefAttr name) = 0;
  /// The pointer to an array of pointers and 64-bit integers.
  virtual mlir::Value array(llvm::ArrayRef<mlir::Value> values) = 0;
  /// Launches a kernel over its range with these pointers. An error at `op` where there is none of the name.
  virtual llvm::LogicalResult launch(mlir::Operation *op, mlir::SymbolRefAttr kernel, int64_t range,
                                     int64_t grain, llvm::ArrayRef<mlir::Value> pointers) = 0;
  /// The pointer to the run's accumulate flag.
  virtual mlir::Value accumulateFlag() = 0;
};

/// What one call is; equal ones are one row of the report.
struct CallDescription {
  llvm::StringRef kind; ///< product, kernel or the routine's name
  std::string what;
  mlir::Type type;   ///< of the elements it computes with
  int64_t bytes = 0; ///< moved at least
  /// Products in it: how many, batch, m, n, k, whether a and b are transposed.
  llvm::SmallVector<int64_t> products = {};
  int64_t head = 0; ///< of attention: elements of a head of q or of v, whichever has more
};
} // namespace dsopt

#endif // DSOPT_INTERFACES_ROUTINES_H

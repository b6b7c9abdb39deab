//===- KernelEmitter.h - scalars of a kernel's tensors, on demand -*- C++ -*-===//
//
// A kernel is a graph of linalg.generics on tensors. The emitter turns it into a
// function over flat buffers by asking for elements: `element(value, indices)`
// loads it where it lies in a buffer and clones the payload that computes it
// where it does not. Loops are the business of RowLoops.cpp and ColumnLoops.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_CONVERSION_KERNELTOLLVM_KERNELEMITTER_H
#define DSOPT_LIB_CONVERSION_KERNELTOLLVM_KERNELEMITTER_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <map>

namespace dsopt {
/// Neighbouring dimensions that one counter runs over.
struct Counter {
  mlir::Value linear;
  llvm::SmallVector<mlir::Value> parts;
  llvm::SmallVector<int64_t> sizes;
};

/// An element's indices; where several reduced dimensions have size 1, zeros.
using Indices = llvm::SmallVector<mlir::Value>;

class KernelEmitter {
public:
  /// Takes the function's body (`source`) and starts a new one, whose arguments
  /// are the range and a flat buffer for each argument and each result that
  /// replaces none. `reassociates` allows sums over a row in any fixed order.
  KernelEmitter(mlir::func::FuncOp function, bool reassociates);

  mlir::ImplicitLocOpBuilder b;
  /// The operations of the kernel in order.
  llvm::SmallVector<mlir::linalg::GenericOp> generics;
  mlir::Value low, high;

  /// The buffer a tensor lies in: an argument, a result, a scratch.
  mlir::Value bufferOf(mlir::Value tensor) const { return buffers.lookup(tensor); }
  /// The results' values, and the buffers that they are to be stored in.
  llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> outputs() const { return results; }
  mlir::Value outputOf(mlir::Value tensor) const;

  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, int64_t rhs);
  mlir::Value min(mlir::Value lhs, mlir::Value rhs);
  /// A stack buffer, made once at the function's entry.
  mlir::Value scratch(int64_t elements, mlir::Type elementType);

  /// Splits a linear counter into indices; remembers it for addresses.
  Indices pushCounter(mlir::Value linear, llvm::ArrayRef<int64_t> sizes);
  void popCounter() { counters.pop_back(); }

  /// Where an element lies in a buffer of a row-major shape.
  mlir::Value address(llvm::ArrayRef<int64_t> shape, mlir::ValueRange indices);
  mlir::Value load(mlir::Value buffer, mlir::Value address, mlir::Type elementType);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value address);

  /// An element of a tensor. A generic's result is computed here unless it is
  /// `held` or lies in a buffer.
  mlir::Value element(mlir::Value tensor, mlir::ValueRange indices);
  /// A generic's payload at loop indices, on top of `totals` where it reduces.
  llvm::SmallVector<mlir::Value> payload(mlir::linalg::GenericOp generic, mlir::ValueRange loops,
                                         mlir::ValueRange totals);
  /// A reduction's payload on two given values.
  mlir::Value combine(mlir::linalg::GenericOp generic, mlir::Value total, mlir::Value value);
  /// The value that a reduction starts from.
  mlir::Value neutral(mlir::linalg::GenericOp generic);

  /// Elements are remembered inside of one body; call it where a body begins and ends.
  void forget() { known.clear(); }
  /// From here on the tensor's element of this row is this scalar.
  void hold(mlir::Value tensor, mlir::Value scalar) { held[tensor] = scalar; }
  /// From here on the tensor lies in a buffer, by its indices from `firstDim` on.
  void settle(mlir::Value tensor, mlir::Value buffer, int64_t firstDim);

  /// A loop; `body` gets the counter and carried values and returns their next ones.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body,
       bool plain = false);

private:
  /// Constants that stand outside of a payload, where canonicalize puts them.
  void mapOuterConstants(mlir::Block *body, mlir::IRMapping &mapping);
  mlir::Value cloned(mlir::Operation *op, mlir::IRMapping &mapping, mlir::Value total);

  mlir::Region source;
  bool reassociates;
  mlir::Block *entry = nullptr;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers, held;
  llvm::DenseMap<mlir::Value, int64_t> firstDims;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> results;
  llvm::DenseMap<int64_t, mlir::Value> indexConstants;
  llvm::SmallVector<Counter> counters;
  std::map<std::pair<void *, llvm::SmallVector<void *>>, mlir::Value> known;
};

/// What loops rely on, and form-kernels sees to. Fails with a message.
llvm::LogicalResult checkKernel(mlir::func::FuncOp function, graph::Iteration iteration,
                                llvm::ArrayRef<int64_t> range);

/// Fill a kernel's new body.
void emitRows(KernelEmitter &emitter, llvm::ArrayRef<int64_t> range);
void emitColumns(KernelEmitter &emitter, llvm::ArrayRef<int64_t> range);
void emitFlat(KernelEmitter &emitter);
} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_KERNELTOLLVM_KERNELEMITTER_H

//===- RowLoops.h - a row of a kernel, in stages ----------------*- C++ -*-===//
//
// Inside a row the kernel is a list of steps: scalars of the row, then loops over
// the dimensions that are left. A reduction is complete after its loop, so what
// uses it belongs to a later stage. Loops of equal extents in one stage are one.
// A value that several loops need is computed again in each, or, where that is
// dear, kept in a row of scratch or in a result's own row. How a loop runs, one
// element after the other or by threads at once, is a class of its own.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_CONVERSION_KERNELTOLLVM_ROWLOOPS_H
#define DSOPT_LIB_CONVERSION_KERNELTOLLVM_ROWLOOPS_H

#include "KernelEmitter.h"

#include "llvm/ADT/SetVector.h"

namespace dsopt {

/// Scratch of a kernel in all; what does not fit is computed again.
inline constexpr int64_t kScratchBytes = 256 * 1024;

struct Nest {
  int64_t stage = 0;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<mlir::linalg::GenericOp> reductions;
  /// Values computed here and stored: the buffer and its first dimension.
  struct Store {
    mlir::linalg::GenericOp generic;
    mlir::Value buffer;
    int64_t firstDim;
  };
  llvm::SmallVector<Store> stores;
};

class RowLoops {
public:
  RowLoops(KernelEmitter &e, llvm::ArrayRef<int64_t> range) : e(e), rows(range.size()), range(range) {}
  virtual ~RowLoops() = default;
  void emit();

protected:
  /// Loops over the rows that there are to do.
  virtual void overRows(llvm::function_ref<void(mlir::Value row)> body);
  /// Loops over a row, with the totals of its reductions.
  virtual llvm::SmallVector<mlir::Value> overRow(Nest &nest, mlir::ValueRange totals);
  /// Stores what a row has once.
  virtual void storeOnce(mlir::Value value, mlir::Value buffer, mlir::Value address) {
    e.store(value, buffer, address);
  }
  /// Between a stage that stored parts of a row and the next.
  virtual void endStage() {}
  /// Bytes for what later loops of a row need again.
  virtual int64_t scratchBytes() const { return kScratchBytes; }
  /// What a nest computes of an element: stores, and what its reductions are then.
  llvm::SmallVector<mlir::Value> emitBody(Nest &nest, const Indices &indices, mlir::ValueRange totals);

  KernelEmitter &e;
  Indices rowIndices;

private:
  bool reduces(mlir::linalg::GenericOp op) { return op.getNumReductionLoops() != 0; }
  llvm::SmallVector<int64_t> sizesOf(mlir::linalg::GenericOp op) {
    return llvm::SmallVector<int64_t>(llvm::ArrayRef(op.getStaticLoopRanges()).drop_front(rows));
  }
  /// One element a row, computed outside of loops.
  bool isScalar(mlir::linalg::GenericOp op) {
    return !reduces(op) && llvm::all_of(sizesOf(op), [](int64_t size) { return size == 1; });
  }
  bool isDear(mlir::linalg::GenericOp op);
  mlir::linalg::GenericOp producer(mlir::Value value) {
    return value.getDefiningOp<mlir::linalg::GenericOp>();
  }
  unsigned nestFor(int64_t stage, llvm::ArrayRef<int64_t> sizes);
  void findStages();
  void placeValues();
  void shareResults();
  void emitNest(Nest &nest);
  void storeScalar(mlir::linalg::GenericOp op, mlir::Value value);

  size_t rows;
  llvm::ArrayRef<int64_t> range;
  mlir::Value row;
  llvm::DenseMap<mlir::Operation *, int64_t> stages;
  std::vector<Nest> nests;
  /// The loops that need a value.
  llvm::DenseMap<mlir::Operation *, llvm::SmallSetVector<unsigned, 4>> demands;
  /// Values kept for later loops, without a buffer yet, and the loop that computes each.
  llvm::SmallVector<std::pair<mlir::linalg::GenericOp, unsigned>> kept;
};

} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_KERNELTOLLVM_ROWLOOPS_H

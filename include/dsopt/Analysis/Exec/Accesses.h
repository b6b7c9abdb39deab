//===- Accesses.h - which bytes an action reads and writes ------*- C++ -*-===//
//
// Every action as a list of byte ranges of buffers' slots. Waits, lifetimes and
// the verifier are all computed from these lists.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_ACCESSES_H
#define DSOPT_ANALYSIS_EXEC_ACCESSES_H

#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Members.h"
#include "dsopt/Dialect/Exec/Streams.h"

#include "llvm/Support/Allocator.h"

namespace dsopt {

using exec::Access;

/// Finds the accesses of actions; remembers what it learned of segments.
class AccessAnalysis : exec::ActionContext {
public:
  explicit AccessAnalysis(mlir::ModuleOp module);

  /// The accesses of an action, for as long as the analysis lives. Fails with a message where it names a
  /// segment, bucket or communicator that is not there or has other arguments or members.
  mlir::FailureOr<llvm::ArrayRef<Access>> of(mlir::Operation *action);
  /// The same as addresses, of one rank and in the order in which the action says them.
  mlir::FailureOr<mlir::ArrayAttr> touches(exec::ActionOpInterface action);
  /// The bucket of that name, null if there is none.
  dist::BucketOp bucket(mlir::StringAttr name);
  /// The buffer of a program's scalars, null if there is none.
  exec::BufferOp scalars(exec::ProgramOp program);
  /// A program's buffer of that name, null if there is none.
  exec::BufferOp buffer(exec::ProgramOp program, mlir::StringAttr name);
  /// The block and phase of a run, null where neither it nor its segment says so.
  exec::PartAttr part(exec::RunOp run) {
    return getPart(run, symbols.lookup(run.getSegmentAttr().getAttr()));
  }
  /// The arguments of a run that are gradients, by index.
  llvm::ArrayRef<unsigned> gradients(exec::RunOp run);

  /// How many places accesses have been given.
  size_t places() const { return slots.size(); }

  exec::Members members;
  exec::Streams streams;

private:
  std::optional<int64_t> slotBytes(mlir::Operation *action, mlir::StringAttr buffer) override;
  const exec::SegmentUse *segment(mlir::StringAttr name) override;
  const exec::SegmentUse *kernel(mlir::SymbolRefAttr name) override;
  const exec::BucketUse *bucketUse(mlir::StringAttr name) override;
  mlir::FailureOr<int64_t> countMembers(mlir::Operation *collective) override;
  void add(exec::RefAttr ref, int64_t bytes, bool reads, bool writes) override;
  void addScalars(mlir::Operation *action, bool reads, bool writes) override;
  int64_t place(mlir::StringAttr buffer, int64_t slot) {
    return slots.try_emplace({buffer, slot}, slots.size()).first->second;
  }

  mlir::ModuleOp module;
  llvm::DenseMap<mlir::StringAttr, mlir::Operation *> symbols;
  llvm::DenseMap<mlir::StringAttr, exec::SegmentUse> segments;
  llvm::DenseMap<mlir::SymbolRefAttr, exec::SegmentUse> kernels;
  mlir::SymbolTableCollection tables; ///< of modules with kernels
  llvm::DenseMap<mlir::StringAttr, exec::BucketUse> buckets;
  llvm::DenseMap<mlir::Operation *, llvm::DenseMap<mlir::StringAttr, exec::BufferOp>> programs;
  llvm::DenseMap<mlir::Operation *, exec::BufferOp> scalarsOf;
  llvm::DenseMap<std::pair<mlir::StringAttr, int64_t>, int64_t> slots;
  /// Lists that were asked for. Runs of a segment on the same buffers have one.
  llvm::BumpPtrAllocator lists;
  llvm::SmallVector<Access, 0> list; ///< that of the action which is asked
  /// Where `touches` asks, the same as TouchAttr: attributes that nobody else needs.
  llvm::SmallVectorImpl<mlir::Attribute> *touched = nullptr;
  llvm::DenseMap<std::tuple<mlir::Attribute, mlir::Attribute, mlir::Attribute, int>, llvm::ArrayRef<Access>>
      runs;
};

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_ACCESSES_H

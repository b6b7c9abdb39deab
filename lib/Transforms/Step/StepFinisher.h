//===- StepFinisher.h - from the last gradient to the new parameters -*- C++ -*-===//
//
// Split over FinishStep.cpp (what comes when), StepUpdates.cpp (norms, and updates by
// what they see of a parameter) and TiedBuckets.cpp (buckets of several stages).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_STEP_STEPFINISHER_H
#define DSOPT_LIB_TRANSFORMS_STEP_STEPFINISHER_H

#include "StepBuckets.h"
#include "llvm/ADT/MapVector.h"

namespace dsopt {

/// Numbers in a table of scalars.
inline constexpr int64_t kScalars = 16;
inline constexpr llvm::StringLiteral kScalarsBuffer = "scalars";

/// Finishes one program.
class StepFinisher {
public:
  StepFinisher(exec::ProgramOp program, const StepBuckets &step)
      : step(step), stage(program.getPosition()), out(program), buffers(out), schedule(getSchedule(program)) {
  }
  void finish();

private:
  /// The buckets that are complete behind a run: the last to read their parameters or to add to their
  /// gradients.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<const PlacedBucket *>> findCompletion();
  /// After the last run that touches the bucket.
  void completeBucket(const PlacedBucket &bucket);
  /// Norms, and updates that need no agreement, of complete buckets whose reductions trailed.
  void finishTrailing();
  void finishBucket(const PlacedBucket &bucket);

  // TiedBuckets.cpp
  void writeTiedGradients(const PlacedBucket &bucket);
  /// From the stage that has changed them to others that use them.
  void writeNewParameters(const PlacedBucket &bucket, int64_t from);

  // StepUpdates.cpp
  void writeWholeGradient(const PlacedBucket &bucket);
  void writeNorm(const PlacedBucket &bucket);
  /// Those of the buckets that are this position's own.
  void writeUpdates(llvm::ArrayRef<const PlacedBucket *> buckets);
  /// Gathers what ranks along axes that need not be a bucket's own have, on the stream of those ranks.
  void gatherOver(llvm::ArrayRef<AxisPart> axes, exec::RefAttr own, exec::RefAttr all, int64_t bytes);
  exec::RefAttr writeDirections(llvm::ArrayRef<const PlacedBucket *> buckets, llvm::StringRef suffix,
                                llvm::DenseMap<const PlacedBucket *, exec::UpdateOp> &directions);
  exec::UpdateOp writeUpdate(const PlacedBucket &bucket, mlir::SymbolRefAttr kernel);
  exec::UpdateOp writeDirection(const PlacedBucket &bucket);
  /// By role, the bucket's buffer of what is kept of whole parameters, and the first element not given away.
  using WholeStates = llvm::DenseMap<mlir::StringAttr, std::pair<mlir::FlatSymbolRefAttr, int64_t>>;
  /// The ranges of a bucket that are seen together: those of one parameter, each of which has a shape once.
  using Matrices = llvm::MapVector<mlir::StringAttr, llvm::SmallVector<dist::RangeAttr, 1>>;
  Matrices matricesOf(const PlacedBucket &bucket) const;
  WholeStates placeWholeStates(const Matrices &matrices, const PlacedBucket &bucket);
  /// Where the direction lies whole, gathered from the ranks that have slices and tensor shards.
  exec::RefAttr gatherDirection(const PlacedBucket &bucket, exec::RefAttr own, int64_t holders);
  exec::UpdateOp writeMatrixUpdate(const PlacedBucket &bucket, exec::UpdateOp direction);
  /// Sets aside the gradient that the next step updates with.
  void keepGradient(const PlacedBucket &bucket);
  /// Tables of scalars: of each group, and of what a device updates by norms of parameters each part's.
  int64_t countTables() const;

  /// What this rank has of the sum over ranks, or of its own: a slice, or with the variance frozen all of it.
  exec::RefAttr ownGradient(const PlacedBucket &bucket, int64_t use) {
    return step.frozen ? out.ref(buffers.gradient(bucket, use)) : buffers.gradientSlice(bucket, use);
  }
  /// The gradient as the bucket's update takes it.
  exec::RefAttr updateGradient(const PlacedBucket &bucket) {
    bool part = !bucket.wholeStates() && bucket.wholeGradients();
    exec::RefAttr whole = out.ref(buffers.gradient(bucket, 0));
    return part ? bucket.ownPart(whole, bucket.gradientSliceBytes()) : whole;
  }

  const StepBuckets &step;
  int64_t stage;
  ProgramBuilder out;
  BucketBuffers buffers;
  exec::ScheduleOp schedule;
  llvm::SmallVector<const PlacedBucket *> trailing;
  llvm::SmallVector<mlir::Attribute> norms;            ///< records written so far
  llvm::SmallPtrSet<const PlacedBucket *, 8> finished; ///< with norm, and updated if that needs no agreement
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_STEP_STEPFINISHER_H

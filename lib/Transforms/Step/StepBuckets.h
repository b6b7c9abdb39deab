//===- StepBuckets.h - the buckets that a step finishes ---------*- C++ -*-===//
//
// Where the buckets of a step's programs are used, and which kernels and segments
// of @update change them: what finish-step goes by.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_STEP_STEPBUCKETS_H
#define DSOPT_LIB_TRANSFORMS_STEP_STEPBUCKETS_H

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Transforms/Order/Bucket.h"

namespace dsopt {

/// What the programs of a step share.
struct StepBuckets {
  std::vector<PlacedBucket> buckets;
  llvm::DenseMap<mlir::Attribute, mlir::SymbolRefAttr> kernels; ///< of updates, by bucket
  /// Of updates that see norms of whole parameters, or whole matrices, the kernels before them, by bucket.
  llvm::DenseMap<mlir::Attribute, mlir::SymbolRefAttr> directions;
  /// What is computed of a whole matrix between the two, by parameter or tensor shard.
  struct Matrix {
    mlir::StringAttr whole; ///< the parameter, or what it is a tensor shard of
    mlir::FlatSymbolRefAttr segment;
    int64_t scratch;
    bool seesNorms;
    llvm::SmallVector<std::pair<mlir::StringAttr, int64_t>>
        states; ///< roles and elements of what it replaces
  };
  llvm::DenseMap<mlir::Attribute, Matrix> matrices;
  const Matrix *matrixOf(dist::RangeAttr range) const {
    auto matrix = matrices.find(range.getParameter());
    return matrix == matrices.end() ? nullptr : &matrix->second;
  }
  /// Whether the bucket's updates see whole matrices, and whether they see norms.
  bool seesMatrices(const PlacedBucket &bucket) const { return firstMatrix(bucket); }
  bool seesNorms(const PlacedBucket &bucket) const {
    const Matrix *matrix = firstMatrix(bucket);
    return matrix ? matrix->seesNorms : directions.contains(dist::BucketOp(bucket.op).getSymNameAttr());
  }
  int64_t scalarGroups = 1; ///< distinct (lr_scale, decay_scale) of trained parameters
  bool isForDevice = false;
  bool updatesLast = false;       ///< nothing is updated before the norms of all gradients are taken
  bool delays = false;            ///< some steps leave gradients to the next one
  bool lags = false;              ///< these do
  bool gathersParameters = false; ///< behind the freeze, of which ranks have slices of all but the momentum
  bool frozen = false; ///< ranks have their own gradients, and update by what they exchange of them
  exec::ProgramKind kind = exec::ProgramKind::Step;
  /// Of ranks that meet, the kernels of the step that each makes before, by bucket.
  llvm::DenseMap<mlir::Attribute, mlir::SymbolRefAttr> locals;
  /// Running statistics that several positions hold, with the one that folds them.
  llvm::SmallVector<std::pair<int64_t, int64_t>> statistics;

private:
  const Matrix *firstMatrix(const PlacedBucket &bucket) const {
    return matrixOf(llvm::cast<dist::RangeAttr>(dist::BucketOp(bucket.op).getRanges()[0]));
  }
};

/// Of the programs of a step, one for each position.
llvm::FailureOr<StepBuckets> readStepBuckets(mlir::ModuleOp module, llvm::ArrayRef<exec::ProgramOp> programs);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_STEP_STEPBUCKETS_H

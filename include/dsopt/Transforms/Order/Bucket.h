//===- Bucket.h - the buffers of a bucket in a program ----------*- C++ -*-===//
//
// What a position holds of a bucket, by the ZeRO stage that it is partitioned by, and
// the names of the buffers that hold it. The one place where these names are made.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_ORDER_BUCKET_H
#define DSOPT_TRANSFORMS_ORDER_BUCKET_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

namespace dsopt {

struct Bucket {
  explicit Bucket(dist::BucketOp op);

  dist::BucketOp op;
  int64_t ranks, zero;   ///< zero is 0 with one rank
  int64_t slice, padded; ///< elements
  int64_t payload = 0;   ///< elements of parameters
  int64_t elementBytes;
  bool frozen, sliced; ///< sliced: blocks read what is gathered of it

  llvm::StringRef name() const { return dist::BucketOp(op).getSymName(); }
  /// The communicator of the ranks that have a slice each: that of the axes it is cut over.
  std::string group() const { return exec::communicatorName(dist::BucketOp(op).getAxes()); }
  /// This rank's part of what lies from an address on, of so many bytes for each of these ranks.
  exec::RefAttr ownPart(exec::RefAttr ref, int64_t bytes) const {
    dist::BucketOp bucket = op;
    return dsopt::ownPart(ref, bytes, bucket.getAxes(), dist::getGrid(bucket));
  }
  bool shared() const { return dist::BucketOp(op).isTied(); }
  bool wholeParameters() const { return !sliced; }
  bool wholeGradients() const { return zero < 2; }
  bool wholeStates() const { return zero < 1; }
  mlir::Type gradientType() const { return dist::BucketOp(op).getGradientType(); }
  int64_t sliceBytes() const { return slice * elementBytes; }
  int64_t gradientSliceBytes() const { return slice * graph::elementBytes(gradientType()); }
  /// The use of the bucket by a block, none if the bucket does not list it.
  std::optional<int64_t> useOf(int64_t block) const;
};

/// A bucket and the positions that use it.
struct PlacedBucket : Bucket {
  using Bucket::Bucket;
  llvm::SmallVector<int64_t> useStages; ///< of each block that uses it, -1: no run does
  llvm::SmallVector<int64_t> stages;    ///< distinct, ascending
  int64_t owner = 0;                    ///< the first block's
  llvm::SmallVector<bool> accumulated;  ///< by use: some run adds to its gradient

  /// Sets `stages` and `owner` by `useStages`.
  void place();
  bool isAt(int64_t stage) const { return llvm::is_contained(stages, stage); }
};

/// The buffers of buckets in one program; each is declared where it is new.
class BucketBuffers {
public:
  explicit BucketBuffers(ProgramBuilder &out) : out(out) {}

  /// The parameters that live at this position: whole, or this rank's slice. `owned`: they are updated here.
  mlir::FlatSymbolRefAttr parameters(const Bucket &bucket, bool owned = true);
  /// The parameters whole: what a gather yields, or where they live.
  mlir::FlatSymbolRefAttr wholeParameters(const Bucket &bucket, bool owned = true);
  /// The copy of the parameters that is updated where they are stored in a narrower type.
  mlir::FlatSymbolRefAttr master(const Bucket &bucket, mlir::Type type);
  /// `whole`: all of it, where the bucket's states are slices.
  mlir::FlatSymbolRefAttr optimizerState(const Bucket &bucket, dist::StateAttr state, bool whole = false);
  /// What the optimizer keeps of whole parameters, alike on each rank that updates a part of them: `payload`
  /// elements in `elements`.
  mlir::FlatSymbolRefAttr wholeState(const Bucket &bucket, llvm::StringRef role, int64_t elements,
                                     int64_t payload);
  /// The accumulator of a use, and this rank's slice of it.
  mlir::FlatSymbolRefAttr gradient(const Bucket &bucket, int64_t use);
  exec::RefAttr gradientSlice(const Bucket &bucket, int64_t use);
  /// The gradient of the step before, whose update runs in this one: as much as an update of the bucket
  /// takes.
  mlir::FlatSymbolRefAttr pendingGradient(const Bucket &bucket);
  /// A whole gradient on its way to the accumulator: the one of the latest run, or `depth` sums lie under it.
  mlir::FlatSymbolRefAttr passingGradient(const Bucket &bucket, int64_t use, int64_t depth);
  /// What another stage has of a shared parameter's gradient.
  mlir::FlatSymbolRefAttr tiedGradient(const Bucket &bucket, int64_t use, bool whole = false);
  /// Whether the program holds the parameters, or accumulates the gradient of a use.
  bool holds(const Bucket &bucket);
  bool accumulates(const Bucket &bucket, int64_t use);

private:
  enum What { Parameters, WholeParameters, Gradient, PassingGradient };
  /// The buffer BUCKET.SUFFIX of elements of a type: the whole bucket, or a slice of it.
  mlir::FlatSymbolRefAttr declare(const Bucket &bucket, const llvm::Twine &suffix, mlir::Type type,
                                  bool whole, exec::BufferKind kind,
                                  std::optional<exec::BufferRole> role = std::nullopt, int64_t use = -1,
                                  llvm::StringRef state = {});
  /// Where the buffer is remembered, null if it is not yet: names are made once.
  mlir::FlatSymbolRefAttr &known(const Bucket &bucket, What what, int64_t use = 0, int64_t depth = 0) {
    return buffers[{dist::BucketOp(bucket.op), (int)what, use, depth}];
  }
  ProgramBuilder &out;
  llvm::DenseMap<std::tuple<mlir::Operation *, int, int64_t, int64_t>, mlir::FlatSymbolRefAttr> buffers;
};

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_ORDER_BUCKET_H

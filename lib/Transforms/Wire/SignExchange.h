//===- SignExchange.h - a bucket's values as signs between ranks -*- C++ -*-===//
//
// The compressed all-reduce of the 1-bit family (Tang et al., 2021, Algorithm 1, lines 7
// to 12): ranks hold values of a whole bucket, which have what they left out before added.
// Each unit, a slice, goes as a scale and 32 signs a word to the rank that owns it, which
// sends the mean as a scale and signs to all. What packing leaves out is kept, at the
// workers of whole buckets and at the servers of their slices.
//
// A rule's kernels stand before and behind it: compensate() writes values, with sums of
// their squares and how many take part by rows of kSummed, and unpack() takes the mean.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_SIGNEXCHANGE_H
#define DSOPT_LIB_TRANSFORMS_WIRE_SIGNEXCHANGE_H

#include "CompressionKernels.h"
#include "dsopt/Runtime/Scalars.h"
#include "dsopt/Transforms/Order/Bucket.h"

namespace dsopt {

/// Elements [begin, end) of a bucket, multiples of kSummed.
struct BucketPart {
  int64_t begin, end;
};

class SignExchange {
public:
  /// Of a bucket whose state lies in `memory` (empty: the target's own). Declares the errors; all else is
  /// declared where it is written.
  /// Where ranks have slices of variances (`sliced`), what takes part outlives steps, too.
  SignExchange(ProgramBuilder &out, CompressionKernels &kernels, dist::BucketOp bucket,
               mlir::StringRef memory, bool sliced = false);

  /// Writes which elements take part, those whose variance is not 0; all that follows is on that stream.
  /// Where variances are slices that is known but in the `first` step, which gathers it.
  void begin(exec::RefAttr variance, mlir::StringRef stream, bool first = false);
  /// Makes something whole of this rank's slice and the others'.
  void gather(exec::RefAttr slice, exec::RefAttr whole, int64_t bytes);
  /// Maps a kernel over the whole bucket by rows of kSummed: its operands are `refs`, of which the errors
  /// come out as what is to be packed, then squares and counts. Or over a part of it, whose operands they
  /// are.
  void compensate(mlir::SymbolRefAttr kernel, mlir::SmallVector<mlir::Attribute> refs,
                  std::optional<BucketPart> part = std::nullopt);
  /// Packs, sends, takes the mean, packs and sends that.
  void exchange();
  /// Maps a kernel over each unit of the mean by rows of kWordBits: its operands are words of signs, their
  /// scale, words of what takes part, `wholes` at the unit's place, then `rest`. Or over what units have of a
  /// part.
  void unpack(mlir::SymbolRefAttr kernel, mlir::ArrayRef<exec::RefAttr> wholes,
              mlir::ArrayRef<mlir::Attribute> rest, std::optional<BucketPart> part = std::nullopt);

  exec::RefAttr workerError() const { return ownWorkerError; }
  /// Of the bucket, a bit for each element.
  exec::RefAttr takes() const { return ownTakes; }
  /// Of the step's table of scalars.
  exec::RefAttr scalar(dsopt_scalar index) const;

private:
  struct Unit {
    exec::RefAttr values, takes; ///< of a slice
    exec::RefAttr squares, counts;
    exec::RefAttr record;
  };
  exec::RefAttr error(mlir::StringRef whose, int64_t elements);
  exec::RefAttr declare(mlir::StringRef suffix, int64_t elements, mlir::Type type, bool crosses = false);
  void map(mlir::SymbolRefAttr kernel, mlir::ArrayRef<mlir::Attribute> refs, int64_t rows);
  /// The unit's scale and signs; what they leave out of its values stays in these.
  void pack(const Unit &unit);
  /// What lies in the host's memory goes between ranks from the device's.
  exec::RefAttr toDevice(exec::RefAttr host, exec::RefAttr device, int64_t bytes);
  void toHost(exec::RefAttr device, exec::RefAttr host, int64_t bytes);

  ProgramBuilder &out;
  CompressionKernels &kernels;
  dist::BucketOp bucket;
  bool sliced;
  std::string prefix, stream, memory;
  int64_t ranks, slice, bytes, sliceBytes; ///< of a unit's record and values
  exec::RefAttr ownWorkerError, ownServerError, ownTakes, squares, counts, mean;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_SIGNEXCHANGE_H

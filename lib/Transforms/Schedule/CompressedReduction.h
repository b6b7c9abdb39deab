//===- CompressedReduction.h - gradients by a method ------------*- C++ -*-===//
//
// The frame around a method of -compress-gradients. Each rank adds what it left out before
// to its gradient, packs each slice into a record and sends it to the slice's owner, which
// adds what the records stand for, in fp32 and in the order of the ranks. What the own
// records leave out is kept for the next time.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_COMPRESSEDREDUCTION_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_COMPRESSEDREDUCTION_H

#include "CompressionKernels.h"
#include "ProgramBuilder.h"
#include "WireKernels.h"
#include "dsopt/Dialect/Dist/Dist.h"

namespace dsopt {

class CompressedReduction {
public:
  /// That of `reduce`, of a bucket's gradient, by a method.
  CompressedReduction(exec::ReduceOp reduce, dist::BucketOp bucket, const Compression &compression);

  /// Writes the exchange and what comes before it. What lies between parameters is cleared: `gaps`, in
  /// elements of the whole gradient. Fails with a message where the method's kernels or records are wrong.
  mlir::LogicalResult start(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels,
                            mlir::ArrayRef<std::pair<int64_t, int64_t>> gaps);
  /// Writes what makes the target of it.
  mlir::LogicalResult finish(ProgramBuilder &out, CompressionKernels &kernels);

private:
  /// Writes a bit for each element of the bucket, 0 in its gaps.
  void writeTakes(CompressionWriter &writer, mlir::ArrayRef<std::pair<int64_t, int64_t>> gaps);

  exec::ReduceOp reduce; ///< until the exchange takes its place
  dist::BucketOp bucket;
  Compression compression;
  exec::RefAttr whole, target, error, takes, received;
  int64_t elements, ranks, bytes; ///< of a slice, and of its record
  bool accumulate;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_COMPRESSEDREDUCTION_H

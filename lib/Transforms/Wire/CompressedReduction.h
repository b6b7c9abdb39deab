//===- CompressedReduction.h - gradients by a method ------------*- C++ -*-===//
//
// The frame around a method of -compress-gradients. Each rank adds what it left out before
// to its gradient, packs each slice into a record and sends it to the slice's owner, which
// adds what the records stand for, in fp32 and in the order of the ranks. What the own
// records leave out is kept for the next time.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_COMPRESSEDREDUCTION_H
#define DSOPT_LIB_TRANSFORMS_WIRE_COMPRESSEDREDUCTION_H

#include "ReductionWriter.h"

namespace dsopt {

class CompressedReduction {
public:
  virtual ~CompressedReduction() = default;
  /// That of `reduce`, of a bucket's gradient, by a method.
  CompressedReduction(exec::ReduceOp reduce, dist::BucketOp bucket, const Compression &compression);

  /// Writes the exchange and what comes before it. What lies between parameters is cleared: `gaps`, in
  /// elements of the whole gradient. Fails with a message where the method's kernels or records are wrong.
  virtual mlir::LogicalResult start(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels,
                                    Gaps gaps);
  /// Writes what makes the target of it.
  virtual mlir::LogicalResult finish(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels);

protected:
  exec::ReduceOp reduce; ///< until the exchange takes its place
  dist::BucketOp bucket;
  exec::RefAttr whole, target, error, takes;
  int64_t elements, ranks; ///< of a slice
  bool accumulate;

private:
  Compression compression;
  exec::RefAttr received;
  int64_t bytes = 0; ///< of a slice's record
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_COMPRESSEDREDUCTION_H

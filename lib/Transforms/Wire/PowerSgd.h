//===- PowerSgd.h - gradients as products of two narrow factors -*- C++ -*-===//
//
// The method of -compress-gradients=powersgd (Vogels et al., 2019, algorithms 1 and 2). Of
// each matrix M, a gradient with what was left out before, ranks exchange P = M Q and, with
// its columns made orthonormal, Q = M^T P: one step of power iteration from the last Q. What
// has come is P Q^T. What is no matrix, or smaller than its factors, travels whole beside P.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_POWERSGD_H
#define DSOPT_LIB_TRANSFORMS_WIRE_POWERSGD_H

#include "CompressedReduction.h"

namespace dsopt {

/// The method, with the option rank.
CompressionMethod powerSgd();

/// The reduction of a bucket's gradient by factors. Sums over ranks are in fp32 and in their order; all ranks
/// have the same factors.
class FactoredReduction : public CompressedReduction {
public:
  FactoredReduction(exec::ReduceOp reduce, dist::BucketOp bucket, const Compression &compression);

  /// Writes the first exchange and what comes before it.
  mlir::LogicalResult start(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels,
                            Gaps gaps) override;
  /// Writes the second one and what makes the target of both.
  mlir::LogicalResult finish(ProgramBuilder &out, WireKernels &wire, CompressionKernels &kernels) override;

private:
  /// A parameter of the bucket, in elements. What travels whole has no columns.
  struct Item {
    int64_t offset, rows, columns;
    int64_t left, right = 0; ///< its places in the exchanges
    exec::RefAttr factor = {};
  };
  /// A slice of so many elements for each rank.
  int64_t part(int64_t count) const;
  /// Begins to add ranks' buffers of so many elements.
  exec::AllToAllOp exchange(ProgramBuilder &out, ReductionWriter &writer, exec::RefAttr sent,
                            llvm::StringRef name, int64_t count);
  /// The sums, on all ranks.
  exec::RefAttr total(ProgramBuilder &out, ReductionWriter &writer, exec::AllToAllOp exchanged,
                      llvm::StringRef name, int64_t count);
  llvm::SmallVector<mlir::Attribute> columns(exec::RefAttr first, int64_t size) const;

  int64_t rank, lefts = 0, rights = 0;
  llvm::SmallVector<Item> items;
  llvm::SmallVector<std::pair<int64_t, int64_t>> gaps;
  std::string group, stream;
  exec::AllToAllOp first;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_POWERSGD_H

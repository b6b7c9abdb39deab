//===- ReductionWriter.h - what compressed reductions write -----*- C++ -*-===//
//
// Kernels over rows and memory of one reduction, beside what all of them have: the gradient
// is added to what was left out before, and what has come is taken but for padding.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_REDUCTIONWRITER_H
#define DSOPT_LIB_TRANSFORMS_WIRE_REDUCTIONWRITER_H

#include "CompressionKernels.h"
#include "WireKernels.h"
#include "dsopt/Transforms/Order/Bucket.h"

namespace dsopt {

/// What lies between parameters, as first elements and those behind the last.
using Gaps = llvm::ArrayRef<std::pair<int64_t, int64_t>>;

class ReductionWriter : public CompressionWriter {
public:
  /// `prefix` is of the names of its memory.
  ReductionWriter(ProgramBuilder &out, CompressionKernels &kernels, llvm::StringRef prefix)
      : out(out), kernels(kernels), prefix(prefix.str()) {
    context = out.context;
  }
  exec::RefAttr at(exec::RefAttr place, int64_t bytes) override { return shifted(place, bytes); }
  exec::RefAttr scratch(llvm::StringRef name, int64_t elements, mlir::Type type) override;
  void map(llvm::StringRef name, const std::string &text, llvm::ArrayRef<mlir::Attribute> places,
           int64_t rows, Into into = Into::Replace) override;

  /// What the bucket keeps of that name, f32: with as many elements as its gradient, a value of each of them.
  exec::RefAttr kept(dist::BucketOp bucket, const llvm::Twine &name, int64_t elements);
  /// What ranks leave out of the bucket's gradient, with the gradient added; both are 0 in gaps.
  exec::RefAttr compensate(dist::BucketOp bucket, exec::RefAttr whole, WireKernels &wire, Gaps gaps);
  void clear(exec::RefAttr values, WireKernels &wire, Gaps gaps);
  /// Writes `value` to words; `any` is memory of as many.
  void fill(exec::RefAttr words, uint32_t value, int64_t count, exec::RefAttr any);
  /// A bit for each of so many elements, 0 in gaps.
  exec::RefAttr takes(int64_t elements, exec::RefAttr any, Gaps gaps);
  /// Writes or adds what has come for this rank's slice, but for padding.
  void take(dist::BucketOp bucket, exec::RefAttr slice, exec::RefAttr takes, exec::RefAttr target,
            int64_t elements, bool accumulate);

  bool failed = false; ///< some kernel's text is wrong

private:
  ProgramBuilder &out;
  CompressionKernels &kernels;
  std::string prefix;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_REDUCTIONWRITER_H

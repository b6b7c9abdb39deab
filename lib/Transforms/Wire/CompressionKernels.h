//===- CompressionKernels.h - kernels of compressed exchanges ---*- C++ -*-===//
//
// Kernels over rows that a compressed exchange is made of, beside the target's others,
// each made where it is first needed. Elements whose variance is 0 take no part: padding,
// and what had no gradient before the freeze.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_COMPRESSIONKERNELS_H
#define DSOPT_LIB_TRANSFORMS_WIRE_COMPRESSIONKERNELS_H

#include "dsopt/Transforms/Wire/Compression.h"
#include "dsopt/Transforms/Wire/KernelHome.h"
#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// `text` of a kernel behind names for the types of rows of a shape, and of what is read whole.
std::string withRowTypes(llvm::StringRef row, llvm::StringRef gradient, const std::string &text);
/// A kernel's end over rows of 2x32: nothing is kept of %all where the bits %t say so, and of a step that
/// does not %apply what was there before, %e. Results are what is kept, and sums over a row.
std::string keepAndSum();

class CompressionKernels {
public:
  explicit CompressionKernels(mlir::ModuleOp module) : home(module) {}
  /// The kernel of that name; made of its text where it is new, with what becomes of its last result. It runs
  /// over rows unless it says otherwise. Null where the text is wrong: the parser has said so.
  mlir::SymbolRefAttr get(const std::string &name, const std::string &text, Into into = Into::Replace);
  /// (variance) -> words that say which elements take part: those whose variance is not 0.
  mlir::SymbolRefAttr takes();
  /// (momentum, gradient, error, takes, factor, apply, beta1, 1 - beta1) -> error := what is to be packed;
  /// sums of its squares and how many take part, by rows of kSummed. Sums are f64, so that their order does
  /// not show: hosts and devices have orders of their own. Where momenta are `scaled`, one more operand: by
  /// what.
  mlir::SymbolRefAttr compensate(mlir::Type gradient, bool scaled = false);
  /// (sums, counts) of a unit -> the root of the mean square.
  mlir::SymbolRefAttr scale(int64_t sums);
  /// (values, takes, scale, apply) -> values := what signs leave out; words of signs.
  mlir::SymbolRefAttr pack();
  /// (words and scale of each worker, error, takes, apply) -> as compensate, of the workers' mean.
  mlir::SymbolRefAttr average(int64_t workers);
  /// (words, scale, takes, momentum, apply) -> momentum := scale by sign.
  mlir::SymbolRefAttr unpack();
  /// (words, scale, takes, momentum, fresh variance, coefficient, apply, beta1, 1 - beta1, beta2, 1 -
  /// beta2) -> momentum := scale by sign / coefficient; fresh variance: goes on with the gradient that this
  /// stands for.
  mlir::SymbolRefAttr unpackScaled();

private:
  KernelHome home;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_COMPRESSIONKERNELS_H

//===- CompressionKernels.h - kernels of compressed exchanges ---*- C++ -*-===//
//
// Kernels over rows that a compressed exchange is made of, beside the target's others,
// each made where it is first needed. Elements whose variance is 0 take no part: padding,
// and what had no gradient before the freeze.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_COMPRESSIONKERNELS_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_COMPRESSIONKERNELS_H

#include "dsopt/Transforms/Schedule/Compression.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace dsopt {

/// What a bucket's exchange leaves out, at the worker and at the server of a slice.
inline constexpr llvm::StringLiteral kWorkerError = "worker_error", kServerError = "server_error";
/// The factor that matrices of a bucket keep, by their first elements.
inline constexpr llvm::StringLiteral kFactor = "factor";

class CompressionKernels {
public:
  explicit CompressionKernels(mlir::ModuleOp module);
  /// The kernel of that name; made of its text where it is new, with what becomes of its last result. It runs
  /// over rows unless it says otherwise. Null where the text is wrong: the parser has said so.
  mlir::SymbolRefAttr get(const std::string &name, const std::string &text, Into into = Into::Replace);
  /// (momentum, gradient, error, variance, factor, apply, beta1, 1 - beta1) -> error := what is to be packed;
  /// sums of its squares and how many take part, by rows of kSummed. Sums are f64, so that their order does
  /// not show: hosts and devices have orders of their own.
  mlir::SymbolRefAttr compensate(mlir::Type gradient);
  /// (sums, counts) of a unit -> the root of the mean square.
  mlir::SymbolRefAttr scale(int64_t sums);
  /// (values, variance, scale, apply) -> values := what signs leave out; words of signs.
  mlir::SymbolRefAttr pack();
  /// (words and scale of each worker, error, variance, apply) -> as compensate, of the workers' mean.
  mlir::SymbolRefAttr average(int64_t workers);
  /// (words, scale, variance, momentum, apply) -> momentum := scale by sign.
  mlir::SymbolRefAttr unpack();

private:
  mlir::ModuleOp nested, home; ///< null where kernels are in the module itself
  mlir::SymbolTable symbols;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_COMPRESSIONKERNELS_H

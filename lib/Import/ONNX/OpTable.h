//===- OpTable.h - the operators that can be imported ------------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_OPTABLE_H
#define DSOPT_LIB_IMPORT_ONNX_OPTABLE_H

#include "NodeBuilder.h"

namespace dsopt::onnx_import {

/// How nodes of one operator are built.
struct OpRow {
  StringRef name;
  /// The first and the last opset of the operator that `build` understands.
  int64_t since, until;
  LogicalResult (*build)(NodeBuilder &);
};

/// The domain of operators that the Python package writes for what ONNX cannot say, and its version.
inline constexpr llvm::StringLiteral kDsoptDomain = "dsopt";
inline constexpr int64_t kDsoptVersion = 1;

/// The row of an operator of a domain (ONNX's own: ""), null if there is none.
const OpRow *findOp(StringRef domain, StringRef name);

// The rows of each family.
ArrayRef<OpRow> activationOps();
ArrayRef<OpRow> attentionOps();
ArrayRef<OpRow> controlFlowOps();
ArrayRef<OpRow> dsoptOps();
ArrayRef<OpRow> einsumOps();
ArrayRef<OpRow> elementwiseOps();
ArrayRef<OpRow> fourierOps();
ArrayRef<OpRow> indexOps();
ArrayRef<OpRow> lossOps();
ArrayRef<OpRow> movementOps();
ArrayRef<OpRow> normalizationOps();
ArrayRef<OpRow> productOps();
ArrayRef<OpRow> randomOps();
ArrayRef<OpRow> recurrentOps();
ArrayRef<OpRow> reductionOps();
ArrayRef<OpRow> resizeOps();
ArrayRef<OpRow> samplingOps();
ArrayRef<OpRow> sequenceOps();
ArrayRef<OpRow> shapeOps();
ArrayRef<OpRow> windowOps();

/// Windows over some dimensions, one entry each (graph.windows).
struct Windows {
  SmallVector<int64_t> kernel, strides, dilations, lows, counts;
};
/// The elements under each place of windows that move over the dimensions from `axis` on.
Value makeWindows(Emitter &emitter, Value value, int64_t axis, const Windows &windows, mlir::TypedAttr fill);

/// log(softmax(value)) along an axis.
Value logSoftmax(Emitter &emitter, Value value, int64_t axis);

/// The mean (or sum, or none) of the cross-entropy of logits and labels whose
/// classes are along `classAxis`; null after an error.
Value crossEntropy(Emitter &emitter, Value logits, Value labels, int64_t classAxis,
                   std::optional<int64_t> ignoreIndex, StringRef reduction);
/// CTCLoss of the domain dsopt: PyTorch's, with its inputs and options.
LogicalResult ctcLoss(NodeBuilder &n);

/// The mean (or sum, or none) over rows of the cross-entropy of logarithms of probabilities, with classes
/// second, and of probabilities in the place of labels; of weighted classes, if there are weights.
Value softCrossEntropy(Emitter &emitter, Value logarithms, Value probabilities, Value weights,
                       StringRef reduction);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_OPTABLE_H

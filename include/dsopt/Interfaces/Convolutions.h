//===- Convolutions.h - a convolution's sizes -------------------*- C++ -*-===//
//
// What graph.convolution and exec.convolution say of themselves, as the runtime takes it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_CONVOLUTIONS_H
#define DSOPT_INTERFACES_CONVOLUTIONS_H

#include "dsopt/Runtime/Convolution.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Value.h"

#include <array>

#include "dsopt/Interfaces/ConvolutionKind.h.inc"

namespace dsopt {
/// Which of a convolution's operands and result are x, w and y of y = convolution(x, w).
template <typename Op> std::array<mlir::Value, 3> convolved(Op op) {
  mlir::Value a = op.getLhs(), b = op.getRhs(), c = op.getResult();
  switch (op.getKind()) {
  case ConvolutionKind::Forward:
    return {a, b, c};
  case ConvolutionKind::Data:
    return {c, b, a};
  case ConvolutionKind::Weight:
    return {a, c, b};
  }
  llvm_unreachable("a kind that does not exist");
}

/// The shapes and numbers of a convolution; lists have an entry for each dimension that is moved over.
struct ConvolutionShape {
  ConvolutionKind kind;
  llvm::ArrayRef<int64_t> x, w, y;
  llvm::ArrayRef<int64_t> strides, dilations, pads;
  int64_t groups;
  bool channelsLast;
  bool isNarrow; ///< bf16, else fp32
};

/// Null if all fits together, else what does not.
const char *checkConvolution(const ConvolutionShape &shape);
/// For the runtime, with the algorithm of the table; of one to three dimensions.
dsopt_convolution describeConvolution(const ConvolutionShape &shape);

template <typename Op> ConvolutionShape shapeOfConvolution(Op op) {
  auto [x, w, y] = convolved(op);
  auto typeOf = [](mlir::Value value) { return mlir::cast<mlir::ShapedType>(value.getType()); };
  return {op.getKind(),         typeOf(x).getShape(),
          typeOf(w).getShape(), typeOf(y).getShape(),
          op.getStrides(),      op.getDilations(),
          op.getPads(),         static_cast<int64_t>(op.getGroups()),
          op.getChannelsLast(), typeOf(x).getElementType().isBF16()};
}

/// One element type, and shapes and numbers that fit together.
template <typename Op> mlir::LogicalResult verifyConvolution(Op op) {
  auto [x, w, y] = convolved(op);
  mlir::Type type = mlir::getElementTypeOrSelf(x.getType());
  for (mlir::Value other : {w, y})
    if (mlir::getElementTypeOrSelf(other.getType()) != type)
      return op.emitOpError("has values of types ")
             << x.getType() << " and " << other.getType() << ", expected one element type";
  if (const char *expected = checkConvolution(shapeOfConvolution(op)))
    return op.emitOpError("convolves ")
           << x.getType() << " with " << w.getType() << " to " << y.getType() << " (strides ["
           << op.getStrides() << "], dilations [" << op.getDilations() << "], pads [" << op.getPads() << "], "
           << op.getGroups() << " groups), expected " << expected;
  return mlir::success();
}
} // namespace dsopt

#endif // DSOPT_INTERFACES_CONVOLUTIONS_H

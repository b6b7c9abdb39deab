//===- ConvolutionWindows.h - convolutions among products -------*- C++ -*-===//
//
// Importers write a convolution as a product of what is under its windows, channels last;
// autodiff makes of it a product for the weight and a sum of windows for the input. Each
// of the three is found by itself.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_FUSE_CONVOLUTIONWINDOWS_H
#define DSOPT_LIB_TRANSFORMS_FUSE_CONVOLUTIONWINDOWS_H

#include "dsopt/Dialect/Graph/Convolution.h"

namespace dsopt {
using Sizes = llvm::SmallVector<int64_t>;

/// Windows over all dimensions between the batch and the channels, and how many groups there are of these.
struct ConvolutionWindows {
  mlir::Value image;    ///< what is under them, if that is read
  Sizes shape;          ///< [batch, size..., channels]
  Sizes counts, kernel; ///< of the windows
  Sizes strides, dilations, lows;
  int64_t groups = 1;

  int64_t rows() const { return shape[0] * mlir::ShapedType::getNumElements(counts); }
  int64_t columns() const { return mlir::ShapedType::getNumElements(kernel) * shape.back() / groups; }
};

/// The windows that a matrix shows which `product` reads: [rows, columns], or [groups, rows, columns].
std::optional<ConvolutionWindows> matchColumns(mlir::Value matrix, mlir::Operation *product);

/// The windows that are added up, and the product that made them.
struct SummedWindows {
  ConvolutionWindows windows;
  graph::MatMulOp product;
};
std::optional<SummedWindows> matchSums(graph::WindowsSumOp sums);

/// A convolution's padding: alike on both sides by the library, else before by an operation of its own.
struct ConvolutionPadding {
  Sizes pads, lows, highs;
  bool isApart = false;
};
ConvolutionPadding paddingOf(const ConvolutionWindows &windows);
/// The sizes of the image that the library sees.
Sizes paddedShape(const ConvolutionWindows &windows, const ConvolutionPadding &padding);
} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_FUSE_CONVOLUTIONWINDOWS_H

//===- BinaryLoss.h - what a binary cross entropy compares ------*- C++ -*-===//
//
// A loss of one sigmoid a row is spelled out in a model. Metrics find its scores and labels here. Private to
// this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_AUTODIFF_BINARYLOSS_H
#define DSOPT_LIB_TRANSFORMS_AUTODIFF_BINARYLOSS_H

#include "Origins.h"

namespace dsopt {

/// Scores before the sigmoid, and labels in floats, with as many elements.
struct BinaryLoss {
  mlir::Value scores, labels;
};

/// Those among the operations that a loss is made of, in order. One in which something else than constants
/// weighs or chooses rows is none of them: what it leaves out is not known.
llvm::SmallVector<BinaryLoss> findBinaryLosses(llvm::ArrayRef<mlir::Operation *> ops, const Origins &origins);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_AUTODIFF_BINARYLOSS_H

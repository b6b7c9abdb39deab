//===- WindowMoves.h - where shards of convolutions share and add -*- C++ -*-===//
//
// Windows copy each element several times: shards share the image, not its windows, and pieces are added
// behind the sums of windows, not before. So less is sent, and what is around a product stays a convolution.
// Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_WINDOWMOVES_H
#define DSOPT_LIB_TRANSFORMS_PLACE_WINDOWMOVES_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt {

/// Whether a whole value has the elements under windows, in some order.
bool hasWindows(mlir::Value value);
/// What shards share of a whole value: the image where it has windows of one, else itself.
mlir::Value sharedSource(mlir::Value value);
/// The operations behind a product, nothing else reading it, that put its elements where windows lie; none
/// where there are no windows.
llvm::SmallVector<mlir::Operation *> windowsSumBehind(mlir::Operation *op);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_WINDOWMOVES_H

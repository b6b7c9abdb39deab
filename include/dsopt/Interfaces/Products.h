//===- Products.h - parts of products of matrices ---------------*- C++ -*-===//
//
// The types that TileableOpInterface talks in.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_PRODUCTS_H
#define DSOPT_INTERFACES_PRODUCTS_H

#include "mlir/IR/Value.h"

namespace dsopt {

/// A dimension of a product of an M x K and a K x N matrix.
enum class Cut { M, N, K };

/// Elements [begin, begin + size) of one of them.
struct ProductPart {
  Cut cut = Cut::M;
  int64_t begin = 0, size = 0;
  bool isLast = false;
  int64_t operand = -1; ///< the one that is there in tiles, -1: none
  mlir::Value tile;     ///< what takes its place
  mlir::Value addend;   ///< along K: the part before, null for the first
};

} // namespace dsopt

#endif // DSOPT_INTERFACES_PRODUCTS_H

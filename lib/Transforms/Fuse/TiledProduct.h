//===- TiledProduct.h - a parameter that a product takes in tiles -*- C++ -*-===//
//
// Which parameters can be cut into tiles, each in a block of its own, and which blocks the
// operations of their block then are of. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_FUSE_TILEDPRODUCT_H
#define DSOPT_LIB_TRANSFORMS_FUSE_TILEDPRODUCT_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"

namespace dsopt {

/// A parameter and all that is done with it.
struct TiledProduct {
  graph::ParameterOp parameter;
  int64_t block = 0;
  int64_t rows = 0; ///< of a tile; the last one may have fewer
  /// Backward adds over tiles: the last block, which runs first there, has the first of them.
  bool reversed = false;
  /// Forward, the gradient of its other operand (B, or W), of an evaluation; the gradient of the weight (W),
  /// with what it is added to. Null where there is none.
  TileableOpInterface forward, backward, evaluation, weights;
  graph::AccumulateOp accumulate;

  int64_t tiles() const;
  /// The first row of a tile, and its number of rows.
  int64_t begin(int64_t tile) const { return tile * rows; }
  int64_t size(int64_t tile) const;
  /// The tile whose block comes so many places behind the first.
  int64_t tileAt(int64_t place) const;
};

/// Whether a value is the weight.
bool isWeight(mlir::Value value, graph::ParameterOp parameter);
/// The operand of a product that is the weight, -1 if none is.
int64_t weightOf(mlir::Operation *product, graph::ParameterOp parameter);

/// What can be done in tiles of at most `most` elements, or why nothing can.
struct Tiling {
  TiledProduct product;
  std::string why; ///< empty: it can
};
Tiling findTiling(graph::ParameterOp parameter, int64_t most);

/// The blocks that a product's block becomes: what is in front of the product, the tiles, what is behind it.
class BlockCut {
public:
  explicit BlockCut(const TiledProduct &product) : product(product) {}
  /// Finds the places of all operations of the block. What is wrong with them; empty if nothing is.
  std::string find();
  /// Numbers the operations of the block and of those behind it anew.
  void apply();
  /// The block of the tile so many places behind the first.
  int64_t tileBlock(int64_t place) const { return product.block + hasFront + place; }

private:
  enum Side { Front, Behind };
  std::string findSides(mlir::func::FuncOp function);
  std::string findParameters(mlir::func::FuncOp function);
  std::string check(mlir::func::FuncOp function);
  int64_t added() const { return hasFront + product.tiles() + hasBehind - 1; }
  int64_t blockOf(Side side) const {
    return side == Front ? product.block : tileBlock(product.tiles() - 1) + hasBehind;
  }
  int64_t rank(mlir::Operation *op, int64_t block) const;
  bool isProduct(mlir::Operation *op) const;

  const TiledProduct &product;
  llvm::DenseMap<mlir::Operation *, Side> sides;
  llvm::DenseMap<mlir::Attribute, Side> parameters; ///< other parameters of the block, by name
  bool hasFront = false, hasBehind = false;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_FUSE_TILEDPRODUCT_H

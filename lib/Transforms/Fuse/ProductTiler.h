//===- ProductTiler.h - a parameter becomes its tiles -----------*- C++ -*-===//
//
// Rewrites parameter, state, products and update of what can be cut. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_FUSE_PRODUCTTILER_H
#define DSOPT_LIB_TRANSFORMS_FUSE_PRODUCTTILER_H

#include "TiledProduct.h"
#include "llvm/ADT/MapVector.h"

namespace dsopt {

/// Kernels that put parts together, by their types and the axis.
using ConcatKernels = llvm::DenseMap<std::pair<mlir::Type, int64_t>, mlir::func::FuncOp>;

/// Replaces a parameter by its tiles.
class ProductTiler {
public:
  ProductTiler(const TiledProduct &product, const BlockCut &blocks, mlir::SymbolTable &symbols,
               ConcatKernels &kernels)
      : product(product), blocks(blocks), symbols(symbols), kernels(kernels),
        type(llvm::cast<mlir::RankedTensorType>(graph::ParameterOp(product.parameter).getType())),
        builder(type.getContext()) {}
  void run();

private:
  void addParameters();
  void addStates();
  void cutUpdate();
  void cutProduct(TileableOpInterface whole);
  void cutGradient();
  /// The part of a product that a tile has; `part` says of what operand.
  mlir::Value build(TileableOpInterface whole, ProductPart part, int64_t tile);
  mlir::Value concatenate(mlir::Operation *whole, Cut cut, mlir::ValueRange parts);
  mlir::func::FuncOp concatKernel(mlir::TypeRange parts, mlir::RankedTensorType result, int64_t axis);
  mlir::RankedTensorType ofTile(mlir::Type whole, int64_t tile) {
    return mlir::RankedTensorType::get({product.size(tile), type.getDimSize(1)},
                                       mlir::getElementTypeOrSelf(whole));
  }
  /// What is made next is of the tile's block, in the phase of `whole`.
  void tag(mlir::Operation *op, mlir::Operation *whole, int64_t place) {
    op->setAttr(graph::kBlockAttr, builder.getI64IntegerAttr(blocks.tileBlock(place)));
    op->setAttr(graph::kPhaseAttr, whole->getAttr(graph::kPhaseAttr));
  }

  const TiledProduct &product;
  const BlockCut &blocks;
  mlir::SymbolTable &symbols;
  ConcatKernels &kernels;
  mlir::RankedTensorType type;
  mlir::OpBuilder builder;
  int64_t present = 0; ///< the place of the tile that operations are made for
  llvm::SmallVector<graph::ParameterOp> tiles;
  /// Of the parameter and its state, by name: what each tile has in its place.
  llvm::MapVector<mlir::Attribute, llvm::SmallVector<mlir::FlatSymbolRefAttr>> names;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_FUSE_PRODUCTTILER_H

//===- Constants.h - numbers in the graph -----------------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_GRAPH_CONSTANTS_H
#define DSOPT_DIALECT_GRAPH_CONSTANTS_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {

/// A constant of no dimensions, rounded to the type: of floats or of integers.
inline mlir::Value scalarConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element,
                                  double value) {
  mlir::Attribute number =
      llvm::isa<mlir::FloatType>(element)
          ? mlir::Attribute(builder.getFloatAttr(element, value))
          : mlir::Attribute(builder.getIntegerAttr(element, static_cast<int64_t>(value)));
  mlir::ElementsAttr elements =
      mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({}, element), number);
  return ConstantOp::create(builder, loc, elements);
}

} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_CONSTANTS_H

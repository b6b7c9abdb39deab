//===- Evaluate.h - runs a function by folding it ---------------*- C++ -*-===//
//
// The folders are the dialect's reference interpreter. A test gives a value to
// each argument and parameter and asks for any value of the function.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_DIALECT_GRAPH_EVALUATE_H
#define DSOPT_TEST_DIALECT_GRAPH_EVALUATE_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "gtest/gtest.h"
#include <random>

namespace dsopt::graph::test {

/// Values of a function, and what reads of named state yield.
struct Environment {
  llvm::DenseMap<mlir::Value, mlir::Attribute> values;
  llvm::StringMap<mlir::Attribute> states;

  std::vector<double> numbers(mlir::Value value) const {
    auto elements = llvm::cast<mlir::DenseElementsAttr>(values.lookup(value));
    std::vector<double> all;
    for (llvm::APFloat number : elements.getValues<llvm::APFloat>()) {
      bool lossy;
      number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lossy);
      all.push_back(number.convertToDouble());
    }
    return all;
  }
};

/// Computes every operation of the body in order.
inline void evaluate(mlir::Block &body, Environment &environment) {
  for (mlir::Operation &op : body.without_terminator()) {
    if (auto read = llvm::dyn_cast<ReadOp>(op)) {
      environment.values[read.getResult()] = environment.states.lookup(read.getState());
      continue;
    }
    if (op.getNumResults() == 0)
      continue;
    llvm::SmallVector<mlir::Attribute> operands;
    for (mlir::Value operand : op.getOperands())
      operands.push_back(environment.values.lookup(operand));
    llvm::SmallVector<mlir::OpFoldResult> results;
    ASSERT_TRUE(succeeded(op.fold(operands, results)) && results.size() == op.getNumResults())
        << op.getName().getStringRef().str() << " does not fold";
    for (auto [value, result] : llvm::zip(op.getResults(), results))
      environment.values[value] = llvm::isa<mlir::Attribute>(result)
                                      ? llvm::cast<mlir::Attribute>(result)
                                      : environment.values.lookup(llvm::cast<mlir::Value>(result));
  }
}

/// A constant of the type: floats in [low, high), integers in [0, 3), bools.
inline mlir::DenseElementsAttr randomElements(mlir::Type type, double low, double high,
                                              std::mt19937 &engine) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  int64_t count = tensor.getNumElements();
  mlir::Type element = tensor.getElementType();
  if (element.isInteger(1)) {
    llvm::SmallVector<bool> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(engine() % 2);
    return mlir::DenseElementsAttr::get(tensor, llvm::ArrayRef<bool>(values));
  }
  llvm::SmallVector<mlir::Attribute> values;
  std::uniform_real_distribution<double> uniform(low, high);
  for (int64_t i = 0; i < count; ++i)
    values.push_back(llvm::isa<mlir::FloatType>(element)
                         ? mlir::Attribute(mlir::FloatAttr::get(element, uniform(engine)))
                         : mlir::Attribute(mlir::IntegerAttr::get(element, engine() % 3)));
  return mlir::DenseElementsAttr::get(tensor, values);
}

/// The constant with `delta` added to one element.
inline mlir::DenseElementsAttr nudged(mlir::DenseElementsAttr elements, int64_t index, double delta) {
  llvm::SmallVector<mlir::Attribute> values(elements.getValues<mlir::Attribute>());
  auto number = llvm::cast<mlir::FloatAttr>(values[index]);
  values[index] = mlir::FloatAttr::get(number.getType(), number.getValueAsDouble() + delta);
  return mlir::DenseElementsAttr::get(llvm::cast<mlir::ShapedType>(elements.getType()), values);
}

} // namespace dsopt::graph::test

#endif // DSOPT_TEST_DIALECT_GRAPH_EVALUATE_H

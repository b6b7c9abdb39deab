//===- Formulas.h - functions that exporters write out -----------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_FORMULAS_H
#define DSOPT_LIB_IMPORT_ONNX_FORMULAS_H

#include "ValueGraph.h"

#include <set>

namespace dsopt::onnx_import {

/// Which numbers are coefficients of a known function of one value: GELU, a logistic function, a square.
/// Operators of one element each between a value and another are computed at a few points, whatever their
/// order: they are the function if all results are its own to 1e-6 (less where the numbers' type has less).
class Formulas {
public:
  Formulas(const ModelFile &file, const ValueGraph &values);

  bool contains(const Use &use) const { return members.count({use.node, use.input}) > 0; }

private:
  struct Region;
  /// As the values have it, asked for once: every region around a number does.
  double number(llvm::StringRef value, double &precision) const;
  bool evaluate(llvm::StringRef value, Region &region, int depth, double &result) const;
  void match(const onnx::NodeProto &node);

  const ValueGraph &values;
  mutable llvm::StringMap<std::pair<double, double>> numbers;
  std::set<std::pair<const onnx::NodeProto *, int>> members;
  /// The functions that values are already known to be.
  std::set<std::pair<std::string, int>> known;
};

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_FORMULAS_H

//===- ValueGraph.h - who reads and who makes a value ------------*- C++ -*-===//
//
// Facts about the values of a model, before anything is built: of all graphs, as names are unique.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_VALUEGRAPH_H
#define DSOPT_LIB_IMPORT_ONNX_VALUEGRAPH_H

#include "ModelFile.h"

#include "llvm/ADT/StringSet.h"

namespace dsopt::onnx_import {

/// An operator that reads a value as this input.
struct Use {
  const onnx::NodeProto *node;
  int input;
  /// Whether a view between has made one element many.
  bool isExpanded = false;

  llvm::StringRef op() const { return node->op_type(); }
  /// The first result; empty where there is none.
  llvm::StringRef result() const { return node->output_size() ? llvm::StringRef(node->output(0)) : ""; }
};

/// Whether an operator compares two values.
bool isComparison(llvm::StringRef op);

class ValueGraph {
public:
  /// `results` are outputs beside the model's own; so is what nothing reads.
  ValueGraph(ModelFile &file, llvm::ArrayRef<llvm::StringRef> results, mlir::Location location);

  llvm::ArrayRef<Use> readers(llvm::StringRef value) const;
  /// Null where nothing makes it.
  const onnx::NodeProto *producer(llvm::StringRef value) const;
  /// The operators that read a value, perhaps through views of it.
  void collect(llvm::StringRef value, std::vector<Use> &uses) const;
  /// What a value is a view of.
  llvm::StringRef viewed(llvm::StringRef value) const;
  /// The initializer that a value is, perhaps through views; null where it is none.
  const onnx::TensorProto *initializer(llvm::StringRef value) const;
  /// The number that a value of one element is: an initializer or a constant, perhaps through views. NaN
  /// where it is none. `precision` becomes at least that of its type.
  double number(llvm::StringRef value, double *precision = nullptr) const;

  /// Whether a value decides a shape, an index, a loop or a branch.
  bool decides(llvm::StringRef value) const { return deciding.contains(value); }
  /// Whether a value has a way to an output on which every operator has a derivative.
  bool hasGradient(llvm::StringRef value) const { return differentiable.contains(value); }
  /// Whether a value is made of a Range and of numbers alone.
  bool isRange(llvm::StringRef value) const { return ranges.contains(value); }

private:
  void findDeciding();
  void findDifferentiable(llvm::ArrayRef<llvm::StringRef> results);
  void findRanges();

  ModelFile &file;
  mlir::Location location;
  llvm::StringMap<std::vector<Use>> uses;
  llvm::StringMap<const onnx::NodeProto *> producers;
  llvm::StringSet<> deciding, differentiable, ranges;
};

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_VALUEGRAPH_H

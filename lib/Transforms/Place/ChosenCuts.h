//===- ChosenCuts.h - cuts that a user or the model asks for ----*- C++ -*-===//
//
// -shard=GLOB=tp:DIM|none names parameters and where they are cut, and a model's annotations do. What they
// say is one list: each parameter has one answer, with the place that gave it for messages. Private to this
// folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_CHOSENCUTS_H
#define DSOPT_LIB_TRANSFORMS_PLACE_CHOSENCUTS_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <string>

namespace dsopt {

struct ChosenCut {
  std::optional<int64_t> dim; ///< of the parameter as it is stored; none: it stays whole
  std::string by;             ///< "-shard=*.fc1.weight=tp:0"
};

class ChosenCuts {
public:
  /// Reads `dsopt.options` and what parameters are asked for. Emits an error where an entry names nothing,
  /// another axis or no dimension, and where two contradict each other.
  llvm::LogicalResult read(mlir::ModuleOp module);

  /// What is asked of a parameter; null where nothing is.
  const ChosenCut *find(llvm::StringRef parameter) const {
    auto it = chosen.find(parameter);
    return it == chosen.end() ? nullptr : &it->second;
  }
  /// By the symbols of parameters, in order of the module.
  const llvm::MapVector<llvm::StringRef, ChosenCut> &all() const { return chosen; }
  /// Whether what is not named stays whole: a smaller size of a dimension follows the largest.
  bool isComplete() const { return complete; }

private:
  llvm::LogicalResult readEntry(mlir::ModuleOp module, llvm::StringRef entry);
  llvm::LogicalResult choose(graph::ParameterOp parameter, ChosenCut cut);

  llvm::MapVector<llvm::StringRef, ChosenCut> chosen;
  bool complete = false;
};

/// The dimension that a user counts of one that is stored, and the other way: PyTorch's, where the model says
/// that a matrix lies the other way round.
inline int64_t turnedDim(graph::ParameterOp parameter, int64_t dim) {
  return parameter.getTransposed() ? 1 - dim : dim;
}

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_CHOSENCUTS_H

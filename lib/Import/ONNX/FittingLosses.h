//===- FittingLosses.h - which loss fits a model's outputs -------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_FITTINGLOSSES_H
#define DSOPT_LIB_IMPORT_ONNX_FITTINGLOSSES_H

#include "ModelFile.h"

#include "dsopt/Import/InspectONNX.h"

namespace dsopt::onnx_import {

/// What is known of an output that has probabilities.
struct KnownProbabilities {
  bool isSigmoid, isLog;
  /// Of a softmax: along which they add up to 1.
  int64_t axis;
};

/// The losses that fit these outputs: the model's own where it has one, else those of classes, then of
/// numbers.
std::vector<Inspection::Loss> fittingLosses(const ModelFile &file, llvm::ArrayRef<Inspection::Value> outputs,
                                            const llvm::StringMap<KnownProbabilities> &probabilities);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_FITTINGLOSSES_H

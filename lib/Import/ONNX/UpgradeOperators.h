//===- UpgradeOperators.h - nodes of old opsets as newer ones ----*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_UPGRADEOPERATORS_H
#define DSOPT_LIB_IMPORT_ONNX_UPGRADEOPERATORS_H

#include "ModelFile.h"

namespace dsopt::onnx_import {

/// What nodes of opsets below 13 are rewritten to.
inline constexpr int64_t kUpgradedOpset = 15;

/// The operator that the file has where a node stands for a part of it or for all of it.
inline constexpr llvm::StringLiteral kUpgradedKey = "dsopt.upgraded";

/// Rewrites nodes of an older opset to what kUpgradedOpset calls the same. Names are unique in all of the
/// model's graphs, and stay so; the model has no functions.
void upgradeOperators(onnx::ModelProto &model, int64_t opset);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_UPGRADEOPERATORS_H

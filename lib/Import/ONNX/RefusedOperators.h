//===- RefusedOperators.h - the way out of an operator there is not -*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_REFUSEDOPERATORS_H
#define DSOPT_LIB_IMPORT_ONNX_REFUSEDOPERATORS_H

#include "ModelFile.h"

namespace dsopt::onnx_import {

/// Operators that are refused for one reason, and what one can do about them.
struct RefusedFamily {
  llvm::StringRef name, remedy;
};

/// The family of an operator that is not available.
const RefusedFamily &familyOf(llvm::StringRef domain, llvm::StringRef op);

/// What one can do where data decide how many elements are chosen.
llvm::StringRef remedyForChoice();
/// What one can do about an input of text.
llvm::StringRef remedyForText();
/// The family of an operator that is refused where data decide its result's shape; "other" for all else.
llvm::StringRef familyOfChoice(llvm::StringRef op);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_REFUSEDOPERATORS_H

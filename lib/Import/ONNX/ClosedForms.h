//===- ClosedForms.h - weights that no initialization makes ------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_CLOSEDFORMS_H
#define DSOPT_LIB_IMPORT_ONNX_CLOSEDFORMS_H

#include "TensorValues.h"

namespace dsopt::onnx_import {

/// The form that the values have, for messages: "a table of waves"; empty where they have none. Reads no
/// more of them than it takes to know. `isKernel` says that the shape is a convolution's weight.
llvm::StringRef closedForm(llvm::ArrayRef<int64_t> shape, const TensorValues &values, bool isKernel);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_CLOSEDFORMS_H

//===- ConstantNodes.h - weights that are written as nodes -------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_CONSTANTNODES_H
#define DSOPT_LIB_IMPORT_ONNX_CONSTANTNODES_H

#include "llvm/ADT/StringSet.h"

#include "onnx-ml.pb.h"

namespace dsopt::onnx_import {

/// Makes initializers of the model of what Constant nodes hold, if it may be a weight: floats of two elements
/// or more, or of two axes or more, and one in a place that only weights have. They are named as the nodes'
/// results are, and `lifted` has their names. Names have to be unique.
void liftConstants(onnx::GraphProto &graph, llvm::StringSet<> &lifted);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_CONSTANTNODES_H

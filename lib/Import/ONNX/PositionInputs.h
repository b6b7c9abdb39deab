//===- PositionInputs.h - inputs that follow from positions -----*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_POSITIONINPUTS_H
#define DSOPT_LIB_IMPORT_ONNX_POSITIONINPUTS_H

#include "ModelFile.h"

#include "dsopt/Import/ImportONNX.h"

namespace dsopt::onnx_import {

/// Where a sequence is generated (ImportOptions::positions), the inputs that transformers' models have beside
/// tokens are known, whatever the tokens are: `attention_mask` is ones, `position_ids` and `cache_position`
/// count, `token_type_ids` are zeros. They become initializers, but for those that the options bind.
void bindPositionInputs(ModelFile &file, const ImportOptions &options);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_POSITIONINPUTS_H

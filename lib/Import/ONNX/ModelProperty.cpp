//===- ModelProperty.cpp - what a model's metadata say ---------------------===//

#include "ModelFile.h"

#include "dsopt/Import/ImportONNX.h"

using namespace mlir;
using namespace dsopt::onnx_import;

FailureOr<std::string> dsopt::readModelProperty(StringRef path, StringRef key, MLIRContext &context) {
  Location location = NameLoc::get(StringAttr::get(&context, path));
  std::unique_ptr<ModelFile> file = ModelFile::open(path, /*weightsFolder=*/"", location);
  if (!file)
    return failure();
  return file->property(key);
}

//===- Types.h - element types in the files dsopt writes --------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CHECKPOINT_TYPES_H
#define DSOPT_LIB_RUNTIME_CHECKPOINT_TYPES_H

#include <cstdint>
#include <string>

namespace dsopt::runtime {

struct ElementType {
  const char *name;
  int64_t bytes;
  const char *safetensors;
  int onnx; ///< TensorProto.DataType
};

/// The row of `type`; an Error of status 1 names an unknown one.
const ElementType &elementType(const std::string &type);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CHECKPOINT_TYPES_H

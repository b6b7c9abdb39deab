//===- Types.cpp - element types in the files dsopt writes ----------------===//

#include "Types.h"
#include "dsopt/Runtime/Checkpoint.h"

using namespace dsopt::runtime;

static const ElementType types[] = {{"f32", 4, "F32", 1},   {"f16", 2, "F16", 10}, {"bf16", 2, "BF16", 16},
                                    {"f64", 8, "F64", 11},  {"i64", 8, "I64", 7},  {"i32", 4, "I32", 6},
                                    {"i16", 2, "I16", 5},   {"i8", 1, "I8", 3},    {"ui64", 8, "U64", 13},
                                    {"ui32", 4, "U32", 12}, {"ui16", 2, "U16", 4}, {"ui8", 1, "U8", 2},
                                    {"i1", 1, "BOOL", 9}};

const ElementType &dsopt::runtime::elementType(const std::string &type) {
  for (const ElementType &row : types)
    if (type == row.name)
      return row;
  throw Error(StatusInput, "element type " + type + " cannot be written to a file");
}

int64_t dsopt::runtime::wholeBytes(const Parameter &parameter) {
  int64_t bytes = elementType(parameter.type).bytes;
  for (int64_t size : parameter.shape)
    bytes *= size;
  return bytes;
}

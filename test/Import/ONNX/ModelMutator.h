//===- ModelMutator.h - changes in a model's fields -------------*- C++ -*-===//
//
// What changes bytes seldom meets: fields that are well-formed and mean something
// else. A model is a tree of fields, of which these change, vanish, come again, change
// places and take names of each other; lengths follow.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_IMPORT_ONNX_MODELMUTATOR_H
#define DSOPT_TEST_IMPORT_ONNX_MODELMUTATOR_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt::test {

/// A model with one change; the same bytes where it is none, or where there is nothing to change. `other` is
/// a model that fields may come from.
std::string changeModel(std::string_view model, std::string_view other, uint64_t random);

/// What a model's options can name.
struct ModelNames {
  std::vector<std::string> inputs, outputs, initializers, symbols, values;
};
ModelNames namesOf(std::string_view model);

} // namespace dsopt::test

#endif // DSOPT_TEST_IMPORT_ONNX_MODELMUTATOR_H

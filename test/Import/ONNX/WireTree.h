//===- WireTree.h - a model as a tree of fields -----------------*- C++ -*-===//

#ifndef DSOPT_TEST_IMPORT_ONNX_WIRETREE_H
#define DSOPT_TEST_IMPORT_ONNX_WIRETREE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt::test::wire {

/// Messages of ONNX's schema that have messages in them.
enum Kind {
  Bytes,
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  ValueInfo,
  Type,
  TensorType,
  Elements,
  Shape,
  Dim,
  Entry,
  Opset,
  Function
};

enum Wire : unsigned { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

/// One field of a message: a number, bytes, or a message in it.
struct Field {
  uint64_t number = 0;
  unsigned wire = Length;
  uint64_t value = 0; ///< of a varint
  std::string bytes;  ///< of all others without fields
  Kind kind = Bytes, of = Bytes;
  std::vector<Field> fields; ///< of a message
};

/// False where it is no message.
bool parse(std::string_view text, Kind kind, std::vector<Field> &fields, int depth = 0);
std::string written(const std::vector<Field> &fields);

Field message(uint64_t number, Kind of, std::vector<Field> fields);
Field text(uint64_t number, Kind of, std::string bytes);
Field number(uint64_t number, Kind of, uint64_t value);

/// A field, and the list that it is in.
struct Place {
  std::vector<Field> *list;
  size_t index;
  Field &field() const { return (*list)[index]; }
};
void collect(std::vector<Field> &fields, std::vector<Place> &places);

} // namespace dsopt::test::wire

#endif // DSOPT_TEST_IMPORT_ONNX_WIRETREE_H

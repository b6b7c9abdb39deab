//===- WireTree.cpp - a model as a tree of fields --------------------------===//

#include "WireTree.h"

#include <algorithm>
#include <iterator>

using namespace dsopt::test;
using namespace dsopt::test::wire;

namespace {
struct Row {
  Kind of;
  uint64_t number;
  Kind kind;
};
} // namespace

const Row rows[] = {
    {Model, 7, Graph},      {Model, 8, Opset},       {Model, 14, Entry},        {Model, 25, Function},
    {Graph, 1, Node},       {Graph, 5, Tensor},      {Graph, 11, ValueInfo},    {Graph, 12, ValueInfo},
    {Graph, 13, ValueInfo}, {Node, 5, Attribute},    {Node, 9, Entry},          {Attribute, 5, Tensor},
    {Attribute, 6, Graph},  {Attribute, 10, Tensor}, {Attribute, 11, Graph},    {Attribute, 14, Type},
    {Tensor, 13, Entry},    {ValueInfo, 2, Type},    {Type, 1, TensorType},     {Type, 4, Elements},
    {Type, 9, Elements},    {Elements, 1, Type},     {TensorType, 2, Shape},    {Shape, 1, Dim},
    {Function, 7, Node},    {Function, 9, Opset},    {Function, 11, Attribute}, {Function, 12, ValueInfo},
};
static Kind kindOf(Kind of, uint64_t number) {
  auto row = std::find_if(std::begin(rows), std::end(rows),
                          [&](const Row &row) { return row.of == of && row.number == number; });
  return row == std::end(rows) ? Bytes : row->kind;
}

/// Deeper ones stay bytes.
constexpr int kMostDepth = 64;

static bool takeVarint(std::string_view &text, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !text.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(text.front());
    text.remove_prefix(1);
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128)
      return true;
  }
  return false;
}

bool wire::parse(std::string_view text, Kind kind, std::vector<Field> &fields, int depth) {
  while (!text.empty()) {
    Field &field = fields.emplace_back();
    uint64_t key, length;
    if (!takeVarint(text, key) || key >> 3 == 0)
      return false;
    field.number = key >> 3;
    field.wire = key & 7;
    field.of = kind;
    if (field.wire == Varint) {
      if (!takeVarint(text, field.value))
        return false;
      continue;
    }
    length = field.wire == Fixed64 ? 8 : 4;
    if (field.wire == Length ? !takeVarint(text, length) : field.wire != Fixed64 && field.wire != Fixed32)
      return false;
    if (length > text.size())
      return false;
    field.bytes = text.substr(0, length);
    text.remove_prefix(length);
    field.kind = field.wire == Length && depth < kMostDepth ? kindOf(kind, field.number) : Bytes;
    if (field.kind != Bytes && !parse(field.bytes, field.kind, field.fields, depth + 1)) {
      field.kind = Bytes;
      field.fields.clear();
    }
  }
  return true;
}

static void writeVarint(std::string &out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

std::string wire::written(const std::vector<Field> &fields) {
  std::string out;
  for (const Field &field : fields) {
    writeVarint(out, field.number << 3 | field.wire);
    if (field.wire == Varint) {
      writeVarint(out, field.value);
      continue;
    }
    std::string bytes = field.kind == Bytes ? field.bytes : written(field.fields);
    if (field.wire == Length)
      writeVarint(out, bytes.size());
    out += bytes;
  }
  return out;
}

Field wire::message(uint64_t number, Kind of, std::vector<Field> fields) {
  Field made;
  made.number = number;
  made.of = of;
  made.kind = kindOf(of, number);
  made.fields = std::move(fields);
  return made;
}
Field wire::text(uint64_t number, Kind of, std::string bytes) {
  Field made;
  made.number = number;
  made.of = of;
  made.bytes = std::move(bytes);
  return made;
}
Field wire::number(uint64_t number, Kind of, uint64_t value) {
  Field made;
  made.number = number;
  made.of = of;
  made.wire = Varint;
  made.value = value;
  return made;
}

void wire::collect(std::vector<Field> &fields, std::vector<Place> &places) {
  for (size_t i = 0; i < fields.size(); ++i) {
    places.push_back({&fields, i});
    collect(fields[i].fields, places);
  }
}

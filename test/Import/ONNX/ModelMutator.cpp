//===- ModelMutator.cpp - changes in a model's fields ----------------------===//

#include "ModelMutator.h"

#include "WireTree.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>

using namespace dsopt::test;
using namespace dsopt::test::wire;

namespace {
bool is(const Field &field, Kind of, std::initializer_list<uint64_t> numbers) {
  return field.of == of && std::count(numbers.begin(), numbers.end(), field.number);
}
/// Of a value: where one is read, computed, declared or given.
bool isValueName(const Field &field) {
  return field.wire == Length && (is(field, Node, {1, 2}) || is(field, Tensor, {8}) ||
                                  is(field, ValueInfo, {1}) || is(field, Function, {4, 5}));
}
bool isName(const Field &field) {
  return isValueName(field) ||
         (field.wire == Length &&
          (is(field, Node, {3, 4, 7, 8}) || is(field, Attribute, {1, 4, 9, 21}) || is(field, Dim, {2}) ||
           is(field, Entry, {1, 2}) || is(field, Function, {1, 6, 10, 13}) || is(field, Opset, {1})));
}

class Changer {
public:
  Changer(std::string_view model, std::string_view other, uint64_t seed) : random(seed) {
    valid = parse(model, Model, fields) && parse(other, Model, others);
    collect(fields, places);
    collect(others, otherPlaces);
  }
  bool change() {
    if (!valid || places.empty())
      return false;
    switch (below(20)) {
    case 0:
    case 1:
      return drop();
    case 2:
      return repeat();
    case 3:
    case 4:
    case 5:
      return rename();
    case 6:
    case 7:
    case 8:
      return renumber();
    case 9:
    case 10:
      return replace();
    case 11:
      return exchange();
    case 12:
      return retype();
    case 13:
      return setBytes();
    case 14:
      return makeExternal();
    case 15:
      return callFunctions();
    case 16:
      return nest();
    case 17:
      return bindTwice();
    case 18:
      return setOpset();
    default:
      return addAttribute();
    }
  }
  std::vector<Field> fields;

private:
  size_t below(size_t bound) { return bound ? random() % bound : 0; }
  uint64_t anyNumber() {
    static const int64_t small[] = {-2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 4096};
    switch (below(6)) {
    case 0:
      return uint64_t(1) << below(64);
    case 1:
      return (uint64_t(1) << below(64)) - 1;
    case 2:
      return -(uint64_t(1) << below(64));
    default:
      return small[below(std::size(small))];
    }
  }
  template <typename F> Place *find(std::vector<Place> &where, F fits) {
    size_t first = below(where.size());
    for (size_t i = 0; i < where.size(); ++i)
      if (Place &place = where[(first + i) % where.size()]; fits(place.field()))
        return &place;
    return nullptr;
  }
  Place *findKind(Kind kind) {
    return find(places, [&](const Field &field) { return field.kind == kind; });
  }
  Place &any() { return places[below(places.size())]; }
  std::string valueName() {
    Place *place = find(places, isValueName);
    return place ? place->field().bytes : "x";
  }

  bool drop() {
    Place &place = any();
    size_t count = below(4) ? 1 : 1 + below(place.list->size() - place.index);
    auto first = place.list->begin() + place.index;
    place.list->erase(first, first + count);
    return true;
  }
  bool repeat() {
    Place &place = any();
    Field copy = place.field();
    size_t times = below(16) ? 1 : 1 + below(40);
    place.list->insert(place.list->begin() + below(place.list->size() + 1), times, copy);
    return true;
  }
  /// Names of each other make cycles, values that are defined twice, and operators of other inputs.
  bool rename() {
    static const char *const words[] = {
        "",           "nothing",      "\xff\xfe",  "a\nb",     "a\tb\x1b[0m", "If",
        "Loop",       "Scan",         "Reshape",   "Slice",    "Resize",      "Pad",
        "SAME_UPPER", "ij,jk->ik",    "...ij->ji", "mean",     "dsopt",       "ai.onnx",
        "ai.onnx.ml", "linear",       "offset",    "length",   "../x",        "/etc/passwd",
        "?",          "batch",        "loss",      "Constant", "Identity",    "Tile",
        "Range",      "StopGradient", "Expand",    "Concat",   "Transpose",   "ScatterND",
        "TopK",       "Split",        "Einsum",    "GatherND", "OneHot",      "CumSum",
        "Squeeze",    "Unsqueeze",    "Cast",      "Shape",    "Gather",      "Attention"};
    Place *place = find(places, isName);
    if (!place)
      return false;
    Field &field = place->field();
    auto fits = [&](const Field &other) {
      if (isValueName(field))
        return isValueName(other);
      return other.of == field.of && other.number == field.number && other.wire == Length;
    };
    Place *source = below(8) ? find(below(2) ? places : otherPlaces, fits) : nullptr;
    if (!source) {
      field.bytes = words[below(std::size(words))];
      if (below(64) == 0)
        field.bytes.assign(1 + below(20000), 'n');
    } else {
      field.bytes = std::string(source->field().bytes);
    }
    return true;
  }
  bool renumber() {
    auto isNumber = [](const Field &field) { return field.wire != Length || is(field, Attribute, {7, 8}); };
    Place *place = find(places, isNumber);
    if (!place)
      return false;
    Field &field = place->field();
    if (field.wire == Varint) {
      bool isType = is(field, Tensor, {2}) || is(field, TensorType, {1}) || is(field, Attribute, {20});
      field.value = isType && below(4) ? below(30) : anyNumber();
    } else {
      static const uint32_t floats[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                                        0x7fc00000, 0x3f800000, 0xbf800000};
      uint32_t value = below(3) ? floats[below(std::size(floats))] : random();
      for (size_t at = 0; at + 4 <= field.bytes.size(); at += 4)
        std::memcpy(field.bytes.data() + at, &value, 4);
    }
    return true;
  }
  /// A field of the same meaning, or of any.
  bool replace() {
    Place &place = any();
    Field &field = place.field();
    bool anywhere = below(4) == 0;
    auto fits = [&](const Field &other) {
      return anywhere ? other.kind == field.kind : other.of == field.of && other.number == field.number;
    };
    Place *source = find(below(2) ? places : otherPlaces, fits);
    if (!source)
      return false;
    Field copy = source->field();
    copy.number = field.number;
    copy.of = field.of;
    field = std::move(copy);
    return true;
  }
  bool exchange() {
    std::vector<Field> &list = *any().list;
    std::swap(list[below(list.size())], list[below(list.size())]);
    return true;
  }
  /// What the same bytes are as another field, or as a field of another type.
  bool retype() {
    Field &field = any().field();
    if (below(2)) {
      field.number = 1 + below(26);
    } else if (field.wire == Varint) {
      field.wire = Length;
      field.bytes.assign(below(9), static_cast<char>(field.value));
    } else {
      field.wire = Varint;
      field.kind = Bytes;
      field.value = anyNumber();
    }
    return true;
  }
  /// An initializer's elements.
  bool setBytes() {
    auto isData = [](const Field &field) {
      return field.kind == Bytes && field.wire == Length && is(field, Tensor, {4, 5, 6, 7, 9, 10, 11});
    };
    Place *place = find(places, isData);
    if (!place)
      return false;
    std::string &bytes = place->field().bytes;
    switch (below(3)) {
    case 0:
      bytes.resize(below(2) ? below(bytes.size() + 1) : below(64));
      break;
    case 1:
      for (size_t at = 0; at + 8 <= bytes.size(); at += 8)
        if (below(2)) {
          uint64_t value = anyNumber();
          std::memcpy(bytes.data() + at, &value, 8);
        }
      break;
    default:
      for (char &byte : bytes)
        if (below(4) == 0)
          byte = static_cast<char>(random());
    }
    return true;
  }
  bool makeExternal() {
    static const char *const files[] = {
        "weights.bin", "weights.bin",           "none.bin",   "folder", ".", "", "../weights.bin",
        "/etc/passwd", "folder/../weights.bin", "model.onnx", "a\nb"};
    static const char *const numbers[] = {
        "0",  "4", "24",  "4095", "4096", "4611686018427387904", "9223372036854775807",
        "-1", "x", "1e9", "",     " 4",   "18446744073709551615"};
    Place *place = findKind(Tensor);
    if (!place)
      return false;
    std::vector<Field> &tensor = place->field().fields;
    if (below(8))
      tensor.erase(
          std::remove_if(tensor.begin(), tensor.end(), [](auto &field) { return field.number == 9; }),
          tensor.end());
    auto add = [&](const char *key, const char *value) {
      if (below(8))
        tensor.push_back(message(13, Tensor, {text(1, Entry, key), text(2, Entry, value)}));
    };
    add("location", files[below(std::size(files))]);
    add("offset", numbers[below(std::size(numbers))]);
    add("length", numbers[below(std::size(numbers))]);
    tensor.push_back(number(14, Tensor, 1));
    return true;
  }
  /// Functions that call the next one, the last none, itself or the first.
  bool callFunctions() {
    Place *place = findKind(Node);
    if (!place)
      return false;
    size_t depth = 1 + below(below(2) ? 4 : 90), calls = 1 + below(3), last = below(3);
    uint64_t version = 18;
    for (Field &field : fields)
      if (field.kind == Opset)
        for (Field &inner : field.fields)
          version = inner.wire == Varint ? inner.value : version;
    std::vector<Field> &node = place->field().fields;
    node.erase(std::remove_if(node.begin(), node.end(), [](auto &field) { return field.number == 4; }),
               node.end());
    node.push_back(text(4, Node, "f0"));
    node.push_back(text(7, Node, "own"));
    for (size_t i = 0; i < depth; ++i) {
      std::vector<Field> function = {text(1, Function, "f" + std::to_string(i)), text(10, Function, "own"),
                                     text(4, Function, "x"), text(5, Function, "y")};
      size_t next = i + 1 < depth ? i + 1 : last == 1 ? i : 0;
      for (size_t call = 0; call < calls; ++call) {
        std::string op = i + 1 == depth && last == 0 ? "Identity" : "f" + std::to_string(next);
        if (i + 1 == depth && last == 0 && below(2))
          break;
        function.push_back(
            message(7, Function,
                    {text(1, Node, "x"), text(2, Node, "y" + (call ? std::to_string(call) : "")),
                     text(4, Node, op), text(7, Node, op == "Identity" ? "" : "own")}));
      }
      function.push_back(message(9, Function, {number(2, Opset, version)}));
      fields.push_back(message(25, Model, std::move(function)));
    }
    fields.push_back(message(8, Model, {text(1, Opset, "own"), number(2, Opset, 1)}));
    return true;
  }
  /// A graph of this model within others, as a branch or body of a node.
  bool nest() {
    Place *place = findKind(Graph), *node = findKind(Node);
    if (!place || !node)
      return false;
    static const char *const names[] = {"then_branch", "else_branch", "body"};
    Field graph = place->field();
    auto attribute = [&] {
      graph.number = 6;
      graph.of = Attribute;
      return message(5, Node,
                     {text(1, Attribute, names[below(std::size(names))]), number(20, Attribute, 5), graph});
    };
    for (size_t depth = below(2) ? 0 : below(30); depth > 0; --depth)
      graph = message(
          6, Attribute,
          {message(1, Graph,
                   {text(4, Node, below(2) ? "If" : "Loop"), text(1, Node, valueName()), attribute()})});
    node->field().fields.push_back(attribute());
    return true;
  }
  /// A value of another's name: an initializer, an input, what a node computes.
  bool bindTwice() {
    Place *graph = findKind(Graph);
    Place *source = find(below(2) ? places : otherPlaces,
                         [](const Field &field) { return field.kind == Tensor || field.kind == ValueInfo; });
    if (!graph || !source)
      return false;
    static const uint64_t valueLists[] = {11, 12, 13};
    Field copy = source->field();
    copy.number = copy.kind == Tensor ? 5 : valueLists[below(3)];
    copy.of = Graph;
    for (Field &field : copy.fields)
      if (isValueName(field))
        field.bytes = valueName();
    graph->field().fields.push_back(std::move(copy));
    return true;
  }
  bool setOpset() {
    Place *place = findKind(Opset);
    if (!place)
      return false;
    for (Field &field : place->field().fields)
      if (field.wire == Varint)
        field.value = below(8) ? below(30) : below(2) ? below(100) : anyNumber();
    return true;
  }
  bool addAttribute() {
    static const char *const names[] = {"axis",
                                        "axes",
                                        "epsilon",
                                        "group",
                                        "num_groups",
                                        "kernel_shape",
                                        "pads",
                                        "strides",
                                        "dilations",
                                        "keepdims",
                                        "k",
                                        "to",
                                        "perm",
                                        "batch_dims",
                                        "num_heads",
                                        "blocksize",
                                        "is_causal",
                                        "value",
                                        "mode",
                                        "auto_pad",
                                        "reduction",
                                        "equation",
                                        "direction",
                                        "hidden_size",
                                        "sizes",
                                        "scales",
                                        "output_shape",
                                        "ceil_mode",
                                        "num_scan_inputs",
                                        "p"};
    Place *node = findKind(Node);
    if (!node)
      return false;
    std::vector<Field> attribute = {text(1, Attribute, names[below(std::size(names))])};
    size_t kind = below(4);
    for (size_t count = kind == 1 ? below(6) : 1; count > 0; --count)
      attribute.push_back(number(kind == 1 ? 8 : 3, Attribute, anyNumber()));
    if (kind == 2)
      attribute.back() = text(4, Attribute, "x");
    if (kind == 3)
      if (Place *tensor = findKind(Tensor)) {
        attribute.back() = tensor->field();
        attribute.back().number = 5;
        attribute.back().of = Attribute;
      }
    static const uint64_t types[] = {2, 7, 3, 4};
    attribute.push_back(number(20, Attribute, below(8) ? types[kind] : below(16)));
    std::vector<Field> &list = node->field().fields;
    list.insert(list.begin() + below(list.size() + 1), message(5, Node, std::move(attribute)));
    return true;
  }

  std::mt19937_64 random;
  std::vector<Field> others;
  std::vector<Place> places, otherPlaces;
  bool valid = false;
};
} // namespace

std::string dsopt::test::changeModel(std::string_view model, std::string_view other, uint64_t random) {
  Changer changer(model, other, random);
  return changer.change() ? written(changer.fields) : std::string(model);
}

ModelNames dsopt::test::namesOf(std::string_view model) {
  ModelNames names;
  std::vector<Field> fields;
  parse(model, Model, fields);
  std::vector<Place> places;
  collect(fields, places);
  auto nameOf = [](const Field &field) {
    for (const Field &inner : field.fields)
      if (isValueName(inner))
        return inner.bytes;
    return std::string();
  };
  for (const Place &place : places) {
    const Field &field = place.field();
    if (is(field, Graph, {5}))
      names.initializers.push_back(nameOf(field));
    else if (is(field, Graph, {11}))
      names.inputs.push_back(nameOf(field));
    else if (is(field, Graph, {12}))
      names.outputs.push_back(nameOf(field));
    else if (is(field, Dim, {2}))
      names.symbols.push_back(field.bytes);
    else if (is(field, Node, {2}))
      names.values.push_back(field.bytes);
  }
  return names;
}

//===- NpzSource.cpp - micro-batches out of an .npz file ------------------===//

#include "NpzSource.h"

#include <cstring>
#include <limits>

using namespace dsopt::runtime;

namespace {
/// Element kinds that are converted into each other, and the rest.
enum Kind { Other, I1, I8, I16, I32, I64, U8, U16, U32, U64 };

Kind kindOf(const std::string &type) {
  static const std::pair<const char *, Kind> kinds[] = {
      {"i1", I1},    {"i8", I8},    {"i16", I16}, {"i32", I32},  {"i64", I64},  {"si8", I8},  {"si16", I16},
      {"si32", I32}, {"si64", I64}, {"ui8", U8},  {"ui16", U16}, {"ui32", U32}, {"ui64", U64}};
  for (auto &[name, kind] : kinds)
    if (type == name)
      return kind;
  return Other;
}

template <typename Function> bool withType(int kind, Function &&function) {
  switch (kind) {
  case I1:
    return function(static_cast<bool *>(nullptr));
  case I8:
    return function(static_cast<int8_t *>(nullptr));
  case I16:
    return function(static_cast<int16_t *>(nullptr));
  case I32:
    return function(static_cast<int32_t *>(nullptr));
  case I64:
    return function(static_cast<int64_t *>(nullptr));
  case U8:
    return function(static_cast<uint8_t *>(nullptr));
  case U16:
    return function(static_cast<uint16_t *>(nullptr));
  case U32:
    return function(static_cast<uint32_t *>(nullptr));
  default:
    return function(static_cast<uint64_t *>(nullptr));
  }
}

/// Copies integers from one width to another; false if one does not fit.
bool convert(int from, int to, const char *source, void *target, int64_t elements) {
  return withType(from, [&](auto *f) {
    return withType(to, [&](auto *t) {
      using F = std::remove_pointer_t<decltype(f)>;
      using T = std::remove_pointer_t<decltype(t)>;
      T *out = static_cast<T *>(target);
      for (int64_t i = 0; i < elements; ++i) {
        std::conditional_t<std::is_same_v<F, bool>, uint8_t, F> value;
        std::memcpy(&value, source + i * sizeof value, sizeof value);
        if constexpr (std::is_same_v<T, bool>) {
          out[i] = value != 0;
        } else {
          out[i] = static_cast<T>(value);
          bool negative = std::is_signed_v<F> && static_cast<int64_t>(value) < 0;
          bool turned = std::is_signed_v<T> && static_cast<int64_t>(out[i]) < 0;
          if (negative != turned || static_cast<decltype(value)>(out[i]) != value)
            return false;
        }
      }
      return true;
    });
  });
}

std::string atStep(const std::string &path, const std::string &input, int64_t step, int64_t microBatch) {
  return path + ": input '" + input + "', step " + std::to_string(step) + ", micro-batch " +
         std::to_string(microBatch);
}
} // namespace

int64_t dsopt::runtime::countMicroBatches(const NpzArray &array, const std::vector<int64_t> &shape,
                                          int64_t &rest, const std::string &path) {
  rest = 0;
  size_t extra = array.shape.size() - shape.size();
  auto refuse = [&](const std::string &expected) {
    throw Error(StatusInput, path + ": array '" + array.name + "' has shape " + describeShape(array.shape) +
                                 ", expected " + expected);
  };
  std::string whole = describeShape(shape);
  if (array.shape.size() < shape.size())
    refuse("micro-batches of " + whole + " (or more axes before it)");
  if (extra == 0) {
    if (shape.empty())
      return 1;
    if (!std::equal(shape.begin() + 1, shape.end(), array.shape.begin() + 1)) {
      std::vector<int64_t> row(shape.begin() + 1, shape.end());
      refuse("rows of " + describeShape(row) + " (micro-batches of " + whole + ")");
    }
    rest = array.shape[0] % shape[0];
    return array.shape[0] / shape[0];
  }
  if (!std::equal(shape.begin(), shape.end(), array.shape.begin() + extra))
    refuse("a stream of micro-batches of " + whole);
  int64_t count = 1;
  for (size_t i = 0; i < extra; ++i)
    count *= array.shape[i];
  return count;
}

NpzSource::NpzSource(const Program &program, const std::string &path)
    : DataSource(program, path), file(path) {
  std::string shortest;
  int64_t count = program.K;
  for (const Input &input : program.inputs) {
    const NpzArray *array = file.find(input.name);
    if (!array) {
      std::string names;
      for (const NpzArray &other : file.arrays())
        names += (names.empty() ? "" : ", ") + other.name;
      throw Error(StatusInput, path + ": no array '" + input.name + "' for the input " + input.type + " " +
                                   describeShape(input.shape) + "; the file has " +
                                   (names.empty() ? "no arrays" : names));
    }
    Stream stream;
    stream.array = array;
    stream.bytes = array->elementBytes;
    stream.from = kindOf(array->type);
    stream.to = kindOf(input.type);
    if (array->type != input.type && (stream.from == Other || stream.to == Other)) {
      bool integer = stream.to != Other;
      std::string got = array->type.empty() ? "'" + array->dtype + "'" : array->type;
      throw Error(StatusInput, path + ": array '" + input.name + "' has type " + got + ", expected " +
                                   (integer ? "integers (the input is " + input.type + ")" : input.type));
    }
    if (array->fortran)
      throw Error(StatusInput, path + ": array '" + input.name +
                                   "' is stored in Fortran order; save numpy.ascontiguousarray of it");
    int64_t rest = 0, n = countMicroBatches(*array, input.shape, rest, path);
    if (rest)
      lines.push_back(path + ": the last " + std::to_string(rest) + " of " + std::to_string(array->shape[0]) +
                      " rows of '" + input.name + "' do not fill a micro-batch of " +
                      std::to_string(input.shape[0]) + " and are dropped");
    stream.elements = 1;
    for (int64_t size : input.shape)
      stream.elements *= size;
    if (streams.empty()) {
      count = n;
      shortest = input.name;
    } else if (n != count) {
      throw Error(StatusInput, path + ": array '" + shortest + "' holds " + std::to_string(count) +
                                   " micro-batches, but '" + input.name + "' holds " + std::to_string(n));
    }
    streams.push_back(stream);
  }
  setCount(count);
}

void NpzSource::prepare() {
  for (Stream &stream : streams)
    stream.data = file.data(*stream.array);
}

void NpzSource::fill(int64_t step, int64_t microBatch, int64_t index, void *target) {
  const Stream &stream = streams[index];
  const Input &input = program.inputs[index];
  int64_t at = itemAt(step, microBatch, 0, 1);
  const char *source = stream.data + at * stream.elements * stream.bytes;
  if (stream.from == stream.to && stream.from != I1)
    std::memcpy(target, source, stream.elements * stream.bytes);
  else if (!convert(stream.from, stream.to, source, target, stream.elements))
    throw Error(StatusInput, atStep(file.path(), input.name, step, microBatch) + ": a value of type " +
                                 stream.array->type + " does not fit into " + input.type);
}

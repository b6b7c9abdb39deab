//===- NpzSource.cpp - micro-batches out of an .npz file ------------------===//

#include "NpzSource.h"

#include "Core/FloatTypes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

using namespace dsopt::runtime;

namespace {
/// Element kinds: integers are converted into each other where they fit, floats to wider ones, and
/// f64, which is what Python's numbers become, to f32.
enum Kind { Other, I1, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64 };

bool isFloat(int kind) { return kind >= F16; }
bool isInteger(int kind) { return kind != Other && !isFloat(kind); }
/// Whether elements of one kind are read as another, as far as their kinds say.
bool isConvertible(int from, int to) {
  return isFloat(from) ? to == from || (to > BF16 && to > from) || (from == F64 && to == F32)
                       : isInteger(from) && isInteger(to);
}

Kind kindOf(const std::string &type) {
  static const std::pair<const char *, Kind> kinds[] = {
      {"i1", I1},    {"i8", I8},    {"i16", I16},  {"i32", I32}, {"i64", I64},  {"si8", I8},
      {"si16", I16}, {"si32", I32}, {"si64", I64}, {"ui8", U8},  {"ui16", U16}, {"ui32", U32},
      {"ui64", U64}, {"f16", F16},  {"f32", F32},  {"f64", F64}};
  for (auto &[name, kind] : kinds)
    if (type == name)
      return kind;
  return Other;
}

/// Calls `function` with a pointer of the C++ type of an integer kind.
template <typename Function> auto withType(int kind, Function &&function) {
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

int64_t widthOf(int kind) {
  if (isFloat(kind))
    return kind < F32 ? 2 : kind == F32 ? 4 : 8;
  return withType(kind, [](auto *value) -> int64_t { return sizeof *value; });
}

/// Copies f64 as f32; false where that makes an infinity of a number.
bool narrow(const char *source, float *target, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    double value;
    std::memcpy(&value, source + i * sizeof value, sizeof value);
    target[i] = static_cast<float>(value);
    if (std::isinf(target[i]) && !std::isinf(value))
      return false;
  }
  return true;
}

/// Copies floats to wider ones.
void widen(int from, int to, const char *source, void *target, int64_t elements) {
  auto copy = [&](auto *f, auto *out) {
    for (int64_t i = 0; i < elements; ++i) {
      std::remove_pointer_t<decltype(f)> value;
      std::memcpy(&value, source + i * sizeof value, sizeof value);
      out[i] = value;
    }
  };
  if (to == F64 && from == F32)
    copy(static_cast<float *>(nullptr), static_cast<double *>(target));
  else if (from == BF16)
    for (int64_t i = 0; i < elements; ++i) {
      float value = widened("bf16", source + 2 * i);
      if (to == F64)
        static_cast<double *>(target)[i] = value;
      else
        static_cast<float *>(target)[i] = value;
    }
  else if (to == F64)
    copy(static_cast<_Float16 *>(nullptr), static_cast<double *>(target));
  else
    copy(static_cast<_Float16 *>(nullptr), static_cast<float *>(target));
}

/// Copies elements of one kind as another; false if a number does not fit.
bool convert(int from, int to, const char *source, void *target, int64_t elements) {
  if (from == F64 && to == F32)
    return narrow(source, static_cast<float *>(target), elements);
  if (isFloat(from))
    return widen(from, to, source, target, elements), true;
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

/// Whether the program's dimension is this axis of an input: its variants differ there.
static bool isFlexible(const Program &program, size_t input, size_t axis) {
  return !program.variants.empty() && axis < program.inputs[input].shape.size() &&
         program.variants.front().shapes[input][axis] != program.inputs[input].shape[axis];
}

/// Whether the program's dimension is the rows of a micro-batch.
static bool variesRows(const Program &program) {
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (isFlexible(program, i, 0))
      return true;
  return false;
}

/// The shape of a micro-batch of the array: the input's, but along the program's dimension the array's own.
std::vector<int64_t> NpzSource::fileShape(const Input &input, const NpzArray &array) {
  std::vector<int64_t> shape = input.shape;
  size_t index = &input - program.inputs.data(), rank = shape.size();
  for (size_t axis = 0; axis < rank && array.shape.size() >= rank; ++axis) {
    // A list of rows is cut by the largest size.
    if (!isFlexible(program, index, axis) || (axis == 0 && array.shape.size() == rank))
      continue;
    int64_t size = array.shape[array.shape.size() - rank + axis];
    if (size > program.size || (length && size != length))
      throw Error(StatusInput, file.path() + ": array '" + input.name + "' has " + std::to_string(size) +
                                   " along '" + program.dimension + "' (shape " + describeShape(array.shape) +
                                   "), expected " +
                                   (length ? std::to_string(length) + ", as other arrays have"
                                           : "at most " + std::to_string(program.size)));
    shape[axis] = length = size;
  }
  return shape;
}

bool NpzSource::isOfASize() const {
  return length == 0 || length == program.size ||
         std::any_of(program.variants.begin(), program.variants.end(),
                     [&](const Variant &variant) { return variant.size == length; });
}

/// Micro-batches are filled up where that is asked for and changes nothing that the loss is made of.
void NpzSource::checkPadding(bool pad) const {
  if (isOfASize())
    return;
  std::string sizes = std::to_string(program.size);
  for (auto it = program.variants.rbegin(); it != program.variants.rend(); ++it)
    sizes = std::to_string(it->size) + ", " + sizes;
  bool hidden = false;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Input &input = program.inputs[i];
    for (size_t axis = 0; axis < input.shape.size(); ++axis)
      hidden |= (input.label || input.name == "attention_mask") && isFlexible(program, i, axis);
  }
  std::string text = file.path() + ": micro-batches have " + std::to_string(length) + " along '" +
                     program.dimension + "', which the program has at " + sizes;
  if (variesRows(program))
    throw Error(StatusInput, text + "; a micro-batch with fewer rows is not filled up");
  if (!pad)
    throw Error(StatusInput, text + "; -pad fills them up (labels ignored, masks and all else 0)");
  if (!hidden)
    throw Error(StatusInput, text + "; -pad would change the " +
                                 (program.outputs.empty() ? "loss" : "outputs") +
                                 ", since no labels and no attention_mask have that dimension");
}

int64_t NpzSource::lengthOf(int64_t step, int64_t microBatch) const {
  bool masked = false;
  int64_t reach = 1;
  for (size_t index = 0; index < streams.size(); ++index) {
    const Stream &stream = streams[index];
    const Input &input = program.inputs[index];
    size_t last = input.shape.size() - 1;
    bool mask = input.name == "attention_mask";
    if (input.shape.empty() || (!mask && !input.label) || !isFlexible(program, index, last) ||
        !isInteger(stream.from))
      continue;
    masked |= mask;
    int64_t nothing = mask ? 0 : input.ignore_index;
    const char *source = stream.data + itemAt(step, microBatch, 0, 1) * stream.elements * stream.bytes;
    for (int64_t row = 0; row < stream.elements / length; ++row)
      for (int64_t at = length; at-- > reach;) {
        int64_t value = 0;
        if (!convert(stream.from, I64, source + (row * length + at) * stream.bytes, &value, 1) ||
            value != nothing) {
          reach = at + 1;
          break;
        }
      }
  }
  return masked ? reach : length;
}

int NpzSource::chooseVariant(int64_t step) {
  variant = -1;
  if (program.variants.empty() || length == 0)
    return variant;
  int64_t longest = 0;
  bool rows = variesRows(program);
  // Outputs have one shape, whatever the micro-batches beside each other show.
  bool whole = rows || !program.outputs.empty();
  for (int64_t microBatch = 0; microBatch < program.K && longest < length; ++microBatch)
    longest = std::max(longest, whole ? length : lengthOf(step, microBatch));
  for (size_t i = program.variants.size(); i-- > 0 && program.variants[i].size >= longest;)
    variant = static_cast<int>(i);
  return variant;
}

/// Copies what a micro-batch has in common with the shape; the rest is ignored labels and zeros.
void NpzSource::fillBox(const Stream &stream, const Input &input, const std::vector<int64_t> &shape,
                        const char *source, char *target, const std::string &place) const {
  int64_t width = stream.to == Other ? stream.bytes : widthOf(stream.to);
  size_t rank = shape.size();
  int64_t columns = shape[rank - 1], common = std::min(columns, stream.shape[rank - 1]), rows = 1;
  for (size_t axis = 0; axis + 1 < rank; ++axis)
    rows *= shape[axis];
  std::vector<int64_t> at(rank, 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t from = 0;
    bool there = true;
    for (size_t axis = 0; axis + 1 < rank; ++axis) {
      there &= at[axis] < stream.shape[axis];
      from = from * stream.shape[axis] + at[axis];
    }
    int64_t copied = there ? common : 0;
    const char *begin = source + from * stream.shape[rank - 1] * stream.bytes;
    if (stream.from == stream.to && stream.from != I1)
      std::memcpy(target, begin, copied * width);
    else if (!convert(stream.from, stream.to, begin, target, copied))
      throw Error(StatusInput,
                  place + ": a value of type " + stream.array->type + " does not fit into " + input.type);
    std::memset(target + copied * width, 0, (columns - copied) * width);
    if (input.label && isInteger(stream.to))
      for (int64_t column = copied; column < columns; ++column)
        convert(I64, stream.to, reinterpret_cast<const char *>(&input.ignore_index), target + column * width,
                1);
    target += columns * width;
    for (size_t axis = rank - 1; axis-- > 0 && ++at[axis] == shape[axis];)
      at[axis] = 0;
  }
}

/// All that is missing is said at once.
void NpzSource::checkArrays() const {
  std::string missing, names;
  for (const Input &input : program.inputs)
    if (!file.find(input.name))
      missing += (missing.empty() ? "no array '" : ", no array '") + input.name + "' for the input " +
                 input.type + " " + describeShape(input.shape);
  for (const NpzArray &other : file.arrays())
    names += (names.empty() ? "" : ", ") + other.name;
  if (!missing.empty())
    throw Error(StatusInput,
                file.path() + ": " + missing + "; the file has " + (names.empty() ? "no arrays" : names));
}

NpzSource::NpzSource(const Program &program, const std::string &path, bool pad)
    : DataSource(program, path), file(path) {
  for (const auto &[name, value] : program.bound)
    if (file.find(name))
      throw Error(StatusInput, path + ": array '" + name +
                                   "' is for an input that the program has bound to " + value +
                                   " (-input): leave one of them out");
  checkArrays();
  std::string shortest;
  int64_t count = program.K;
  for (const Input &input : program.inputs) {
    const NpzArray *array = file.find(input.name);
    Stream stream;
    stream.array = array;
    stream.bytes = array->elementBytes;
    stream.from = kindOf(array->type);
    stream.to = kindOf(input.type);
    // numpy has no bf16: its bits are given instead.
    if (input.source == "bf16" && (array->type == "ui16" || array->dtype == "|V2"))
      stream.from = BF16;
    if (array->type != input.type && !isConvertible(stream.from, stream.to)) {
      bool integer = isInteger(stream.to);
      std::string got = array->type.empty() ? "'" + array->dtype + "'" : array->type;
      throw Error(StatusInput, path + ": array '" + input.name + "' has type " + got + ", expected " +
                                   (integer ? "integers (the input is " + input.type + ")" : input.type));
    }
    if (stream.from == F64 && stream.to == F32)
      lines.push_back(
          {path + ": array '" + input.name + "' has type f64 and is rounded to f32, the input's", true});
    if (array->fortran)
      throw Error(StatusInput, path + ": array '" + input.name +
                                   "' is stored in Fortran order; save numpy.ascontiguousarray of it");
    stream.shape = fileShape(input, *array);
    int64_t rest = 0, n = countMicroBatches(*array, stream.shape, rest, path);
    if (!program.outputs.empty() && program.micro_batch_size > 0 &&
        array->shape.size() == stream.shape.size() && (rest == 0 || isOfASize())) {
      listed = array->shape[0];
      stream.rest = std::exchange(rest, 0);
      n += stream.rest > 0;
    } else if (rest && !program.outputs.empty()) {
      throw Error(StatusInput, path + ": array '" + input.name + "' has " + std::to_string(array->shape[0]) +
                                   " rows, of which the last " + std::to_string(rest) +
                                   " fill no micro-batch of " + std::to_string(input.shape[0]));
    }
    std::string dropped = "the last " + std::to_string(rest) + " of " +
                          std::to_string(array->shape.empty() ? 1 : array->shape[0]);
    dropped += " rows do not fill a micro-batch of " +
               std::to_string(input.shape.empty() ? 1 : input.shape[0]) + " and are dropped";
    // Said once of arrays of equal length.
    if (rest && (lines.empty() || lines.back().text != path + ": " + dropped))
      lines.push_back({path + ": " + dropped, true});
    stream.elements = 1;
    for (int64_t size : stream.shape)
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
  // Of lists and micro-batches beside each other the rows are those of whole micro-batches.
  for (const Stream &stream : streams)
    if (listed && (stream.array->shape.size() != stream.shape.size() || stream.array->shape[0] != listed))
      throw Error(StatusInput, path + ": array '" + streams.front().array->name + "' has shape " +
                                   describeShape(streams.front().array->shape) + ", but '" +
                                   stream.array->name + "' has " + describeShape(stream.array->shape) +
                                   ": expected as many rows of each");
  checkPadding(pad);
  setCount(count);
}

void NpzSource::prepare() {
  for (Stream &stream : streams)
    stream.data = file.data(*stream.array);
}

void NpzSource::fillRow(const Stream &stream, const Input &input, const char *source, int64_t elements,
                        void *target, int64_t step, int64_t microBatch) const {
  if (stream.from == stream.to && stream.from != I1)
    std::memcpy(target, source, elements * stream.bytes);
  else if (!convert(stream.from, stream.to, source, target, elements))
    throw Error(StatusInput, atStep(file.path(), input.name, step, microBatch) + ": a value of type " +
                                 stream.array->type + " does not fit into " + input.type);
}

void NpzSource::fill(int64_t step, int64_t microBatch, int64_t index, void *target) {
  const Stream &stream = streams[index];
  const Input &input = program.inputs[index];
  int64_t at = itemAt(step, microBatch, 0, 1);
  const char *source = stream.data + at * stream.elements * stream.bytes;
  const std::vector<int64_t> &shape = variant < 0 ? input.shape : program.variants[variant].shapes[index];
  int64_t rows = stream.rest > 0 && at == microBatches() - 1 ? stream.rest : 0;
  if (rows) {
    // The last row again and again.
    int64_t elements = stream.elements / stream.shape[0],
            width = stream.to == Other ? stream.bytes : widthOf(stream.to);
    for (int64_t row = 0; row < stream.shape[0]; ++row)
      fillRow(stream, input, source + std::min(row, rows - 1) * elements * stream.bytes, elements,
              static_cast<char *>(target) + row * elements * width, step, microBatch);
  } else if (shape != stream.shape)
    fillBox(stream, input, shape, source, static_cast<char *>(target),
            atStep(file.path(), input.name, step, microBatch));
  else
    fillRow(stream, input, source, stream.elements, target, step, microBatch);
}

std::string NpzSource::describe(int64_t step, int64_t microBatch, int64_t index, int64_t element) {
  const Stream &stream = streams[index];
  const Input &input = program.inputs[index];
  const std::vector<int64_t> &shape = variant < 0 ? input.shape : program.variants[variant].shapes[index];
  const std::vector<int64_t> &array = stream.array->shape;
  int64_t at = itemAt(step, microBatch, 0, 1);
  std::vector<int64_t> place(array.size());
  size_t extra = array.size() - shape.size();
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    place[extra + axis] = element % shape[axis];
  if (extra == 0 && !shape.empty())
    place[0] += at * stream.shape[0];
  for (size_t axis = extra; axis-- > 0; at /= array[axis])
    place[axis] = at % array[axis];
  return file.path() + " at " + describeShape(place);
}

std::string NpzSource::place() {
  const NpzArray *array = file.find("dsopt.place");
  if (!array)
    return "";
  if (array->type != "ui8" || array->shape.size() != 1)
    throw Error(StatusInput, file.path() + ": got 'dsopt.place' as " + describeArray(*array) +
                                 ", expected the bytes of a text, ui8 [n]");
  return {file.data(*array), static_cast<size_t>(array->shape[0])};
}

double NpzSource::learningRate() {
  const NpzArray *array = file.find("dsopt.lr");
  std::string expected = ", expected the scalar f64 'dsopt.lr' with the step's learning rate "
                         "(-lr-schedule=stream)";
  if (!array || array->type != "f64" || !array->shape.empty())
    throw Error(StatusInput, file.path() + ": got " +
                                 (array ? "'dsopt.lr' as " + describeArray(*array) : "no 'dsopt.lr'") +
                                 expected);
  double rate = 0;
  std::memcpy(&rate, file.data(*array), sizeof rate);
  if (!std::isfinite(rate) || rate < 0)
    throw Error(StatusInput,
                file.path() + ": got 'dsopt.lr' = " + std::to_string(rate) + ", expected 0 or more");
  return rate;
}

//===- OpenWeights.cpp - parameters from a safetensors file ----------------===//

#include "Core/FloatTypes.h"
#include "Core/InitialValues.h"
#include "dsopt/Runtime/Manifest.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <nlohmann/json.hpp>

using Json = nlohmann::json;

namespace dsopt::runtime {
namespace {

constexpr uint64_t kMostHeader = 256 << 20;
constexpr int64_t kPiece = 1 << 20;

/// One tensor of the file.
struct Stored {
  std::string type;
  std::vector<int64_t> shape;
  int64_t offset = 0;
  bool transposed = false; ///< a matrix that lies the other way round
};

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "a scalar" : text;
}

/// The first few of a list of names.
std::string some(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 4; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return names.size() > 4 ? text + " and " + std::to_string(names.size() - 4) + " more" : text;
}

int64_t widthOf(const std::string &type) {
  static const std::pair<const char *, int64_t> widths[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
      {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"U64", 8},  {"U32", 4}, {"U16", 2}};
  for (auto [name, width] : widths)
    if (type == name)
      return width;
  return 0;
}

/// The file's name for a type of the program.
std::string storedName(const std::string &type) {
  static const std::pair<const char *, const char *> names[] = {
      {"f64", "F64"}, {"f32", "F32"}, {"f16", "F16"}, {"bf16", "BF16"}, {"i64", "I64"},
      {"i32", "I32"}, {"i16", "I16"}, {"i8", "I8"},   {"ui8", "U8"},    {"i1", "BOOL"}};
  for (auto [ours, theirs] : names)
    if (type == ours)
      return theirs;
  return type;
}

class WeightsFile final : public ParameterValues {
public:
  /// `said` is what messages call the file. Without `isWhole` it may lack parameters.
  WeightsFile(const std::string &path, std::string said, bool isWhole, const Program &program,
              const OriginalNames &names, ThreadPool *pool, std::unique_ptr<ParameterValues> model)
      : said(std::move(said)), isWhole(isWhole), pool(pool), model(std::move(model)) {
    file.fd = sys::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info{};
    if (file < 0 || sys::fstat(file, &info) != 0)
      cannotRead("it", errno);
    bytes = info.st_size;
    changed = info.st_mtim;
    readHeader();
    match(program, names);
  }
  bool has(const Parameter &parameter) const override { return isWhole || chosen.count(parameter.name); }
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) override {
    auto found = chosen.find(parameter.name);
    if (found == chosen.end())
      return model->read(parameter, begin, end, target);
    if (begin >= end)
      return;
    struct stat info{};
    if (sys::fstat(file, &info) != 0)
      cannotRead("it", errno);
    if (info.st_size != bytes || info.st_mtim.tv_sec != changed.tv_sec ||
        info.st_mtim.tv_nsec != changed.tv_nsec)
      fail("has changed since it was opened, expected that a new file takes its name");
    const Stored &stored = found->second;
    std::atomic<int> failure{0}; // an error number; a file that ended early has none
    std::atomic<bool> failed{false};
    // A matrix that lies the other way round is read column by column of the parameter.
    bool turned = stored.transposed;
    int64_t columns = turned ? parameter.shape[1] : 1, rows = turned ? parameter.shape[0] : 0;
    int64_t count = turned ? columns : (end - begin + kPiece - 1) / kPiece;
    auto body = [&](int64_t index, int) {
      int64_t first, last, stride = turned ? columns : 1, place;
      if (turned) { // elements index, index + columns ... of the parameter
        int64_t firstRow = (begin - index + columns - 1) / columns,
                lastRow = (end - index + columns - 1) / columns;
        first = index * rows + firstRow, last = index * rows + lastRow;
        place = firstRow * columns + index - begin;
      } else {
        first = begin + index * kPiece, last = std::min(first + kPiece, end);
        place = first - begin;
      }
      if (first < last && !copy(stored, parameter.type, first, last, target, place, stride)) {
        failure = errno;
        failed = true;
      }
    };
    if (pool)
      pool->forEach(count, 1, body);
    else
      for (int64_t index = 0; index < count; ++index)
        body(index, 0);
    if (failed)
      cannotRead("'" + parameter.name + "'", failure);
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw Error(StatusInput, said + ": " + what); }

  [[noreturn]] void cannotRead(const std::string &what, int error) const {
    throw Error(readStatus(error), said + ": " + what + " cannot be read: " +
                                       (error ? std::strerror(error) : "the file ended early"));
  }

  void readHeader() {
    uint64_t length = 0;
    std::string text;
    auto read = [&](int64_t offset, void *to, int64_t count) {
      if (!readFully(file, offset, to, count))
        cannotRead("its header", errno);
    };
    if (bytes >= 8)
      read(0, &length, 8);
    if (length > 0 && length <= kMostHeader && length <= static_cast<uint64_t>(bytes) - 8) {
      text.resize(length);
      read(8, text.data(), static_cast<int64_t>(length));
    }
    Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object())
      fail("is no safetensors file, or damaged");
    int64_t data = 8 + static_cast<int64_t>(length);
    for (auto &[name, entry] : header.items()) {
      if (name == "__metadata__")
        continue;
      Stored stored;
      std::vector<int64_t> range;
      try {
        entry.at("dtype").get_to(stored.type);
        entry.at("shape").get_to(stored.shape);
        entry.at("data_offsets").get_to(range);
      } catch (const Json::exception &) {
        fail("the entry of '" + name + "' is damaged");
      }
      int64_t elements = 1, width = widthOf(stored.type);
      bool sound =
          width > 0 && range.size() == 2 && range[0] >= 0 && range[0] <= range[1] && range[1] <= bytes - data;
      for (int64_t size : stored.shape)
        sound &= size >= 0 && !__builtin_mul_overflow(elements, size, &elements);
      if (!sound || elements > (INT64_MAX >> 4) || range[1] - range[0] != elements * width)
        fail("the entry of '" + name + "' does not fit the file, which has " + std::to_string(bytes) +
             " bytes");
      stored.offset = data + range[0];
      tensors[name] = stored;
    }
  }

  /// Which tensor each parameter takes.
  void match(const Program &program, const OriginalNames &names) {
    std::vector<std::string> missing, left;
    std::set<std::string> used;
    for (const Parameter &parameter : program.parameters) {
      Parameter form = originalForm(parameter, names);
      if (!tensors.count(form.name))
        form = parameter;
      auto found = tensors.find(form.name);
      if (found == tensors.end()) {
        if (parameter.trainable && isWhole)
          missing.push_back(form.name);
        continue;
      }
      Stored stored = found->second;
      if (stored.shape != form.shape)
        fail("tensor '" + form.name + "' is " + shapeText(stored.shape) + ", expected " +
             shapeText(form.shape));
      std::string expected = storedName(parameter.type);
      bool widens = expected == "F32" && (stored.type == "F16" || stored.type == "BF16");
      if (stored.type != expected && !widens)
        fail("tensor '" + form.name + "' is of type " + stored.type + ", expected " + expected +
             (expected == "F32" ? ", BF16 or F16" : ""));
      auto original = names.find(parameter.name);
      stored.transposed = original != names.end() && form.name == original->second.name &&
                          original->second.transposed && parameter.shape.size() == 2;
      used.insert(form.name);
      chosen[parameter.name] = stored;
    }
    for (auto &[name, stored] : tensors)
      if (!used.count(name))
        left.push_back(name);
    if (!missing.empty())
      fail("lacks " + some(missing) + (left.empty() ? "" : "; the model has no " + some(left)));
    // Some of the outputs may need some of the parameters.
    if (!left.empty() && program.outputs.empty())
      fail("holds " + some(left) + ", which the model does not have");
  }

  /// Elements [first, last) of a tensor to every `stride`th element from `place` on of `target`.
  bool copy(const Stored &stored, const std::string &type, int64_t first, int64_t last, char *target,
            int64_t place, int64_t stride) const {
    int64_t width = widthOf(stored.type), wide = elementBytes(type), count = last - first;
    if (stride == 1 && stored.type == storedName(type))
      return readFully(file, stored.offset + first * width, target + place * wide, count * width);
    std::vector<char> piece(count * width);
    if (!readFully(file, stored.offset + first * width, piece.data(), count * width))
      return false;
    for (int64_t i = 0; i < count; ++i) {
      char *to = target + (place + i * stride) * wide;
      const char *from = piece.data() + i * width;
      if (width == wide) {
        std::memcpy(to, from, wide);
        continue;
      }
      float value = widened(stored.type == "BF16" ? "bf16" : "f16", from);
      std::memcpy(to, &value, sizeof value);
    }
    return true;
  }

  std::string said;
  bool isWhole;
  ThreadPool *pool;
  std::unique_ptr<ParameterValues> model; ///< for parameters that the file lacks
  /// Closed also where the header is refused.
  struct Open {
    int fd = -1;
    ~Open() {
      if (fd >= 0)
        sys::close(fd);
    }
    operator int() const { return fd; }
  } file;
  int64_t bytes = 0;
  timespec changed{};
  std::map<std::string, Stored> tensors; ///< by the file's name
  std::map<std::string, Stored> chosen;  ///< by the parameter's name
};
} // namespace

std::unique_ptr<ParameterValues> openWeights(const std::string &path, const Program &program,
                                             const OriginalNames &names, ThreadPool *pool,
                                             std::unique_ptr<ParameterValues> model) {
  return std::make_unique<WeightsFile>(path, "option -weights: " + path, /*isWhole=*/true, program, names,
                                       pool, std::move(model));
}

std::unique_ptr<ParameterValues> openReplacement(const std::string &path, const Program &program,
                                                 const OriginalNames &names, ThreadPool *pool) {
  return std::make_unique<WeightsFile>(path, path, /*isWhole=*/false, program, names, pool, nullptr);
}

} // namespace dsopt::runtime

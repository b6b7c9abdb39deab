//===- Compression.cpp - the methods that there are -----------------------===//

#include "dsopt/Transforms/Wire/Compression.h"

#include "OneBit.h"
#include "PowerSgd.h"
#include "TopK.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <map>

using namespace mlir;
using namespace dsopt;

static std::map<std::string, CompressionMethod> &methods() {
  static std::map<std::string, CompressionMethod> known = {
      {"onebit", oneBit()}, {"powersgd", powerSgd()}, {"topk", topK()}};
  return known;
}

void dsopt::registerCompression(StringRef name, CompressionMethod method) {
  methods()[name.str()] = std::move(method);
}

std::vector<std::string> dsopt::compressionNames() {
  auto names = llvm::make_first_range(methods());
  return {names.begin(), names.end()};
}

static std::string shown(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// Reads `option=N,...` into the values of a method's options; says what is wrong with it.
static std::string readOptions(StringRef text, ArrayRef<CompressionOption> options,
                               MutableArrayRef<double> values) {
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, value] = part.split('=');
    const auto *option = llvm::find_if(
        options, [&, name = name](const CompressionOption &option) { return option.name == name; });
    if (option == options.end())
      return llvm::formatv(
          "has no option '{0}', expected {1}", name,
          options.empty()
              ? "none"
              : llvm::join(llvm::map_range(options, [](const CompressionOption &one) { return one.name; }),
                           ", "));
    double &number = values[option - options.begin()];
    // What is no number compares with nothing.
    if (value.getAsDouble(number) || !(number >= option->least && number <= option->most) ||
        (option->multipleOf && std::fmod(number, option->multipleOf)))
      return ("got " + name + "='" + value + "', expected a " +
              (option->multipleOf == 0   ? "number"
               : option->multipleOf == 1 ? "whole number"
                                         : "multiple of " + shown(option->multipleOf)) +
              " from " + shown(option->least) + " to " + shown(option->most))
          .str();
  }
  return "";
}

std::optional<Compression> dsopt::getCompression(StringRef text, std::string *problem) {
  auto fail = [&](const Twine &what) -> std::optional<Compression> {
    if (problem)
      *problem = what.str();
    return std::nullopt;
  };
  auto [name, rest] = text.split('{');
  auto known = methods().find(name.str());
  if (known == methods().end())
    return fail("is \"" + name + "\", expected one of " + llvm::join(compressionNames(), ", "));
  if (text.contains('{') && !rest.consume_back("}"))
    return fail("is \"" + text + "\", expected NAME{option=N,...}");
  Compression found{known->second, {}};
  for (const CompressionOption &option : found.method.options)
    found.options.push_back(option.byDefault);
  if (std::string wrong = readOptions(rest, found.method.options, found.options); !wrong.empty())
    return fail(name + " " + wrong);
  return found;
}

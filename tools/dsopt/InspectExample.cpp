//===- InspectExample.cpp - lines that would work with a model -------------===//

#include "InspectExample.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace dsopt;
using llvm::StringRef;
using runtime::ParsedOptions;

/// Micro-batches of the example's data.
static constexpr int64_t kMicroBatches = 4;

/// A word of a shell's command line.
static std::string quoted(const std::string &word) {
  auto isPlain = [](char c) { return llvm::isAlnum(c) || StringRef("_./:=,+@%-").contains(c); };
  if (!word.empty() && llvm::all_of(word, isPlain))
    return word;
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

/// An array of random numbers as numpy makes it; empty where numpy has no such type.
static std::string arrayOf(const Inspection::Value &value, bool isList) {
  std::vector<int64_t> shape = *value.sizes;
  if (isList)
    shape.front() *= kMicroBatches;
  else
    shape.insert(shape.begin(), kMicroBatches);
  std::string sizes;
  for (int64_t size : shape)
    sizes += std::to_string(size) + ", ";
  sizes =
      "(" + (shape.size() > 1 ? sizes.substr(0, sizes.size() - 2) : sizes.substr(0, sizes.size() - 1)) + ")";
  StringRef real = llvm::StringSwitch<StringRef>(value.type)
                       .Cases({"f32", "bf16"}, "f4")
                       .Case("f16", "f2")
                       .Case("f64", "f8")
                       .Default("");
  std::string cast = real.empty() ? "" : ".astype('" + real.str() + "')";
  if (value.bound > 0)
    return "r.integers(" + std::to_string(value.bound) + ", size=" + sizes + ")" + cast;
  if (!real.empty())
    return "r.standard_normal(" + sizes + ")" + cast;
  StringRef type(value.type);
  bool isInteger = type.consume_front("i") || type.consume_front("ui") || type.consume_front("si");
  if (!isInteger || !llvm::all_of(type, llvm::isDigit))
    return "";
  return "np.ones(" + sizes + ", '" + (type == "1" ? "?" : "i8") + "')";
}

InspectExample dsopt::makeExample(const Inspection &found, const ParsedOptions &options) {
  std::vector<const Inspection::Value *> arrays;
  for (const Inspection::Value &input : found.inputs)
    if (input.isUsed)
      arrays.push_back(&input);
  auto isTrained = [](const ImportReport::Initializer &row) { return row.use == ImportReport::Trained; };
  auto isTooWide = [](const ImportReport::Initializer &row) { return row.why == kOfDouble; };
  bool trains = llvm::any_of(found.initializers, isTrained) && llvm::none_of(found.initializers, isTooWide);
  const Inspection::Loss *loss = found.losses.empty() || !trains ? nullptr : &found.losses.front();
  if (loss && !loss->option.empty())
    arrays.push_back(&loss->target);
  // Rows, where they are the first dimension of all; else micro-batches one by one.
  bool isList = found.hasRows;
  for (const Inspection::Value *array : arrays) {
    if (!array->sizes)
      return {};
    isList &= !array->sizes->empty() && array->sizes->front() == arrays.front()->sizes->front();
  }
  std::string items, rows;
  for (const Inspection::Value *array : arrays) {
    std::string made = arrayOf(*array, isList);
    if (made.empty())
      return {};
    items += (items.empty() ? "" : ", ") + llvm::formatv("{0}", llvm::json::Value(array->name)).str() + ": " +
             made;
    if (isList && array->shape && !array->shape->empty() &&
        !llvm::all_of(array->shape->front(), llvm::isDigit))
      rows = " -micro-batch-size=" + std::to_string(array->sizes->front());
  }
  bool isEmpty =
      arrays.empty() || (found.losses.empty() && !found.refusals.empty() && found.remaining.empty());
  if (isEmpty)
    return {};
  InspectExample example;
  example.python =
      "import numpy as np; r = np.random.default_rng(0); np.savez('data.npz', **{" + items + "})";
  std::string given;
  for (const char *name : {"dim", "input", "weights", "untie", "freeze", "train", "batchnorm", "dropout"})
    if (options.has(name))
      for (const std::string &value : options.values.at(name))
        given += " " + quoted(std::string("-") + name + "=" + value);
  std::string model = quoted(options.positionals[0]), data = " -data=data.npz" + rows + given;
  if (loss)
    example.train =
        "dsopt train " + model + (loss->option.empty() ? "" : " " + quoted("-loss=" + loss->option)) + data;
  example.predict = "dsopt predict " + model + data;
  for (const std::string &output : found.remaining)
    example.predict += " " + quoted("-outputs=" + output);
  example.predict += " -save-outputs=outputs.npz";
  return example;
}

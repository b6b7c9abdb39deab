//===- ModelOptions.cpp - defaults that a model carries -------------------===//

#include "ModelOptions.h"

#include "Messages.h"

#include "dsopt/Import/ImportONNX.h"
#include "llvm/Support/JSON.h"

using namespace dsopt;
using runtime::Error;
using runtime::OptionRow;
using runtime::ParsedOptions;

/// Whether a model may ask for an option: for what it means, not for files or ranks.
static bool isModels(const OptionRow &row) {
  llvm::StringRef group = row.group, name = row.name;
  return (group == "model" || group == "optimizer" || group == "numerics") && name != "weights" &&
         name != "input";
}

/// The words that say what an object says, as on a command line.
static std::vector<std::string> wordsOf(const llvm::json::Object &object, const std::string &place) {
  std::vector<std::string> words;
  for (const auto &[key, value] : object) {
    std::string name = key.str();
    const OptionRow *row = runtime::findOption(name);
    if (row && !isModels(*row))
      throw Error(1, place + " asks for -" + name +
                         ", expected options of the model, its optimizer or its numerics");
    auto add = [&, &value = value](const llvm::json::Value &one) {
      if (one.kind() == llvm::json::Value::Object || one.kind() == llvm::json::Value::Array ||
          one.kind() == llvm::json::Value::Null)
        throw Error(1, place + " has '" + jsonText(value) + "' for '" + name +
                           "', expected a text, a number, a boolean or a list of them");
      if (auto flag = one.getAsBoolean()) {
        if (*flag)
          words.push_back("-" + name);
      } else {
        words.push_back("-" + name + "=" + jsonText(one));
      }
    };
    if (const llvm::json::Array *list = value.getAsArray())
      for (const llvm::json::Value &one : *list)
        add(one);
    else
      add(value);
  }
  return words;
}

std::vector<ConfiguredOption> dsopt::applyModelOptions(ParsedOptions &options, mlir::MLIRContext &context) {
  if (options.positionals.size() != 1 || !llvm::StringRef(options.positionals[0]).ends_with(".onnx"))
    return {};
  const std::string &path = options.positionals[0];
  Messages messages(context);
  auto text = readModelProperty(path, "dsopt.options", context);
  if (failed(text))
    messages.fail("cannot read " + path);
  if (text->empty())
    return {};
  std::string place = "dsopt.options of " + path;
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(*text);
  const llvm::json::Object *object = json ? json->getAsObject() : nullptr;
  if (!object)
    throw Error(1, place + " is no JSON object" + (json ? "" : ": " + llvm::toString(json.takeError())));
  std::vector<std::string> words = wordsOf(*object, place);
  std::vector<const char *> arguments{"dsopt"};
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  ParsedOptions said;
  try {
    said = runtime::parseOptions(arguments.size(), arguments.data(), runtime::Tool::Compiler);
  } catch (const Error &error) {
    throw Error(1, place + ": " + error.what());
  }
  std::vector<ConfiguredOption> configured;
  for (auto &[name, values] : said.values) {
    bool isList = runtime::findOption(name)->repeatable();
    if (options.has(name) && !isList)
      continue;
    for (const std::string &value : values)
      configured.push_back({name, value, path});
    std::vector<std::string> &present = options.values[name];
    present.insert(present.begin(), values.begin(), values.end());
  }
  return configured;
}

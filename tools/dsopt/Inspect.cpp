//===- Inspect.cpp - what dsopt inspect prints ------------------------------===//

#include "Inspect.h"

#include "InspectExample.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace dsopt;
using llvm::raw_ostream;
using llvm::StringRef;
using runtime::ParsedOptions;

/// Initializers that text lists one by one, and names that it shows of each kind of more.
static constexpr size_t kListed = 24, kShown = 3;

static std::string counted(int64_t count, StringRef what) {
  return std::to_string(count) + " " + what.str() + (count == 1 ? "" : "s");
}

static std::string titleOf(const Inspection &found) {
  std::string text;
  for (auto &[domain, version] : found.opsets)
    text += (text.empty() ? "opset " : ", ") + (domain.empty() ? "" : domain + " ") + std::to_string(version);
  text += ", IR version " + std::to_string(found.irVersion);
  if (!found.producer.empty())
    text += ", by " + found.producer;
  text += "; " + counted(found.nodes, "node");
  if (!found.functions.empty())
    text += ", " + counted(found.functions.size(), "function") + " inlined";
  return text;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static void printValues(llvm::ArrayRef<Inspection::Value> values, raw_ostream &os) {
  size_t name = 0, type = 0;
  for (const Inspection::Value &value : values) {
    name = std::max(name, value.name.size());
    type = std::max(type, value.type.size());
  }
  for (const Inspection::Value &value : values) {
    os << "  " << llvm::left_justify(value.name, name) << "  " << llvm::left_justify(value.type, type) << "  "
       << (value.shape ? "[" + llvm::join(*value.shape, ", ") + "]" : "of no declared shape");
    if (!value.isUsed)
      os << (value.isGiven ? "  (bound by -input)" : "  (no output needs it)");
    else if (value.bound)
      os << "  below " << value.bound;
    os << "\n";
  }
}

static void printSymbols(const Inspection &found, raw_ostream &os) {
  llvm::MapVector<StringRef, bool> symbols; ///< and whether it is rows
  for (const Inspection::Value &input : found.inputs)
    for (size_t axis = 0; input.isUsed && input.shape && axis < input.shape->size(); ++axis)
      if (StringRef size = (*input.shape)[axis]; !llvm::all_of(size, llvm::isDigit))
        symbols.try_emplace(size, found.hasRows && axis == 0);
  if (symbols.empty())
    return;
  os << "sizes       that the model leaves open\n";
  for (auto &[symbol, isRows] : symbols) {
    os << "  " << symbol << ": " << (isRows ? "rows of a micro-batch, -micro-batch-size=B" : "the data's")
       << ", or -dim=" << symbol << "=N";
    if (auto tried = found.tried.find(symbol.str()); found.isTried && tried != found.tried.end())
      os << " (looked at with " << tried->second << ")";
    os << "\n";
  }
}

static void printOperators(const Inspection &found, raw_ostream &os) {
  size_t width = 0;
  for (auto &[name, op] : found.operators)
    width = std::max(width, name.size());
  os << "operators   " << found.operators.size() << "\n";
  for (auto &[name, op] : found.operators)
    os << "  " << llvm::left_justify(name, width) << llvm::format("%8lld", (long long)op.nodes)
       << (op.isAvailable ? "" : "  not available") << "\n";
}

/// Each initializer, or where they are many how many of each use there are and for which reason.
static void printParameters(llvm::ArrayRef<ImportReport::Initializer> rows, raw_ostream &os) {
  os << "parameters  as a loss would train them\n";
  if (rows.size() <= kListed) {
    std::string table;
    llvm::raw_string_ostream stream(table);
    listParameters(rows, /*json=*/false, stream);
    for (StringRef line : llvm::split(StringRef(table).rtrim(), '\n'))
      os << "  " << line << "\n";
    return;
  }
  struct Group {
    std::vector<std::string> names;
    int64_t elements = 0, bytes = 0;
  };
  std::map<std::pair<ImportReport::Use, std::string>, Group> groups;
  int64_t trained = 0, elements = 0;
  for (const ImportReport::Initializer &row : rows) {
    Group &group = groups[{row.use, row.why + (row.inDoubt ? " (in doubt)" : "")}];
    group.names.push_back(row.name);
    group.elements += row.type.getNumElements();
    group.bytes += graph::numBytes(row.type);
    if (row.use == ImportReport::Trained) {
      ++trained;
      elements += row.type.getNumElements();
    }
  }
  for (auto &[key, group] : groups) {
    os << "  " << counted(group.names.size(), "initializer") << " " << nameOf(key.first) << " (" << key.second
       << "): " << group.elements << " elements, " << group.bytes << " bytes: ";
    size_t shown = std::min(kShown, group.names.size());
    os << llvm::join(group.names.begin(), group.names.begin() + shown, ", ")
       << (shown < group.names.size() ? ", ..." : "") << "\n";
  }
  os << "  " << trained << " of " << rows.size() << " initializers are trained: " << elements
     << " elements; -inspect=json has each of them\n";
}

static void printLosses(const Inspection &found, raw_ostream &os) {
  os << "losses      "
     << (!found.losses.empty() ? "that fit\n"
         : found.isTried       ? "none is known that fits\n"
                               : "not known\n");
  for (const Inspection::Loss &loss : found.losses) {
    os << "  " << (loss.option.empty() ? "its own" : "-loss=" + loss.option) << ": " << loss.why;
    if (!loss.option.empty()) {
      os << "; adds the input " << loss.target.name << ", " << loss.target.type << " [";
      llvm::interleaveComma(*loss.target.sizes, os);
      os << "]";
      if (loss.target.bound)
        os << (loss.target.type == "i64" ? " below " + std::to_string(loss.target.bound) : " of 0 and 1");
    }
    os << "\n";
  }
}

static void printMissing(const Inspection &found, raw_ostream &os) {
  for (const Inspection::Weights &file : found.weights)
    os << "weights     " << counted(file.initializers, "initializer") << " in " << file.file
       << (file.isThere ? "" : ", which is missing: -weights=DIR says where it lies") << "\n";
  for (const std::string &note : found.notes)
    os << "note        " << note << "\n";
  if (!found.refusals.empty())
    os << "refused     " << "by what it needs\n";
  for (const Inspection::Refusal &refusal : found.refusals) {
    os << "  ";
    if (refusal.nodes)
      os << refusal.what << ", " << counted(refusal.nodes, "node") << ", ";
    else if (!refusal.what.empty())
      os << refusal.what << ": ";
    os << refusal.message << "\n";
  }
  if (!found.remaining.empty())
    os << "  outputs that need nothing of that: " << llvm::join(found.remaining, ", ") << "\n";
  if (found.isTried)
    return;
  os << "not tried   whether more is refused is not known, since";
  for (const Inspection::Value &input : found.inputs)
    if (input.isUsed && !input.shape)
      os << " input '" << input.name << "' has no declared shape (-dim=" << input.name << ":0=N and so on);";
  for (const Inspection::Weights &file : found.weights)
    if (!file.isThere)
      os << " constants are in the missing " << llvm::sys::path::filename(file.file) << ";";
  os << " no node was looked at\n";
}

static void printText(const Inspection &found, const ParsedOptions &options, raw_ostream &os) {
  os << "model       " << llvm::sys::path::filename(options.positionals[0]) << ": " << titleOf(found) << "\n";
  os << "inputs      " << found.inputs.size() << "\n";
  printValues(found.inputs, os);
  os << "outputs     " << found.outputs.size() << "\n";
  printValues(found.outputs, os);
  printSymbols(found, os);
  printOperators(found, os);
  printParameters(found.initializers, os);
  printLosses(found, os);
  printMissing(found, os);
  InspectExample example = makeExample(found, options);
  if (example.python.empty())
    return;
  os << "example     with random numbers, by Python:\n  " << example.python << "\n";
  for (const std::string &line : {example.train, example.predict})
    if (!line.empty())
      os << "  " << line << "\n";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace {
class Writer {
public:
  explicit Writer(raw_ostream &os) : json(os, 1) {}
  void write(const Inspection &found, const ParsedOptions &options);

private:
  void text(StringRef key, const std::string &value) { json.attribute(key, llvm::json::fixUTF8(value)); }
  void list(StringRef key, llvm::ArrayRef<std::string> values) {
    json.attributeArray(key, [&] {
      for (const std::string &value : values)
        json.value(llvm::json::fixUTF8(value));
    });
  }
  /// Sizes are numbers, symbols are text.
  void shape(const Inspection::Value &value);
  void fields(const Inspection::Value &value, bool isInput);
  void values(StringRef key, llvm::ArrayRef<Inspection::Value> values, bool areInputs);
  void findings(const Inspection &found);

  llvm::json::OStream json;
};
} // namespace

void Writer::shape(const Inspection::Value &value) {
  if (!value.shape)
    return json.attribute("shape", nullptr);
  json.attributeArray("shape", [&] {
    for (const std::string &size : *value.shape) {
      int64_t number;
      if (StringRef(size).getAsInteger(10, number))
        json.value(llvm::json::fixUTF8(size));
      else
        json.value(number);
    }
  });
}

void Writer::fields(const Inspection::Value &value, bool isInput) {
  text("name", value.name);
  text("type", value.type);
  if (isInput || value.shape)
    shape(value);
  if (value.sizes)
    json.attribute("sizes", llvm::json::Array(*value.sizes));
  if (value.bound)
    json.attribute("below", value.bound);
}

void Writer::values(StringRef key, llvm::ArrayRef<Inspection::Value> values, bool areInputs) {
  json.attributeArray(key, [&] {
    for (const Inspection::Value &value : values)
      json.object([&] {
        fields(value, true);
        if (areInputs)
          json.attribute("used", value.isUsed);
      });
  });
}

void Writer::findings(const Inspection &found) {
  json.attributeArray("losses", [&] {
    for (const Inspection::Loss &loss : found.losses)
      json.object([&] {
        text("loss", loss.option);
        text("why", loss.why);
        if (!loss.option.empty())
          json.attributeObject("adds", [&] { fields(loss.target, false); });
      });
  });
  json.attributeArray("weights", [&] {
    for (const Inspection::Weights &file : found.weights)
      json.object([&] {
        text("file", file.file);
        json.attribute("initializers", file.initializers);
        json.attribute("bytes", file.bytes);
        json.attribute("missing", !file.isThere);
      });
  });
  list("notes", found.notes);
  json.attributeArray("refused", [&] {
    for (const Inspection::Refusal &refusal : found.refusals)
      json.object([&] {
        text("what", refusal.what);
        text("family", refusal.family);
        text("message", refusal.message);
        json.attribute("nodes", refusal.nodes);
      });
  });
  list("remaining_outputs", found.remaining);
  json.attribute("tried", found.isTried);
}

void Writer::write(const Inspection &found, const ParsedOptions &options) {
  json.object([&] {
    text("model", options.positionals[0]);
    json.attribute("ir_version", found.irVersion);
    json.attributeObject("opsets", [&] {
      for (auto &[domain, version] : found.opsets)
        json.attribute(domain.empty() ? "ai.onnx" : domain, version);
    });
    text("producer", found.producer);
    json.attribute("nodes", found.nodes);
    values("inputs", found.inputs, true);
    values("outputs", found.outputs, false);
    json.attributeObject("sizes", [&] {
      for (auto &[symbol, size] : found.tried)
        json.attribute(llvm::json::fixUTF8(symbol), size);
    });
    json.attributeObject("operators", [&] {
      for (auto &[name, op] : found.operators)
        json.attributeObject(name, [&, &op = op] {
          json.attribute("nodes", op.nodes);
          json.attribute("available", op.isAvailable);
        });
    });
    json.attributeObject("functions", [&] {
      for (auto &[name, calls] : found.functions)
        json.attribute(name, calls);
    });
    json.attributeBegin("parameters");
    writeParameters(found.initializers, json);
    json.attributeEnd();
    findings(found);
    InspectExample example = makeExample(found, options);
    json.attributeObject("example", [&] {
      text("python", example.python);
      text("train", example.train);
      text("predict", example.predict);
    });
  });
}

void dsopt::printInspection(const Inspection &found, const ParsedOptions &options, raw_ostream &os) {
  if (options.text("inspect") != "json")
    return printText(found, options, os);
  Writer(os).write(found, options);
  os << "\n";
}

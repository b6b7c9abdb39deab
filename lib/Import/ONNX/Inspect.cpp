//===- Inspect.cpp - what is in a model -------------------------------------===//
//
// What the file says is read as it is. What would become of it is found out by importing it, with sizes for
// its symbols that the options give or that are tried: no number is computed, so that costs little.
//
//===----------------------------------------------------------------------===//

#include "Declarations.h"
#include "FittingLosses.h"
#include "InputShapes.h"
#include "MeasuredValues.h"
#include "OpTable.h"
#include "RefusedOperators.h"
#include "Scopes.h"

#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Probabilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Rows of a micro-batch that are tried.
static constexpr int64_t kRows = 4;
/// What else is tried, in turn: along the axes of images, of sequences of ids, and of all else.
static constexpr struct {
  int64_t image, ids, other;
} kTried[] = {{64, 16, 16}, {224, 128, 128}, {640, 64, 512}, {32, 256, 16000}};

namespace {
class Inspector {
public:
  Inspector(ModelFile &file, const ImportOptions &options, ModuleOp module)
      : file(file), options(options), module(module), location(module.getLoc()),
        initializers(file, options, module) {}

  FailureOr<Inspection> run();

private:
  /// What is wrong with a value's type, as a refusal.
  void refuse(std::string what, std::string family, std::string message, int64_t nodes = 0);
  Inspection::Value declared(const onnx::ValueInfoProto &info, StringRef what);
  LogicalResult readValues();
  void readVersions();
  void readOperators();
  void readWeights();
  void findRows();
  bool guessSizes(size_t attempt);
  bool mayBeTried() const;
  bool refuseInputs();
  bool tryImport();
  void sortRefused();
  void noteUntrained();

  ModelFile &file;
  const ImportOptions &options;
  ModuleOp module;
  Location location;
  Initializers initializers;
  Inspection found;
  std::vector<std::string> wanted;
  /// What the wanted outputs need.
  std::vector<const onnx::NodeProto *> nodes;
  llvm::StringSet<> needed;
  /// Of what is tried, what nothing says.
  std::map<std::string, int64_t> guesses;
  /// Initializers that are in no file.
  llvm::StringSet<> absent;
  /// Of the last import that was tried.
  std::vector<std::string> errors;
  /// Of the outputs that were imported.
  llvm::StringMap<KnownProbabilities> probabilities;
};
} // namespace

void Inspector::refuse(std::string what, std::string family, std::string message, int64_t nodes) {
  found.refusals.push_back({std::move(what), std::move(family), std::move(message), nodes});
}

/// ONNX's types by MLIR's names, and others by ONNX's.
static std::string typeName(int64_t type, Location location) {
  ScopedDiagnosticHandler quiet(location.getContext(), [](Diagnostic &) { return success(); });
  std::string name;
  llvm::raw_string_ostream stream(name);
  if (Type element = elementType(type, "", location, Types::WithSmall))
    stream << element;
  else if (onnx::TensorProto::DataType_IsValid(type))
    stream << StringRef(onnx::TensorProto::DataType_Name((onnx::TensorProto::DataType)type)).lower();
  else
    stream << "type " << type;
  return name;
}

Inspection::Value Inspector::declared(const onnx::ValueInfoProto &info, StringRef what) {
  Inspection::Value value{info.name(), "", {}, {}};
  if (!info.type().has_tensor_type()) {
    value.type = info.type().has_sequence_type()   ? "sequence"
                 : info.type().has_optional_type() ? "optional"
                 : info.type().has_map_type()      ? "map"
                                                   : "";
    return value;
  }
  const onnx::TypeProto_Tensor &tensor = info.type().tensor_type();
  value.type = tensor.elem_type() ? typeName(tensor.elem_type(), location) : "";
  if (!tensor.has_shape())
    return value;
  value.shape.emplace();
  for (const auto &dimension : tensor.shape().dim())
    value.shape->push_back(!dimension.dim_param().empty() ? dimension.dim_param()
                           : dimension.has_dim_value() && dimension.dim_value() >= 0
                               ? std::to_string(dimension.dim_value())
                               : "?");
  return value;
}

void Inspector::readVersions() {
  found.irVersion = file.writtenIrVersion();
  for (const onnx::OperatorSetIdProto &set : file.model().opset_import())
    found.opsets[isOnnx(set.domain()) ? "" : set.domain()] = file.writtenOpset(set.domain());
  found.producer = file.model().producer_name();
  if (!file.model().producer_version().empty())
    found.producer += " " + file.model().producer_version();
}

LogicalResult Inspector::readValues() {
  if (failed(checkDuplicates(file, location)) ||
      failed(findPredicted(file.graph(), options, wanted, location)))
    return failure();
  auto isGiven = [&](const std::string &name) {
    bool isInput = llvm::any_of(file.graph().input(), [&](auto &input) { return input.name() == name; });
    if (file.findInitializer(name) < 0 && !isInput)
      return false;
    needed.insert(name);
    return true;
  };
  auto ordered = orderNodes(
      file.graph(), wanted, isGiven, [&](const onnx::NodeProto &node) { return file.describe(node); },
      location);
  if (failed(ordered))
    return failure();
  nodes = std::move(*ordered);
  for (const onnx::ValueInfoProto &input : file.graph().input()) {
    if (file.findInitializer(input.name()) >= 0)
      continue;
    Inspection::Value value = declared(input, "input");
    value.isGiven = llvm::any_of(options.inputs, [&](auto &given) { return given.first == input.name(); });
    value.isUsed = needed.contains(input.name()) && !value.isGiven;
    found.inputs.push_back(std::move(value));
  }
  for (const onnx::ValueInfoProto &output : file.graph().output())
    found.outputs.push_back(declared(output, "output"));
  return success();
}

void Inspector::readOperators() {
  for (const auto &[name, count] : file.operators()) {
    found.operators[name].nodes = count;
    found.nodes += count;
  }
  found.functions = file.inlinedFunctions();
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    if (!findOp(node.domain(), node.op_type()))
      found.operators[operatorName(node)].isAvailable = false;
  });
}

void Inspector::readWeights() {
  std::map<std::string, Inspection::Weights> files;
  for (auto [index, tensor] : llvm::enumerate(file.graph().initializer())) {
    const Extent &extent = file.extent(index);
    if (!extent.isExternal)
      continue;
    Inspection::Weights &weights = files[extent.file];
    if (weights.file.empty()) {
      weights.file = llvm::sys::path::remove_leading_dotslash(file.pathOf(extent)).str();
      weights.isThere = llvm::sys::fs::exists(weights.file);
    }
    ++weights.initializers;
    weights.bytes += std::max<int64_t>(0, extent.bytes);
    if (!weights.isThere)
      absent.insert(tensor.name());
  }
  for (auto &[name, weights] : files)
    found.weights.push_back(std::move(weights));
}

/// Rows are the first dimension of all inputs and no other one.
void Inspector::findRows() {
  llvm::StringSet<> firsts, others;
  for (const Inspection::Value &input : found.inputs)
    if (input.isUsed && input.shape) {
      for (auto [axis, size] : llvm::enumerate(*input.shape))
        (axis ? others : firsts).insert(size);
      found.hasRows &= !input.shape->empty();
    }
  auto isNumber = [](StringRef size) { return llvm::all_of(size, llvm::isDigit); };
  int64_t numbers = 0;
  for (const auto &first : firsts) {
    numbers += isNumber(first.getKey());
    found.hasRows &= isNumber(first.getKey()) || !others.contains(first.getKey());
  }
  found.hasRows &= !firsts.empty() && (numbers == 0 || firsts.size() == 1);
}

/// Fills in the sizes of inputs, those that nothing gives with what is tried in this attempt; false where the
/// rank of one that is needed is unknown.
bool Inspector::guessSizes(size_t attempt) {
  std::map<std::string, int64_t> &sizes = found.tried;
  sizes = options.dims;
  guesses.clear();
  bool areKnown = true;
  for (const Inspection::Value &input : found.inputs) {
    if (!input.isUsed)
      continue;
    if (!input.shape) {
      areKnown = false;
      continue;
    }
    auto data = options.inputShapes.find(input.name);
    size_t rank = input.shape->size();
    for (auto [axis, symbol] : llvm::enumerate(*input.shape)) {
      if (!llvm::all_of(symbol, llvm::isDigit) && !sizes.count(symbol)) {
        bool isList = data != options.inputShapes.end() && data->second.size() == rank && axis == 0;
        if (data != options.inputShapes.end() && data->second.size() >= rank && !isList)
          sizes[symbol] = data->second[data->second.size() - rank + axis];
        else if (axis == 0)
          sizes[symbol] = options.microBatchSize ? options.microBatchSize : kRows;
        else
          guesses.try_emplace(symbol, rank >= 4                             ? kTried[attempt].image
                                      : StringRef(input.type).contains('i') ? kTried[attempt].ids
                                                                            : kTried[attempt].other);
      }
    }
  }
  // What one input's first axis says counts for others' axes.
  for (auto &[symbol, size] : sizes)
    guesses.erase(symbol);
  sizes.insert(guesses.begin(), guesses.end());
  return areKnown;
}

/// Constants have to be read, whatever is done with weights.
bool Inspector::mayBeTried() const {
  for (auto [index, tensor] : llvm::enumerate(file.graph().initializer()))
    if (absent.contains(tensor.name()) && needed.contains(tensor.name()))
      if (RankedTensorType type = possibleType(tensor, location.getContext());
          type && initializers.isConstant(index, type))
        return false;
  return true;
}

static bool isNoTensor(const Inspection::Value &value) {
  return llvm::is_contained({"sequence", "optional", "map"}, value.type);
}

/// Refuses inputs that are no tensors of numbers; whether there are none.
bool Inspector::refuseInputs() {
  for (const Inspection::Value &input : found.inputs)
    if (input.isUsed && input.type == "string")
      refuse("input '" + input.name + "'", "text", remedyForText().str());
    else if (input.isUsed && isNoTensor(input))
      refuse("input '" + input.name + "'", "other", "it is no tensor: export a model that takes tensors");
  return found.refusals.empty();
}

/// Imports the wanted outputs; what is refused is in `errors` where that fails.
bool Inspector::tryImport() {
  ImportOptions tried = options;
  ImportReport report;
  tried.returns = Returns::Predictions;
  if (!found.remaining.empty())
    tried.predicted = found.remaining;
  tried.dims = found.tried;
  tried.inputShapes.clear();
  tried.paddedDims.clear();
  tried.microBatchSize = 0;
  tried.weights = WeightFiles::Ignore;
  tried.triesAll = true;
  tried.report = &report;
  errors.clear();
  found.notes.clear();
  ScopedDiagnosticHandler handler(location.getContext(), [&](Diagnostic &diagnostic) {
    (diagnostic.getSeverity() == DiagnosticSeverity::Error ? errors : found.notes)
        .push_back(diagnostic.str());
    return success();
  });
  FailureOr<OwningOpRef<ModuleOp>> imported = importONNX(*location.getContext(), tried);
  if (failed(imported))
    return false;
  auto forward = (*imported)->lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  auto sizesOf = [](Type type) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    return std::vector<int64_t>(shape.begin(), shape.end());
  };
  for (Inspection::Value &input : found.inputs) {
    input.isUsed = false;
    for (BlockArgument argument : forward.getArguments()) {
      unsigned i = argument.getArgNumber();
      if (forward.getArgAttrOfType<StringAttr>(i, graph::kNameAttr).getValue() != input.name)
        continue;
      input.isUsed = true;
      input.sizes = sizesOf(argument.getType());
      if (auto bound = forward.getArgAttrOfType<IntegerAttr>(i, graph::kBoundAttr))
        input.bound = bound.getInt();
    }
  }
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    for (Inspection::Value &output : found.outputs)
      if (auto name = forward.getResultAttrOfType<StringAttr>(i, graph::kPredictionAttr);
          name.getValue() == output.name) {
        Type element = getElementTypeOrSelf(forward.getResultTypes()[i]);
        if (output.type.empty())
          llvm::raw_string_ostream(output.type) << element;
        output.sizes = sizesOf(forward.getResultTypes()[i]);
        auto known = graph::probabilitiesOf(forward.front().getTerminator()->getOperand(i));
        bool isSigmoid = known && known->kind == graph::Probabilities::Sigmoid;
        if (known && !known->between && (isSigmoid || known->axis))
          probabilities[output.name] = {isSigmoid, known->kind == graph::Probabilities::LogSoftmax,
                                        known->axis.value_or(0)};
      }
  found.initializers = std::move(report.initializers);
  return true;
}

/// Says what is refused, by operator or by node, and which outputs remain.
void Inspector::sortRefused() {
  struct Kind {
    int64_t nodes = 0;
    std::string first;
    const RefusedFamily *family;
  };
  std::map<std::string, Kind> kinds;
  std::vector<std::string> others = errors;
  std::set<std::string> refused;
  for (const Inspection::Value &output : found.outputs)
    if (llvm::is_contained(wanted, output.name) && isNoTensor(output)) {
      refuse("output '" + output.name + "'", "other", "it is a " + output.type + ", no tensor");
      std::string said = "output '" + output.name + "' is no tensor";
      llvm::erase_if(others, [&](StringRef error) { return error.starts_with(said); });
      refused.insert(output.name);
    }
  for (const onnx::NodeProto *node : nodes) {
    auto isRefused = [&](const std::string &name) { return refused.count(name) > 0; };
    std::vector<const onnx::NodeProto *> missing;
    auto look = [&](const onnx::NodeProto &one) {
      if (metadataOf(one, kProblemKey).empty() && !findOp(one.domain(), one.op_type()))
        missing.push_back(&one);
    };
    look(*node);
    forEachSubgraph(*node, [&](const onnx::GraphProto &graph) { forEachNode(graph, look); });
    std::string place = file.describe(*node);
    auto isHere = [&](const std::string &error) { return StringRef(error).starts_with(place); };
    bool isPassed = llvm::any_of(readsOf(*node), isRefused), isWrong = llvm::any_of(errors, isHere);
    // A branch that is not taken may have any operator.
    if (found.isTried && !isWrong && !isPassed)
      missing.clear();
    for (const std::string &error : errors)
      if (isHere(error) && missing.empty())
        refuse(operatorName(*node), familyOfChoice(node->op_type()).str(),
               "'" + nodeName(*node) + "': " + StringRef(error).substr(place.size()).ltrim(": ").str(), 1);
    llvm::erase_if(others, isHere);
    for (const onnx::NodeProto *one : missing) {
      Kind &kind = kinds[operatorName(*one)];
      if (kind.nodes++ == 0)
        kind.first = nodeName(*one);
      kind.family = &familyOf(one->domain(), one->op_type());
    }
    if (isPassed || isWrong || !missing.empty())
      refused.insert(node->output().begin(), node->output().end());
  }
  for (const auto &[name, kind] : kinds)
    refuse(name, kind.family->name.str(), "first '" + kind.first + "': " + kind.family->remedy.str(),
           kind.nodes);
  for (const std::string &error : others)
    refuse("", "", error);
  if (found.refusals.empty())
    return;
  for (const std::string &output : wanted)
    if (!refused.count(output) && others.empty())
      found.remaining.push_back(output);
}

void Inspector::noteUntrained() {
  bool isDouble = false, isTrained = false;
  for (const ImportReport::Initializer &row : found.initializers) {
    isDouble |= row.why == kOfDouble;
    isTrained |= row.use == ImportReport::Trained;
  }
  if (isDouble)
    found.notes.push_back(
        "weights of f64 are not trained: convert the model (model.float() in PyTorch), or keep "
        "them as they are with -freeze=NAME");
  else if (!isTrained && found.refusals.empty())
    found.notes.push_back("nothing would be trained, unless -train=NAME says what");
}

/// What the file declares, with the symbols' values; nothing where it leaves something open.
static std::optional<std::vector<int64_t>> sizesOf(const Inspection::Value &value,
                                                   const std::map<std::string, int64_t> &symbols) {
  if (!value.shape)
    return std::nullopt;
  std::vector<int64_t> sizes;
  for (const std::string &dimension : *value.shape) {
    auto symbol = symbols.find(dimension);
    int64_t size = 0;
    if (symbol == symbols.end() && StringRef(dimension).getAsInteger(10, size))
      return std::nullopt;
    sizes.push_back(symbol == symbols.end() ? size : symbol->second);
  }
  return sizes;
}

FailureOr<Inspection> Inspector::run() {
  nameOpenDimensions(file, options);
  readVersions();
  readOperators();
  readWeights();
  if (failed(readValues()) || failed(initializers.readRules()))
    return failure();
  findRows();
  bool isWhole = false;
  if (guessSizes(0) && mayBeTried() && refuseInputs()) {
    isWhole = tryImport();
    std::vector<std::string> first = errors;
    for (size_t attempt = 1; !isWhole && !guesses.empty() && attempt < std::size(kTried); ++attempt) {
      guessSizes(attempt);
      isWhole = tryImport();
    }
    if (!isWhole) {
      guessSizes(0);
      errors = first;
      for (auto &[symbol, guess] : guesses)
        for (std::string &error : errors)
          error += "; tried with " + symbol + "=" + std::to_string(guess) + ", -dim=" + symbol +
                   "=N gives its size";
    }
    found.isTried = isWhole || llvm::any_of(errors, [](StringRef error) {
                      return error.starts_with("node '") || error.starts_with("output '");
                    });
  }
  std::vector<std::string> said = found.notes;
  sortRefused();
  // What does not need what is refused is looked at again, alone.
  if (!found.remaining.empty() && found.isTried)
    isWhole = tryImport();
  found.notes = said;
  if (!isWhole) {
    found.initializers = initializers.foresee(needed);
    for (std::vector<Inspection::Value> *values : {&found.inputs, &found.outputs})
      for (Inspection::Value &value : *values)
        value.sizes = sizesOf(value, found.tried);
  }
  noteUntrained();
  if (found.refusals.empty() || !found.remaining.empty()) {
    std::vector<Inspection::Value> usable;
    for (const Inspection::Value &output : found.outputs)
      if (llvm::is_contained(found.refusals.empty() ? wanted : found.remaining, output.name))
        usable.push_back(output);
    found.losses = fittingLosses(file, usable, probabilities);
  }
  return std::move(found);
}

} // namespace dsopt::onnx_import

using namespace dsopt;

FailureOr<Inspection> dsopt::inspectONNX(MLIRContext &context, const ImportOptions &options) {
  Location location = NameLoc::get(StringAttr::get(&context, options.path));
  auto file = onnx_import::ModelFile::open(options.path, options.weightsFolder, location);
  if (!file || failed(onnx_import::untieInitializers(*file, options.untie, location)))
    return failure();
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  return onnx_import::Inspector(*file, options, *module).run();
}

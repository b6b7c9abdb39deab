//===- Importer.cpp - from a model's nodes to @forward ---------------------===//

#include "AttachedLoss.h"
#include "BoundInputs.h"
#include "Declarations.h"
#include "FreezeUnreached.h"
#include "InputShapes.h"
#include "MarkIndices.h"
#include "MeasuredValues.h"
#include "OpTable.h"
#include "PositionInputs.h"
#include "RefusedOperators.h"
#include "Scopes.h"
#include "UpgradeOperators.h"

#include "dsopt/Dialect/Graph/Statistics.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Nodes that branches and iterations of loops may be in all.
static constexpr size_t kMaxUnrolled = 1 << 16;

namespace {
class Importer : SubgraphBuilder {
public:
  Importer(ModelFile &file, const ImportOptions &options, ModuleOp module)
      : file(file), options(options), module(module), location(module.getLoc()),
        emitter(OpBuilder(module.getContext()), location), initializers(file, options, module) {}

  LogicalResult run();

private:
  InFlightDiagnostic error() { return emitError(location); }
  /// The node's name, and behind it the module and line that it comes from.
  Location placeOf(const onnx::NodeProto &node) const {
    auto named = [&](const std::string &name, Location behind) -> Location {
      return NameLoc::get(StringAttr::get(location.getContext(), name), behind);
    };
    std::string place = nodePlace(node);
    return named(nodeName(node), place.empty() ? location : named(place, location));
  }

  LogicalResult indexNodes();
  LogicalResult chooseLoss();
  LogicalResult orderNodes();
  void chooseModelType();
  LogicalResult makeFunction();
  LogicalResult bindInitializers(ArrayRef<std::string> names);
  LogicalResult bindCaptured(const onnx::NodeProto &node) override { return bindInitializers(readsOf(node)); }
  LogicalResult buildNodes(ArrayRef<const onnx::NodeProto *> ordered);
  LogicalResult buildNode(const onnx::NodeProto &node);
  FailureOr<SmallVector<Binding>> buildSubgraph(const onnx::GraphProto &graph,
                                                ArrayRef<Binding> inputs) override;
  FailureOr<mlir::Value> buildLoss();
  mlir::Value readBinding(StringRef name);
  FailureOr<SmallVector<mlir::Value>> buildOutputs();
  LogicalResult checkLoss(mlir::Value &loss);
  void addStatistics(SmallVectorImpl<mlir::Value> &results);
  LogicalResult addMeasured(SmallVectorImpl<mlir::Value> &results);
  LogicalResult finish(ArrayRef<mlir::Value> results);
  void fillReport(ImportReport &report);
  const onnx::ValueInfoProto *findInput(StringRef name) const;

  ModelFile &file;
  const ImportOptions &options;
  ModuleOp module;
  Location location;
  Emitter emitter;
  Initializers initializers;
  Bindings bindings;
  Loss loss;
  func::FuncOp function;
  /// What is computed: the loss, or all outputs.
  std::vector<std::string> outputs;
  /// What metrics are made of, beside the loss.
  std::vector<MeasuredValue> measured;
  /// Which node computes a value.
  llvm::StringMap<int> producers;
  /// The nodes that the loss needs, operands first.
  std::vector<const onnx::NodeProto *> nodes;
  llvm::StringSet<> needed;
  /// What only branches take. What is wrong with it is said where it is read.
  llvm::StringSet<> optional;
  /// Nodes of subgraphs built so far.
  size_t unrolled = 0;
};
} // namespace

const onnx::ValueInfoProto *Importer::findInput(StringRef name) const {
  for (const onnx::ValueInfoProto &input : file.graph().input())
    if (input.name() == name && file.findInitializer(name) < 0)
      return &input;
  return nullptr;
}

LogicalResult Importer::indexNodes() {
  for (auto [i, node] : llvm::enumerate(file.graph().node()))
    for (const std::string &output : node.output()) {
      if (output.empty())
        continue;
      if (!producers.try_emplace(output, i).second || file.findInitializer(output) >= 0 || findInput(output))
        return error() << file.describe(node) << " computes '" << output
                       << "', which the model defines already";
    }
  return success();
}

LogicalResult Importer::chooseLoss() {
  if (options.returns != Returns::Loss) {
    if (failed(findPredicted(file.graph(), options, outputs, location)))
      return failure();
    return outputs.empty() ? error() << "the model has no outputs, expected one or more" : success();
  }
  auto listed = [&] {
    std::string names;
    for (const onnx::ValueInfoProto &output : file.graph().output())
      names += (names.empty() ? "" : ", ") + output.name();
    return names.empty() ? "none" : names;
  };
  auto exists = [&](StringRef name) {
    return producers.count(name) || file.findInitializer(name) >= 0 || findInput(name);
  };
  StringRef text = options.loss;
  for (auto [prefix, kind] : {std::pair<StringRef, Loss::Kind>("cross-entropy:", Loss::CrossEntropy),
                              std::pair<StringRef, Loss::Kind>("mse:", Loss::MeanSquare)}) {
    if (!text.consume_front(prefix))
      continue;
    loss.kind = kind;
    auto [output, target] = text.rsplit(',');
    if (output.empty() || target.empty())
      return error() << "-loss=" << options.loss << " is not understood, expected " << prefix
                     << (kind == Loss::CrossEntropy ? "LOGITS,LABELS" : "OUT,TARGET");
    loss.output = output.str();
    loss.target = target.str();
  }
  if (loss.kind == Loss::Value && !text.empty())
    loss.output = text.str();
  if (loss.output.empty()) {
    std::vector<std::string> scalars;
    for (const onnx::ValueInfoProto &output : file.graph().output()) {
      if (output.name() == "loss")
        loss.output = "loss";
      else if (isScalarFloat(output))
        scalars.push_back(output.name());
    }
    if (loss.output.empty() && scalars.size() != 1)
      return error() << "the model has no output named 'loss' and " << scalars.size()
                     << " other scalar float outputs; name one with -loss=OUTPUT, or attach a loss with "
                        "-loss=cross-entropy:LOGITS,LABELS or -loss=mse:OUT,TARGET (outputs: "
                     << listed() << ")";
    if (loss.output.empty())
      loss.output = scalars.front();
  }
  if (!exists(loss.output))
    return error() << "the loss is to be '" << loss.output
                   << "', which the model does not compute (outputs: " << listed() << ")";
  outputs.push_back(loss.output);
  if (failed(findMeasured(file.graph(), options, loss.output, measured, location)))
    return failure();
  auto unknown = llvm::find_if(
      measured, [&](const MeasuredValue &value) { return !exists(value.name) && value.name != loss.target; });
  if (unknown != measured.end())
    return error() << "-metric compares '" << unknown->name << "', which is not in the model";
  return success();
}

LogicalResult Importer::orderNodes() {
  auto isGiven = [&](const std::string &name) {
    bool given = file.findInitializer(name) >= 0 || findInput(name);
    if (given)
      needed.insert(name);
    return given;
  };
  std::vector<std::string> wanted = outputs;
  // The target of an attached loss may be new.
  for (const MeasuredValue &value : measured)
    wanted.push_back(value.name);
  llvm::erase(wanted, loss.target);
  if (loss.kind != Loss::Value && (findInput(loss.target) || producers.count(loss.target)))
    wanted.push_back(loss.target);
  auto ordered = onnx_import::orderNodes(
      file.graph(), wanted, isGiven, [&](const onnx::NodeProto &node) { return file.describe(node); },
      location);
  if (failed(ordered))
    return failure();
  nodes = std::move(*ordered);
  optional = takenByBranches(nodes, wanted);
  return success();
}

LogicalResult Importer::makeFunction() {
  std::vector<const onnx::ValueInfoProto *> inputs;
  for (const onnx::ValueInfoProto &input : file.graph().input())
    if (needed.contains(input.name()) && findInput(input.name()))
      inputs.push_back(&input);
  for (auto &[input, problem] : takeUnbound(file, inputs, optional, options, location))
    bindings[input] = {{}, {}, {}, {}, problem};
  FailureOr<std::vector<RankedTensorType>> types = bindInputs(file, inputs, options, location);
  if (failed(types))
    return failure();

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> arguments;
  for (RankedTensorType type : *types)
    arguments.push_back(RankedTensorType::get(type.getShape(), computedType(type.getElementType())));
  function = func::FuncOp::create(builder, location, graph::kForwardFunction,
                                  builder.getFunctionType(arguments, {}));
  Block *body = function.addEntryBlock();
  for (auto [i, input] : llvm::enumerate(inputs)) {
    function.setArgAttr(i, graph::kNameAttr, builder.getStringAttr(input->name()));
    Type element = (*types)[i].getElementType();
    if (isNarrow(element))
      function.setArgAttr(i, graph::kSourceAttr, TypeAttr::get(element));
    bindings[input->name()] = {body->getArgument(i), {}, {}, isNarrow(element) ? element : Type()};
  }
  emitter.builder.setInsertionPointToEnd(body);
  for (const onnx::ValueInfoProto *input : inputs)
    if (Binding &binding = bindings[input->name()]; binding.narrow)
      binding.value = emitter.rounded(binding.value, binding.narrow);
  return success();
}

/// A model whose parameters are all of one narrow type is stored in it, not computed in it.
void Importer::chooseModelType() {
  if (options.returns == Returns::Outputs)
    return;
  emitter.modelType = initializers.modelType(needed);
  if (emitter.modelType)
    module->setAttr(graph::kModelTypeAttr, TypeAttr::get(emitter.modelType));
}

LogicalResult Importer::bindInitializers(ArrayRef<std::string> names) {
  for (const std::string &name : names) {
    int index = name.empty() || bindings.count(name) ? -1 : file.findInitializer(name);
    if (index < 0)
      continue;
    FailureOr<Initializer> made = initializers.make(index);
    if (failed(made))
      return failure();
    if (made->parameter)
      bindings[name] = {{}, made->parameter, {}, made->narrow};
    else
      bindings[name] = {emitter.constant(made->constant), {}, {}, made->narrow};
  }
  return success();
}

/// Where all nodes are tried, those that read what a refused one gives are passed over.
LogicalResult Importer::buildNodes(ArrayRef<const onnx::NodeProto *> ordered) {
  std::set<std::string> refused;
  for (const onnx::NodeProto *node : ordered) {
    auto isRefused = [&](const std::string &name) { return refused.count(name) > 0; };
    bool isTried = !options.triesAll || llvm::none_of(readsOf(*node), isRefused);
    bool isOptional = llvm::all_of(node->output(), [&](auto &name) { return optional.contains(name); });
    size_t before = unrolled;
    std::string problem;
    if (isTried && succeeded(isOptional ? withoutErrors(problem, location, [&] { return buildNode(*node); })
                                        : buildNode(*node)))
      continue;
    if (isTried && isOptional) {
      unrolled = before;
      for (const std::string &output : node->output())
        if (!output.empty())
          bindings[output] = {{}, {}, {}, {}, problem};
      continue;
    }
    if (!options.triesAll)
      return failure();
    refused.insert(node->output().begin(), node->output().end());
  }
  return success(refused.empty());
}

LogicalResult Importer::buildNode(const onnx::NodeProto &node) {
  std::vector<std::string> reads = certainReadsOf(node);
  for (const std::string &name : reads)
    if (auto found = bindings.find(name); found != bindings.end() && !found->second.problem.empty())
      return error() << found->second.problem;
  if (StringRef problem = metadataOf(node, kProblemKey); !problem.empty())
    return error() << file.describe(node) << ": " << problem;
  const OpRow *row = findOp(node.domain(), node.op_type());
  if (!row)
    return error() << file.describe(node) << " has an operator that is not available: '" << operatorName(node)
                   << "': " << familyOf(node.domain(), node.op_type()).remedy;
  int64_t opset = file.writtenOpset(node.domain());
  if (metadataOf(node, kUpgradedKey).empty() && (opset < row->since || opset > row->until))
    return error() << file.describe(node) << " has operator '" << operatorName(node)
                   << "', expected in opset " << row->since << " to " << row->until << " only";
  emitter.location = placeOf(node);
  if (failed(bindInitializers(reads)))
    return failure();

  // Whatever goes wrong below is reported once, with the node's name, and is wrong whatever comes of it.
  std::string message;
  NodeBuilder builder(emitter, bindings, node, file.opset(node.domain()), options, *this);
  if (succeeded(withoutErrors(message, location, [&] { return row->build(builder); })) && message.empty())
    return success();
  return error() << file.describe(node) << ": " << (message.empty() ? "cannot be imported" : message);
}

FailureOr<SmallVector<Binding>> Importer::buildSubgraph(const onnx::GraphProto &graph,
                                                        ArrayRef<Binding> inputs) {
  Location outer = emitter.location;
  for (auto [value, binding] : llvm::zip_equal(graph.input(), inputs))
    bindings[value.name()] = binding;
  std::vector<std::string> wanted;
  for (const onnx::ValueInfoProto &output : graph.output())
    wanted.push_back(output.name());
  llvm::StringSet<> computed;
  for (const onnx::NodeProto &node : graph.node())
    computed.insert_range(node.output());
  auto isGiven = [&](const std::string &name) { return !computed.contains(name); };
  auto ordered = onnx_import::orderNodes(
      graph, wanted, isGiven, [&](const onnx::NodeProto &node) { return file.describe(node); }, location);
  if (failed(ordered) || failed(bindInitializers(wanted)))
    return failure();
  optional.insert_range(takenByBranches(*ordered, wanted).keys());
  unrolled += 1 + ordered->size();
  if (unrolled > kMaxUnrolled)
    return error() << "branches and iterations give more than " << kMaxUnrolled
                   << " nodes; loops are unrolled, so a loop of so many iterations cannot be trained";
  if (failed(buildNodes(*ordered)))
    return failure();
  emitter.location = outer;
  SmallVector<Binding> outputs;
  for (const std::string &name : wanted)
    outputs.push_back(bindings[name]);
  return outputs;
}

mlir::Value Importer::readBinding(StringRef name) {
  Binding &binding = bindings[name];
  if (binding.parameter)
    return emitter.read(binding);
  bool isLoss = options.returns == Returns::Loss;
  if (!binding.value)
    error() << (isLoss ? "the loss reads '" : "output '") << name
            << (isLoss ? "', which is no tensor" : "' is no tensor; -outputs=GLOB chooses others");
  return binding.value;
}

FailureOr<mlir::Value> Importer::buildLoss() {
  emitter.location = NameLoc::get(StringAttr::get(module.getContext(), "loss"), location);
  if (failed(bindInitializers({loss.output, loss.target})))
    return failure();
  mlir::Value output = readBinding(loss.output);
  if (!output)
    return failure();
  if (loss.kind == Loss::Value)
    return output;

  // Null where the model has none of that name: it becomes an input.
  mlir::Value target;
  bool isNew = !bindings.count(loss.target);
  if (!isNew) {
    target = readBinding(loss.target);
    if (!target)
      return failure();
  }
  auto nameOf = [&](mlir::Value value) -> std::string {
    for (const onnx::NodeProto *node : nodes)
      for (const std::string &name : node->output())
        if (auto found = bindings.find(name); found != bindings.end() && found->second.value == value)
          return name;
    return "";
  };
  FailureOr<mlir::Value> result =
      attachLoss(emitter, function, loss, options, output, target, nameOf, location);
  if (isNew && target)
    bindings[loss.target] = {target, {}, {}, {}};
  return result;
}

LogicalResult Importer::checkLoss(mlir::Value &result) {
  RankedTensorType type = Emitter::typeOf(result);
  if (!isa<FloatType>(type.getElementType()) || type.getNumElements() != 1)
    return error() << "the loss '" << loss.output << "' has type " << type << ", expected one float";
  result = emitter.convert(emitter.reshape(result, {}), emitter.builder.getF32Type());
  return success(result != nullptr);
}

FailureOr<SmallVector<mlir::Value>> Importer::buildOutputs() {
  SmallVector<mlir::Value> results;
  if (failed(bindInitializers(outputs)))
    return failure();
  for (const std::string &output : outputs) {
    mlir::Value value = readBinding(output);
    bool predicts = options.returns == Returns::Predictions;
    // Those that numpy has no type for are written as they are computed.
    if (Type narrow = bindings[output].narrow;
        narrow && (predicts ? narrow.isF16() : narrow.getIntOrFloatBitWidth() == 16))
      value = emitter.convert(value, narrow);
    results.push_back(value && predicts ? computed(emitter, value, output, function) : value);
    if (!results.back())
      return failure();
  }
  return results;
}

/// Statistics are results behind the loss.
void Importer::addStatistics(SmallVectorImpl<mlir::Value> &results) {
  for (const Emitter::Statistic &statistic : emitter.statistics) {
    graph::ParameterOp parameter = statistic.parameter;
    results.push_back(statistic.value);
    parameter.setStatistic(true);
  }
}

/// Behind the statistics, what metrics are made of.
LogicalResult Importer::addMeasured(SmallVectorImpl<mlir::Value> &results) {
  for (const MeasuredValue &value : measured)
    if (failed(bindInitializers(value.name)))
      return failure();
  auto isLarge = [&](MeasuredValue &one) {
    one.value = readBinding(one.name);
    return one.value && one.isLogged && Emitter::typeOf(one.value).getNumElements() != 1;
  };
  if (llvm::erase_if(measured, isLarge);
      !options.logOutputs.empty() && (measured.empty() || !measured.front().isLogged))
    return refuseLogged(file.graph(), options, loss.output, location);
  for (MeasuredValue &one : measured) {
    if (one.isLogged)
      one.value = emitter.convert(emitter.reshape(one.value, {}), emitter.builder.getF32Type());
    if (!one.value)
      return failure();
    results.push_back(one.value);
  }
  return success();
}

LogicalResult Importer::finish(ArrayRef<mlir::Value> results) {
  func::ReturnOp::create(emitter.builder, location, results);
  function.setType(FunctionType::get(module.getContext(), function.getArgumentTypes(),
                                     llvm::to_vector(ValueRange(results).getTypes())));
  nameResults(function, options, outputs, results);
  for (auto [i, value] : llvm::enumerate(measured))
    markMeasured(function, results.size() - measured.size() + i, value);
  for (unsigned i = outputs.size(); i < results.size() - measured.size(); ++i) {
    const Emitter::Statistic &statistic = emitter.statistics[i - outputs.size()];
    graph::ParameterOp parameter = statistic.parameter;
    function.setResultAttr(i, graph::kStatisticAttr, FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    function.setResultAttr(i, graph::kMomentumAttr, emitter.builder.getF64FloatAttr(statistic.momentum));
    if (statistic.sequential)
      function.setResultAttr(i, graph::kSequentialAttr, emitter.builder.getUnitAttr());
  }

  Block &body = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument argument : function.getArguments())
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
  if (failed(function.eraseArguments(unused)))
    return failure();

  llvm::StringSet<> read;
  function.walk([&](graph::ReadOp op) { read.insert(op.getState()); });
  for (auto parameter : llvm::make_early_inc_range(module.getOps<graph::ParameterOp>()))
    if (!read.contains(parameter.getSymName()) && !parameter.getStatistic())
      parameter.erase();
  function->moveBefore(module.getBody(), module.getBody()->end());
  if (options.returns == Returns::Loss || options.triesAll)
    freezeUnreached(module, options.triesAll ? results : results.take_front());
  initializers.finish();
  return verify(module);
}

void Importer::fillReport(ImportReport &report) {
  report.nodes = file.graph().node_size();
  report.functions = file.inlinedFunctions();
  auto isConstant = [&](const std::string &output) {
    auto binding = bindings.find(output);
    return binding == bindings.end() ||
           (binding->second.value && binding->second.value.getDefiningOp<graph::ConstantOp>());
  };
  for (const onnx::NodeProto *node : nodes) {
    ImportReport::Operator &row = report.operators[operatorName(*node)];
    ++row.nodes;
    row.folded += llvm::all_of(node->output(), isConstant);
  }
}

LogicalResult Importer::run() {
  nameOpenDimensions(file, options);
  if (failed(checkDuplicates(file, location)) || failed(indexNodes()) || failed(chooseLoss()) ||
      failed(orderNodes()) || failed(initializers.readRules()))
    return failure();
  chooseModelType();
  if (failed(makeFunction()))
    return failure();
  // Whoever says what each initializer is has seen that none is merged.
  if (options.returns == Returns::Loss && file.property(kParametersKey).empty())
    warnOfMergedInitializers(file, nodes, location);
  if (failed(buildNodes(nodes)) || failed(checkDeclarations(file, bindings, location)))
    return failure();
  if (options.report)
    fillReport(*options.report);
  if (options.returns != Returns::Loss) {
    FailureOr<SmallVector<mlir::Value>> results = buildOutputs();
    return failed(results) ? failure() : finish(*results);
  }
  FailureOr<mlir::Value> result = buildLoss();
  if (failed(result) || failed(checkLoss(*result)))
    return failure();
  SmallVector<mlir::Value> results{*result};
  addStatistics(results);
  if (failed(addMeasured(results)))
    return failure();
  if (emitter.frozenNorms && options.batchNorm == BatchNorm::Model && !options.batchNormIsSaid)
    emitWarning(location) << "the model has " << emitter.frozenNorms
                          << " batch normalizations in the form for inference, which exporters write for "
                             "training models too: their running statistics stay as they are; "
                             "-batchnorm=train normalizes by each micro-batch and folds its statistics, "
                             "-batchnorm=frozen says that this is meant";
  if (emitter.oldDropouts && !options.dropoutOff)
    emitWarning(location) << "the model has " << emitter.oldDropouts << " dropouts of opset "
                          << file.writtenOpset("")
                          << ", which has no form of them for training, so they drop nothing; a model that "
                             "is exported for training with opset 12 or later drops, -dropout=off says "
                             "that this is meant";
  return finish(results);
}

} // namespace dsopt::onnx_import

using namespace dsopt;
using namespace dsopt::onnx_import;

FailureOr<OwningOpRef<ModuleOp>> dsopt::importONNX(MLIRContext &context, const ImportOptions &options) {
  Builder builder(&context);
  Location location = NameLoc::get(builder.getStringAttr(options.path));
  std::unique_ptr<ModelFile> file = ModelFile::open(options.path, options.weightsFolder, location);
  if (!file || failed(untieInitializers(*file, options.untie, location)) ||
      failed(bindToValues(*file, options, location)))
    return failure();
  bindPositionInputs(*file, options);
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  (*module)->setAttr(graph::kModelAttr, builder.getStringAttr(llvm::sys::path::filename(options.path)));
  (*module)->setAttr(graph::kModelFolderAttr, builder.getStringAttr(file->folder()));
  if (!options.weightsFolder.empty())
    (*module)->setAttr(graph::kWeightsFolderAttr, builder.getStringAttr(options.weightsFolder));
  if (!options.untie.empty()) {
    SmallVector<StringRef> globs(options.untie.begin(), options.untie.end());
    (*module)->setAttr(graph::kUntieAttr, builder.getStrArrayAttr(globs));
  }
  if (failed(Importer(*file, options, *module).run()) || failed(markPadding(*module, options)))
    return failure();
  markBounds(*module);
  return module;
}

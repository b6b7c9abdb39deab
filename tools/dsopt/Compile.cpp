//===- Compile.cpp - from a model or a stage to a later stage --------------===//

#include "Compile.h"
#include "CompileOptions.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Pipeline/Variants.h"
#include "dsopt/Runtime/Data.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace dsopt;
using runtime::Error;
using runtime::ParsedOptions;

/// What is wrong with an array of no type that is read.
static std::string unreadable(const std::string &data, const runtime::NpzArray &array) {
  return data + ": array '" + array.name + "' has type '" + array.dtype + "', expected numbers" +
         (array.dtype == "|O" ? ": Python objects are what numpy makes of rows of different lengths, which "
                                "have to be padded"
                              : "");
}

/// What the headers of the data say of its arrays.
static void readHeaders(const ParsedOptions &options, ImportOptions &import) {
  std::string data = options.text("data");
  // A stream whose first step is there already has its shapes.
  if (llvm::StringRef(data).starts_with("stream:"))
    if (data = data.substr(7) + "/step-00000000.npz"; !llvm::sys::fs::exists(data))
      return;
  if (!runtime::namesNpz(data))
    return;
  for (const runtime::NpzArray &array : runtime::readNpzHeaders(data)) {
    if (array.type.empty())
      continue;
    import.inputShapes[array.name] = array.shape;
    if (llvm::StringRef(array.type).starts_with("f") || array.type == "bf16")
      import.floatInputs.insert(array.name);
  }
}

/// Refuses data whose array for an input is of no type that is read.
static void checkDataTypes(ModuleOp module, const ParsedOptions &options) {
  auto forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  if (!forward || !runtime::namesNpz(options.text("data")))
    return;
  for (const runtime::NpzArray &array : runtime::readNpzHeaders(options.text("data")))
    for (unsigned i = 0; array.type.empty() && i < forward.getNumArguments(); ++i)
      if (auto name = forward.getArgAttrOfType<StringAttr>(i, graph::kNameAttr);
          name && name.getValue() == array.name)
        throw Error(1, unreadable(options.text("data"), array));
}

/// Positions of a sequence where neither the model nor an option says how many, and the fewest that are tried
/// where its tables have fewer.
static constexpr int64_t kOpenContext = 1024, kLeastContext = 16;

namespace {
/// The symbolic dimension with several values, if there is one; exporters may name it anew in each input.
struct Dimension {
  std::string name;
  std::vector<int64_t> sizes; ///< descending
};
} // namespace

/// The values of -dim=NAME=V1,V2, descending.
static std::vector<int64_t> dimensionSizes(const std::string &name, const std::string &text) {
  std::vector<int64_t> sizes;
  for (llvm::StringRef part : llvm::split(text, ',')) {
    int64_t size = 0;
    if (!runtime::parseSize(part.str(), 1000, size) || size < 1)
      throw Error(1, "-dim=" + name + "=" + text + ": expected sizes of 1 or more");
    sizes.push_back(size);
  }
  llvm::sort(sizes, std::greater<>());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

static Dimension openDimension(const ParsedOptions &options) {
  Dimension open;
  for (auto &[name, text] : options.pairList("dim"))
    if (std::vector<int64_t> sizes = dimensionSizes(name, text); sizes.size() > 1) {
      if (!open.sizes.empty() && open.sizes != sizes)
        throw Error(1, "-dim gives " + open.name + " and " + name +
                           " several values, expected the same list: they change together");
      open = {open.sizes.empty() ? name : open.name, sizes};
    }
  return open;
}

/// What the options say of the import; a dimension with several values has size number `variant`.
static ImportOptions importOptions(const std::string &path, const ParsedOptions &options, size_t variant = 0,
                                   int64_t openContext = kOpenContext) {
  ImportOptions import;
  import.path = path;
  import.loss = options.text("loss");
  import.returns = options.has("predict") ? Returns::Predictions : Returns::Loss;
  import.predicted = options.list("outputs");
  import.freeze = options.list("freeze");
  import.train = options.list("train");
  import.untie = options.list("untie");
  for (const std::string &glob : options.list("log-outputs"))
    import.logOutputs.push_back(glob.empty() ? "*" : glob);
  for (const std::string &metric : options.list("metric")) {
    auto [output, labels] = llvm::StringRef(metric).split(':').second.rsplit(',');
    for (llvm::StringRef name : {output, labels})
      if (!name.empty())
        import.compared.push_back(name.str());
  }
  // A file's values are read when the program runs; the model's own may be absent then.
  std::string weights = options.text("weights");
  bool ownWeights = weights.empty() || llvm::sys::fs::is_directory(weights);
  if (ownWeights)
    import.weightsFolder = weights;
  if (options.has("generate"))
    import.positions = options.integer("max-context", openContext);
  import.microBatchSize = options.has("micro-batch-size") ? options.integer("micro-batch-size") : 0;
  readHeaders(options, import);
  import.dropoutOff = options.text("dropout") == "off";
  if (options.text("batchnorm") != "model")
    import.batchNorm = options.text("batchnorm") == "train" ? BatchNorm::Train : BatchNorm::Frozen;
  import.batchNormIsSaid = options.has("batchnorm");
  bool reads = !options.has("plan") && !options.has("list-parameters") && !options.has("print-pipeline") &&
               !options.has("tune");
  import.weights = !reads                               ? WeightFiles::Ignore
                   : options.has("emit") || !ownWeights ? WeightFiles::IfPresent
                                                        : WeightFiles::Required;
  for (auto &[name, value] : options.pairList("padding-index")) {
    int64_t row = 0;
    if (!runtime::parseSize(value, 1000, row))
      throw Error(1, "-padding-index=" + name + "=" + value + ": expected a row");
    import.paddingIndex.emplace_back(name, row);
  }
  for (auto &[name, text] : options.pairList("dim")) {
    std::vector<int64_t> sizes = dimensionSizes(name, text);
    import.dims[name] = sizes[sizes.size() > 1 ? variant : 0];
    if (sizes.size() > 1)
      import.paddedDims.insert(name);
  }
  import.inputs = options.pairList("input");
  // A checkpoint's number is read later.
  bool follows = options.has("resume") && !options.has("tensor-shards");
  import.tensorShards = follows ? 0 : options.integer("tensor-shards", options.integer("tp", 1));
  return import;
}

static OwningOpRef<ModuleOp> importWith(MLIRContext &context, ImportOptions import, ImportReport &report,
                                        bool warns) {
  import.report = &report;
  Messages messages(context);
  ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
    return success(!warns && diagnostic.getSeverity() == DiagnosticSeverity::Warning);
  });
  auto module = importONNX(context, import);
  if (failed(module))
    messages.fail("cannot import " + import.path);
  return std::move(*module);
}

/// Imports the model; a dimension with several values has size number `variant`.
static OwningOpRef<ModuleOp> importModel(MLIRContext &context, const std::string &path,
                                         const ParsedOptions &options, ImportReport &report, bool warns,
                                         size_t variant = 0) {
  OwningOpRef<ModuleOp> module;
  bool isOpen = options.has("generate") && !options.has("max-context");
  std::optional<Error> first;
  for (int64_t positions = kOpenContext; !module; positions /= 2) {
    try {
      module = importWith(context, importOptions(path, options, variant, positions), report, warns);
    } catch (const Error &error) {
      if (!first)
        first = error;
      // The model may have tables of fewer positions.
      if (!isOpen || positions <= kLeastContext)
        throw *first;
      report = ImportReport();
    }
  }
  checkDataTypes(*module, options);
  return module;
}

static OwningOpRef<ModuleOp> readModule(MLIRContext &context, const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    throw Error(1, "cannot read " + path + ": " + buffer.getError().message());
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  Messages messages(context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    messages.fail("cannot read " + path + " as a module");
  return module;
}

/// Lowers a module of another size. What there is to warn about is said of the largest.
static void lowerOther(ModuleOp other, const std::string &passes, const std::string &size,
                       Messages &messages) {
  ScopedDiagnosticHandler quiet(other.getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
  });
  if (failed(runPipeline(other, passes)))
    messages.fail("compilation failed at " + size);
}

/// Compiles the smaller sizes of a dimension by the passes that `module` went through up to its segments,
/// and merges them into it.
static void addVariants(ModuleOp module, const Dimension &dimension, const std::string &path,
                        const ParsedOptions &options, const std::string &passes, Messages &messages) {
  DictionaryAttr layout = setDimension(module, dimension.name, dimension.sizes.front());
  for (size_t variant = 1; variant < dimension.sizes.size(); ++variant) {
    ImportReport unread;
    OwningOpRef<ModuleOp> other =
        importModel(*module.getContext(), path, options, unread, /*warns=*/false, variant);
    (*other)->setAttr(kOptionsAttr, layout);
    (*other)->setAttr(kTargetAttr, module->getAttr(kTargetAttr));
    lowerOther(*other, passes, dimension.name + " = " + std::to_string(dimension.sizes[variant]), messages);
    nestVariant(module, std::move(other), dimension.sizes[variant]);
  }
}

/// Rows that a run of a program that generates may have, descending: a run takes the fewest that will do.
static std::vector<int64_t> rowSizes(int64_t most) {
  std::vector<int64_t> sizes{most};
  for (int64_t size : {64, 8, 2})
    if (size < most)
      sizes.push_back(size);
  return sizes;
}

/// No run has more rows than all sequences together have positions.
static void boundChunk(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>(graph::kEvaluateFunction);
  int64_t positions = 1;
  for (BlockArgument argument : function.getArguments())
    positions = std::max(positions, cast<ShapedType>(argument.getType()).getShape().back());
  int64_t context = std::min(options::max_context(module).value_or(positions), positions);
  setOption(module, "chunk",
            Builder(module.getContext())
                .getI64IntegerAttr(std::min(options::chunk(module), context * options::max_batch(module))));
}

/// Makes programs of all numbers of rows of what `passes` begin with, and merges them. All are of one placed
/// graph: blocks and shards are the same.
static void addRowSizes(ModuleOp module, llvm::ArrayRef<std::string> passes, bool verifyEach,
                        Messages &messages) {
  std::vector<int64_t> sizes = rowSizes(options::chunk(module));
  std::vector<OwningOpRef<ModuleOp>> others;
  for (size_t i = 1; i < sizes.size(); ++i)
    others.push_back(module.clone());
  std::string text = pipelineText(passes);
  if (failed(runPipeline(module, text, verifyEach)))
    messages.fail("compilation failed");
  DictionaryAttr layout = setDimension(module, "rows", sizes.front());
  for (auto [i, other] : llvm::enumerate(others)) {
    int64_t size = sizes[i + 1];
    (*other)->setAttr(kOptionsAttr, layout);
    setOption(*other, "chunk", Builder(module.getContext()).getI64IntegerAttr(size));
    lowerOther(*other, text, std::to_string(size) + " rows", messages);
    if (failed(verifySameFunctions(module, *other, size)))
      messages.fail("compilation failed");
    nestVariant(module, std::move(other), size);
  }
}

bool dsopt::isStage(llvm::StringRef path) { return path.ends_with(".mlir") || path == "-"; }

OwningOpRef<ModuleOp> dsopt::readSource(MLIRContext &context, const ParsedOptions &options,
                                        ImportReport &report, bool warns) {
  // Lists that do not go together are said before anything is made of them.
  (void)openDimension(options);
  const std::string &path = options.positionals[0];
  return isStage(path) ? readModule(context, path) : importModel(context, path, options, report, warns);
}

Inspection dsopt::inspectSource(MLIRContext &context, const ParsedOptions &options) {
  const std::string &path = options.positionals[0];
  if (isStage(path))
    throw Error(1, "-inspect got " + path + ", expected an ONNX model");
  (void)openDimension(options);
  Messages messages(context);
  FailureOr<Inspection> found = inspectONNX(context, importOptions(path, options));
  if (failed(found))
    messages.fail("cannot inspect " + path);
  return std::move(*found);
}

Stage dsopt::takeOptions(ModuleOp module, const ParsedOptions &options, const LauncherInfo &launcher,
                         const std::string &command) {
  Stage stage = findStage(module);
  if (stage != Stage::Graph) {
    setLaterOptions(module, options, stage);
    return stage;
  }
  setCompileOptions(module, options, launcher, command);
  checkPrecision(module);
  return stage;
}

std::vector<std::string> dsopt::passesTo(Stage goal, ModuleOp module, const ParsedOptions &options) {
  std::vector<std::string> passes =
      stagePasses(findStage(module), goal, purposeOf(module), isForDevice(module));
  if (std::string problem = insertPasses(passes, options.list("insert-pass")); !problem.empty())
    throw Error(1, problem);
  return passes;
}

void dsopt::runPasses(ModuleOp module, std::vector<std::string> passes, Stage goal,
                      const ParsedOptions &options, Messages &messages) {
  const std::string &path = options.positionals[0];
  bool verifyEach = options.has("insert-pass");
  if (Dimension dimension = openDimension(options); !isStage(path) && dimension.sizes.size() > 1) {
    if (goal < Stage::Exec)
      throw Error(1, "-emit=" + stageName(goal).str() + " shows one size of '" + dimension.name +
                         "': give -dim one value");
    auto merge = llvm::find(passes, kFirstJointPass);
    std::string alone = pipelineText(llvm::ArrayRef(&*passes.begin(), merge - passes.begin()));
    if (failed(runPipeline(module, alone, verifyEach)))
      messages.fail("compilation failed");
    addVariants(module, dimension, path, options, alone, messages);
    passes.erase(passes.begin(), merge);
  }
  auto derive = llvm::find(passes, "derive-decoding"), merge = llvm::find(passes, kFirstJointPass);
  if (goal >= Stage::Exec && derive < merge) {
    std::vector<std::string> before(passes.begin(), derive), each(derive, merge);
    if (failed(runPipeline(module, pipelineText(before), verifyEach)))
      messages.fail("compilation failed");
    boundChunk(module);
    addRowSizes(module, each, verifyEach, messages);
    passes.erase(passes.begin(), merge);
  }
  if (failed(runPipeline(module, pipelineText(passes), verifyEach)))
    messages.fail("compilation failed");
}

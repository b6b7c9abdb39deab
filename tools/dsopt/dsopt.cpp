//===- dsopt.cpp - the compiler's command line ----------------------------===//
//
// From a model to what was asked for: a plan, a stage of the IR, an executable
// or a run. A run is the same object and the same runtime as an executable: this
// process compiles, then becomes dsopt-run.
//
//===----------------------------------------------------------------------===//

#include "CompileOptions.h"
#include "DeepSpeedConfig.h"
#include "ImportReport.h"
#include "Messages.h"
#include "ModelOptions.h"
#include "Output.h"
#include "Produce.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "dsopt/Interfaces/OptimizerRegistry.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Pipeline/Plan.h"
#include "dsopt/Pipeline/PrintModule.h"
#include "dsopt/Pipeline/RegisterAll.h"
#include "dsopt/Pipeline/Variants.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Data.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Launch.h"
#include "dsopt/Runtime/Options.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/RunMain.h"
#include "dsopt/Runtime/World.h"
#include "dsopt/Transforms/Schedule/PipelineOrder.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

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
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward || !runtime::namesNpz(options.text("data")))
    return;
  for (const runtime::NpzArray &array : runtime::readNpzHeaders(options.text("data")))
    for (unsigned i = 0; array.type.empty() && i < forward.getNumArguments(); ++i)
      if (auto name = forward.getArgAttrOfType<StringAttr>(i, graph::kNameAttr);
          name && name.getValue() == array.name)
        throw Error(1, unreadable(options.text("data"), array));
}

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

/// Imports the model; a dimension with several values has size number `variant`.
static OwningOpRef<ModuleOp> importModel(MLIRContext &context, const std::string &path,
                                         const ParsedOptions &options, ImportReport &report,
                                         size_t variant = 0) {
  ImportOptions import;
  import.path = path;
  import.report = &report;
  import.loss = options.text("loss");
  import.freeze = options.list("freeze");
  import.train = options.list("train");
  import.untie = options.list("untie");
  // A file's values are read when the program runs; the model's own may be absent then.
  std::string weights = options.text("weights");
  bool ownWeights = weights.empty() || llvm::sys::fs::is_directory(weights);
  if (ownWeights)
    import.weightsFolder = weights;
  import.microBatchSize = options.has("micro-batch-size") ? options.integer("micro-batch-size") : 0;
  readHeaders(options, import);
  import.dropoutOff = options.text("dropout") == "off";
  if (options.text("batchnorm") != "model")
    import.batchNorm = options.text("batchnorm") == "train" ? BatchNorm::Train : BatchNorm::Frozen;
  import.batchNormIsSaid = options.has("batchnorm");
  bool reads = !options.has("plan") && !options.has("list-parameters") && !options.has("print-pipeline");
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
  Messages messages(context);
  // What there is to warn about is said of the largest.
  ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
    return success(variant > 0 && diagnostic.getSeverity() == DiagnosticSeverity::Warning);
  });
  auto module = importONNX(context, import);
  if (failed(module))
    messages.fail("cannot import " + path);
  checkDataTypes(**module, options);
  return std::move(*module);
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

static void loadPlugins(const ParsedOptions &options) {
  for (const std::string &path : options.list("load-pass-plugin")) {
    auto plugin = PassPlugin::load(path);
    if (!plugin)
      throw Error(1, "cannot load the pass plugin " + path + ": " + llvm::toString(plugin.takeError()));
    plugin->registerPassRegistryCallbacks();
  }
}

/// Refuses a schedule that neither dsopt nor a plugin has.
static void checkSchedule(const ParsedOptions &options) {
  const char *name = "schedule";
  if (!options.has(name))
    return;
  std::string schedule = options.text(name), problem;
  runtime::checkRegistered(*runtime::findOption(name), schedule.substr(0, schedule.find('{')),
                           pipelineOrderNames());
  if (!getPipelineOrder(schedule, &problem))
    throw Error(1, "option -schedule: " + problem);
}

/// Refuses an optimizer that there is not. A plugin's are there once its passes are in a pipeline:
/// append-optimizer asks for those.
static void checkOptimizer(const ParsedOptions &options, MLIRContext &context) {
  const char *name = "optimizer";
  if (!options.has(name))
    return;
  std::set<std::string> known = registeredOptimizers(context);
  if (!options.list("load-pass-plugin").empty() && !known.count(options.text(name)))
    return;
  runtime::checkRegistered(*runtime::findOption(name), options.text(name), {known.begin(), known.end()});
}

/// The .onnx file a module came from, for its protobuf; none if it is gone or never was.
static std::optional<std::string> modelPath(ModuleOp module, const std::string &path) {
  if (llvm::StringRef(path).ends_with(".onnx"))
    return path;
  auto folder = module->getAttrOfType<StringAttr>(graph::kModelFolderAttr),
       name = module->getAttrOfType<StringAttr>(graph::kModelAttr);
  if (!folder || !name)
    return std::nullopt;
  std::string source = (folder.getValue() + "/" + name.getValue()).str();
  return llvm::sys::fs::exists(source) ? std::optional(source) : std::nullopt;
}

/// Programs and IR keep in which folder the model lies, as text.
static void checkName(const std::string &path) {
  llvm::SmallString<128> absolute(path);
  llvm::sys::fs::make_absolute(absolute);
  if (path != "-" && !llvm::json::isUTF8(absolute))
    throw Error(1, "the model's path is not UTF-8 (" + llvm::json::fixUTF8(absolute) +
                       "), as which programs keep it: rename the file or its folder");
}

/// The stage that must be reached for what was asked.
static Stage goalStage(const ParsedOptions &options) {
  std::string emit = options.text("emit");
  return emit == "graph"                         ? Stage::Graph
         : emit == "dist"                        ? Stage::Dist
         : emit == "exec" || options.has("plan") ? Stage::Exec
                                                 : Stage::LLVM;
}

/// What is wrong with an option that the configuration or the model set: says where it comes from.
static Error withOrigin(const Error &error, const std::vector<ConfiguredOption> &configured) {
  std::string text = error.what();
  for (const ConfiguredOption &one : configured)
    if (llvm::StringRef(text).contains("-" + one.option + "=" + one.value) ||
        llvm::StringRef(error.what()).starts_with("option -" + one.option + ":"))
      text += "\n  note: -" + one.option + "=" + one.value + " comes from " + one.place;
  return Error(error.status, text, error.quiet);
}

static void printError(const Error &error) {
  if (!error.quiet)
    llvm::errs() << "dsopt: error: " << error.what() << "\n";
}

/// Compiles the smaller sizes of a dimension by the passes that `module` went through up to its segments,
/// and merges them into it.
static void addVariants(ModuleOp module, const Dimension &dimension, const std::string &path,
                        const ParsedOptions &options, const std::string &passes, Messages &messages) {
  DictionaryAttr layout = setDimension(module, dimension.name, dimension.sizes.front());
  for (size_t variant = 1; variant < dimension.sizes.size(); ++variant) {
    ImportReport unread;
    OwningOpRef<ModuleOp> other = importModel(*module.getContext(), path, options, unread, variant);
    ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
    });
    (*other)->setAttr(kOptionsAttr, layout);
    (*other)->setAttr(kTargetAttr, module->getAttr(kTargetAttr));
    if (failed(runPipeline(*other, passes)))
      messages.fail("compilation failed at " + dimension.name + " = " +
                    std::to_string(dimension.sizes[variant]));
    nestVariant(module, std::move(other), dimension.sizes[variant]);
  }
}

/// What cannot be read or written is said before any work, and what would not be written at all.
static void checkPaths(const ParsedOptions &options, const LauncherInfo &launcher) {
  bool runs = options.has("run");
  if (runs && options.has("o"))
    throw Error(1, "-run and -o exclude each other: a run keeps its program in memory; without -run, -o=" +
                       options.text("o") + " is the program, to be run then");
  if (std::string output = outputFile(options.positionals[0], options); !output.empty())
    runtime::checkWritable(output, "o");
  for (const char *name : {"data", "eval-data"})
    if (runs && options.has(name))
      runtime::checkFiles(options.text(name), options.integer("token-bytes"));
  if (launcher.rank != 0)
    return;
  for (const char *name : {"log", "save-weights", "save-onnx", "trace"})
    if (options.has(name) && runs)
      runtime::checkWritable(options.text(name), name);
    else if (options.has(name) && !options.has("plan"))
      llvm::errs() << "dsopt: warning: -" << name << "=" << options.text(name)
                   << " is for a run, and nothing runs here: give it to the program\n";
}

/// Who hands the program to whom on this host; null where each rank compiles for itself.
static std::unique_ptr<runtime::Handover> findHandover(const LauncherInfo &launcher,
                                                       const ParsedOptions &options) {
  if (launcher.localSize <= 1)
    return nullptr;
  std::string what = DSOPT_VERSION " " + std::to_string(launcher.worldSize);
  for (const std::string &model : options.positionals)
    what += "\n" + model;
  for (const auto &[name, values] : options.values)
    if (const runtime::OptionRow *row = runtime::findOption(name);
        row && row->use == runtime::OptionUse::Compile)
      for (const std::string &value : values)
        what += "\n-" + name + "=" + value;
  const char *limit = std::getenv("DSOPT_LAUNCH_TIMEOUT");
  int seconds = limit ? std::atoi(limit) : 0;
  return std::make_unique<runtime::Handover>(launcher.job, what, launcher.localRank, launcher.localSize,
                                             std::chrono::seconds(seconds > 0 ? seconds : 60));
}

static int compileHere(ParsedOptions options, const LauncherInfo &launcher, runtime::Handover *handover,
                       int argc, char **argv);

/// Under a launcher only one rank of a host compiles: what is wrong before is said by the first of all.
static int compile(const ParsedOptions &options, const LauncherInfo &launcher, runtime::Handover *handover,
                   const std::vector<ConfiguredOption> &configured, int argc, char **argv, bool &speaks) {
  if (options.positionals.size() != 1)
    throw Error(1, options.positionals.empty()
                       ? std::string("no model is given: dsopt MODEL.onnx [options], or dsopt --help")
                       : "got " + std::to_string(options.positionals.size()) + " models (" +
                             options.positionals[0] + ", " + options.positionals[1] + "), expected one");
  if (options.has("run") && !options.has("data") && !options.has("emit") && !options.has("plan"))
    throw Error(1, std::string(options.has("eval") ? "-eval" : "-run") + " needs -data=FILE.npz");
  if (handover && !handover->makes())
    becomeRuntime(handover->take(), options);
  speaks = true;
  try {
    checkPaths(options, launcher);
    return compileHere(options, launcher, handover, argc, argv);
  } catch (const Error &error) {
    // Said before the other ranks end, after which a launcher ends this one.
    Error said = withOrigin(error, configured);
    printError(said);
    if (handover)
      handover->fail(said.status);
    throw Error(said.status, said.what(), /*quiet=*/true);
  }
}

static int compileModel(MLIRContext &context, const ParsedOptions &options,
                        const std::vector<ConfiguredOption> &carried, const LauncherInfo &launcher,
                        runtime::Handover *handover, int argc, char **argv) {
  checkSchedule(options);
  checkOptimizer(options, context);
  std::string path = options.positionals[0];
  checkName(path);
  Dimension dimension = openDimension(options);
  bool isText = llvm::StringRef(path).ends_with(".mlir") || path == "-";
  bool reports = options.text("report") == "import";
  if (reports && isText)
    throw Error(1, "-report=import got " + path + ", expected an ONNX model");
  ImportReport report;
  OwningOpRef<ModuleOp> module =
      isText ? readModule(context, path) : importModel(context, path, options, report);
  if (options.has("list-parameters")) {
    listParameters(isText ? parametersOf(*module) : report.initializers,
                   options.text("list-parameters") == "json", llvm::outs());
    return 0;
  }
  if (std::string line = summarizeParameters(report.initializers); !line.empty() && !options.has("quiet"))
    llvm::errs() << "dsopt: " << line << "\n";
  std::string command = "dsopt";
  for (int i = 1; i < argc; ++i)
    command += std::string(" ") + argv[i];
  Stage stage = findStage(*module);
  if (stage == Stage::Graph)
    setCompileOptions(*module, options, launcher, command);
  else
    setLaterOptions(*module, options, stage);

  if (stage == Stage::Graph)
    choosePrecision(*module);
  if (std::string line = describeModelType(*module); !line.empty() && !isText && !options.has("quiet"))
    llvm::errs() << "dsopt: " << line << "\n";
  Stage goal = goalStage(options);
  if (goal < stage)
    throw Error(1, path + " is at stage " + stageName(stage).str() + ", which is after " +
                       stageName(goal).str());
  std::vector<std::string> passes = stagePasses(stage, goal, getOption(*module, "train", 1) != 0);
  if (std::string problem = insertPasses(passes, options.list("insert-pass")); !problem.empty())
    throw Error(1, problem);
  bool isCurve = options.text("plan") == "recompute";
  if (isCurve) {
    auto first = llvm::find(passes, "recompute");
    if (first == passes.end())
      throw Error(1, "-plan=recompute needs a model, or one at stage graph or dist; " + path +
                         " is at stage " + stageName(stage).str());
    passes.erase(first, passes.end());
  }
  if (options.has("print-pipeline")) {
    llvm::outs() << pipelineText(passes) << "\n";
    return 0;
  }

  Messages messages(context);
  if (reports && failed(printImportReport(report, *module, carried, llvm::errs())))
    messages.fail("the report on the import failed");
  std::string protobuf;
  if (goal == Stage::LLVM)
    if (std::optional<std::string> source = modelPath(*module, path)) {
      auto model = modelWithoutParameters(*source, *module);
      if (failed(model))
        messages.fail("cannot embed the model");
      protobuf = std::move(*model);
    }
  if (!isText && dimension.sizes.size() > 1) {
    if (goal < Stage::Exec)
      throw Error(1, "-emit=" + stageName(goal).str() + " shows one size of '" + dimension.name +
                         "': give -dim one value");
    auto merge = llvm::find(passes, kFirstJointPass);
    std::string alone = pipelineText(llvm::ArrayRef(&*passes.begin(), merge - passes.begin()));
    if (failed(runPipeline(*module, alone, options.has("insert-pass"))))
      messages.fail("compilation failed");
    addVariants(*module, dimension, path, options, alone, messages);
    passes.erase(passes.begin(), merge);
  }
  if (failed(runPipeline(*module, pipelineText(passes), options.has("insert-pass"))))
    messages.fail("compilation failed");
  // The process ends with what follows: a large program takes long to free, operation by operation.
  ModuleOp compiled = module.release();
  if (goal == Stage::LLVM) {
    Product product{compiled, protobuf, path, handover};
    if (failed(product.produce(options)))
      messages.fail("code generation failed");
    return 0;
  }
  writeText(options.text("o"), [&](llvm::raw_ostream &out) {
    if (options.has("plan") && failed(isCurve ? printRecomputeCurve(compiled, out)
                                              : printPlan(compiled, out, options.text("plan") == "json")))
      messages.fail("planning failed");
    if (!options.has("plan"))
      printModule(compiled, out);
    return true;
  });
  return 0;
}

static int compileHere(ParsedOptions options, const LauncherInfo &launcher, runtime::Handover *handover,
                       int argc, char **argv) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  loadPlugins(options);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  std::vector<ConfiguredOption> carried = applyModelOptions(options, context);
  try {
    return compileModel(context, options, carried, launcher, handover, argc, argv);
  } catch (const Error &error) {
    throw withOrigin(error, carried);
  }
}

static int runCompiler(int argc, char **argv, bool &speaks, runtime::Launch &launch, bool &insecure) {
  ParsedOptions options = runtime::parseOptions(argc, argv, runtime::Tool::Compiler);
  if (options.has("help")) {
    llvm::outs() << "usage: dsopt MODEL.onnx|STAGE.mlir [options]\n\n"
                 << runtime::optionsHelp(runtime::Tool::Compiler);
    return 0;
  }
  if (options.has("version")) {
    llvm::outs() << "dsopt " DSOPT_VERSION "\n";
    return 0;
  }
  if (options.has("check"))
    return runtime::checkCheckpoints(options.text("check"));
  if (options.text("config") == "help") {
    printConfigKeys(llvm::outs());
    return 0;
  }
  // An evaluation is a run, unless something else is asked for.
  if (options.has("eval") && !options.has("o") && !options.has("emit") && !options.has("plan"))
    options.setDefault("run", "");
  LauncherInfo launcher = options.has("run") ? findLauncher(options) : LauncherInfo();
  if (options.has("run"))
    launch = runtime::findLaunch(options.text("launcher"));
  insecure = options.has("insecure");
  std::unique_ptr<runtime::Handover> handover = findHandover(launcher, options);
  std::vector<ConfiguredOption> configured = applyConfig(options, launcher, launcher.rank != 0);
  try {
    return compile(options, launcher, handover.get(), configured, argc, argv, speaks);
  } catch (const runtime::LaunchError &) {
    throw;
  } catch (const Error &error) {
    throw withOrigin(error, configured);
  }
}

int main(int argc, char **argv) {
  runtime::prepareProcess();
  bool speaks = runtime::launchedRank() <= 0;
  runtime::Launch launch;
  bool insecure = false;
  int status;
  try {
    runtime::fault::start();
    status = runCompiler(argc, argv, speaks, launch, insecure);
    finishStandardOutput();
  } catch (const Error &error) {
    if (dynamic_cast<const runtime::LaunchError *>(&error) || speaks)
      printError(error);
    status = error.status;
    // What could not be printed before it is no second error.
    llvm::outs().flush();
    llvm::outs().clear_error();
    // On one host all have heard of it where the program is handed over.
    if (launch.localSize != launch.size)
      runtime::tellOthers(launch, insecure, error, /*isSaid=*/true);
  }
  // Where standard error is gone, nobody can be told.
  llvm::errs().clear_error();
  return status;
}

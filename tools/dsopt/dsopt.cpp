//===- dsopt.cpp - the compiler's command line ----------------------------===//
//
// From a model to what was asked for: a plan, a stage of the IR, an executable
// or a run. A run is the same object and the same runtime as an executable: this
// process compiles, then becomes dsopt-run.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "CompileOptions.h"
#include "DeepSpeedConfig.h"
#include "DeviceOptions.h"
#include "Effects.h"
#include "GemmTable.h"
#include "ImportReport.h"
#include "Inspect.h"
#include "Messages.h"
#include "ModelOptions.h"
#include "Output.h"
#include "Produce.h"
#include "Remedies.h"
#include "Targets.h"
#include "Tokenize.h"
#include "Trials.h"
#include "Tune.h"
#include "Words.h"

#include "dsopt/Analysis/Exec/PipelineOrder.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "dsopt/Interfaces/OptimizerRegistry.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
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
#include "dsopt/Transforms/Wire/Compression.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <unistd.h>

using namespace mlir;
using namespace dsopt;
using runtime::Error;
using runtime::ParsedOptions;

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

/// Refuses a method of compression that neither dsopt nor a plugin has.
static void checkCompression(const ParsedOptions &options) {
  const char *name = "compress-gradients";
  std::string method = options.text(name), problem;
  if (method == "none")
    return;
  std::vector<std::string> names = compressionNames();
  names.insert(names.begin(), "none");
  runtime::checkRegistered(*runtime::findOption(name), method.substr(0, method.find('{')), names);
  if (!getCompression(method, &problem))
    throw Error(1, "option -compress-gradients: " + problem);
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
         : options.text("plan") == "kernels"     ? Stage::LLVM
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

/// A program that generates computes no loss, and reads prompts instead of data.
static void checkGeneration(const ParsedOptions &options) {
  for (const char *name : {"eval", "predict", "loss", "metric", "log-outputs", "outputs", "data", "dp", "sp",
                           "zero", "sequence-shards", "micro-batch-size", "micro-batches", "global-batch"})
    if (options.has(name))
      throw Error(1,
                  std::string("option -") + name + " does not go with -generate, which goes on from prompts");
  if (!options.positionals.empty() && isStage(options.positionals[0]))
    throw Error(1, "-generate got " + options.positionals[0] + ", expected an ONNX model");
}

/// A program predicts, or has a loss.
static void checkPrediction(const ParsedOptions &options) {
  for (const char *name : {"input", "log-outputs"})
    if (options.has(name) && !options.positionals.empty() && isStage(options.positionals[0]))
      throw Error(1, std::string("-") + name + " got " + options.positionals[0] + ", expected an ONNX model");
  if (options.has("generate"))
    return checkGeneration(options);
  if (!options.has("predict")) {
    for (const char *name : {"outputs", "save-outputs"})
      if (options.has(name) && !(options.has("inspect") && name == llvm::StringRef("outputs")))
        throw Error(1, std::string("option -") + name + " needs -predict");
    return;
  }
  for (const char *name : {"eval", "loss", "metric", "log-outputs"})
    if (options.has(name))
      throw Error(1, std::string("option -") + name + " is about the loss, of which -predict computes none");
  if (!options.positionals.empty() && isStage(options.positionals[0]))
    throw Error(1, "-predict got " + options.positionals[0] + ", expected an ONNX model");
  bool asks = false;
  for (const char *name : {"o", "emit", "plan", "list-parameters", "print-pipeline"})
    asks |= options.has(name);
  if (!asks && !options.has("save-outputs"))
    throw Error(1, "-predict needs -save-outputs=FILE.npz");
}

/// What cannot be read or written is said before any work, and what would not be written at all.
static void checkPaths(const ParsedOptions &options, const LauncherInfo &launcher) {
  bool runs = options.has("run");
  if (runs && options.has("o"))
    throw Error(1, "-run and -o exclude each other: a run keeps its program in memory; without -run, -o=" +
                       options.text("o") + " is the program, to be run then");
  for (const char *other : {"run", "o", "emit", "plan"})
    if (options.has("tune") && options.has(other))
      throw Error(1, std::string("-tune and -") + other + " exclude each other: give -gemm-table=" +
                         options.text("tune") + " with -" + other + ", once it is written");
  if (options.has("tune"))
    runtime::checkWritable(options.text("tune"), "tune");
  if (std::string output = outputFile(options.positionals[0], options); !output.empty())
    runtime::checkWritable(output, "o");
  for (const char *name : {"data", "eval-data"})
    if (runs && options.has(name))
      runtime::checkFiles(options.text(name), options.integer("token-bytes"));
  if (launcher.rank != 0)
    return;
  for (const char *name : {"log", "save-weights", "save-onnx", "save-outputs", "trace"})
    if (options.has(name) && runs)
      runtime::checkWritable(options.text(name), name);
    else if (options.has(name) && !options.has("plan"))
      llvm::errs() << "dsopt: warning: -" << name << "=" << options.text(name)
                   << " is for a run, and nothing runs here: give it to the program\n";
}

/// Who hands the program to whom on this host; null where each rank compiles for itself.
static std::unique_ptr<runtime::Handover> findHandover(const runtime::Launch &launch,
                                                       const ParsedOptions &options) {
  if (launch.launcher == runtime::Launcher::Local || launch.localRank < 0 || launch.localSize <= 1)
    return nullptr;
  std::string what = "dsopt " DSOPT_VERSION " of " + std::to_string(launch.size) + " ranks";
  for (const std::string &model : options.positionals)
    what += "\n" + model;
  // What the others leave out would be theirs too, once it is compiled in.
  for (const auto &[name, values] : options.values) {
    const runtime::OptionRow *row = runtime::findOption(name);
    bool runs = row && row->use == runtime::OptionUse::Run;
    runtime::AmongRanks among = runs ? row->ranks : runtime::AmongRanks::Equal;
    if (!row || !(runs || row->isCompiledIn()) || among == runtime::AmongRanks::Own)
      continue;
    for (const std::string &value : values)
      what += "\n-" + name + (among == runtime::AmongRanks::Equal && !value.empty() ? "=" + value : "");
  }
  const char *limit = std::getenv("DSOPT_LAUNCH_TIMEOUT");
  int seconds = limit ? std::atoi(limit) : 0;
  return std::make_unique<runtime::Handover>(launch.job, what, launch.localRank, launch.localSize,
                                             std::chrono::seconds(seconds > 0 ? seconds : 60));
}

static int compileHere(const ParsedOptions &options, const LauncherInfo &launcher,
                       runtime::Handover *handover, const std::vector<ConfiguredOption> &configured, int argc,
                       char **argv);

/// What to say of a command line with several words and no file behind one of them: which word was meant.
static std::string adviseOnWords(ArrayRef<std::string> words) {
  // Those of Lightning's command line, and of others.
  static const std::pair<const char *, const char *> foreign[] = {{"fit", "train"},    {"run", "train"},
                                                                  {"launch", "train"}, {"validate", "eval"},
                                                                  {"test", "eval"},    {"evaluate", "eval"}};
  for (const auto &[word, own] : foreign)
    if (words[0] == word && !llvm::sys::fs::exists(word))
      return "; '" + words[0] + "' is no file: did you mean dsopt " + own + " MODEL.onnx?";
  for (const std::string &word : words)
    for (const runtime::CommandWord &known : runtime::commandWords())
      if (!llvm::sys::fs::exists(word) && runtime::editDistance(word, known.name) <= 2)
        return word == known.name
                   ? std::string("; what to do comes first: dsopt ") + known.name + " MODEL.onnx"
                   : "; '" + word + "' is no file: did you mean dsopt " + known.name + " MODEL.onnx?";
  return "";
}

/// Under a launcher only one rank of a host compiles: what is wrong before is said by the first of all.
static int compile(const ParsedOptions &options, const LauncherInfo &launcher, runtime::Handover *handover,
                   const std::vector<ConfiguredOption> &configured, int argc, char **argv, bool &speaks) {
  if (options.positionals.size() != 1)
    throw Error(1, options.positionals.empty()
                       ? std::string("no model is given: dsopt MODEL.onnx [options], or dsopt --help")
                       : "got " + std::to_string(options.positionals.size()) + " models (" +
                             options.positionals[0] + ", " + options.positionals[1] + "), expected one" +
                             adviseOnWords(options.positionals));
  // A model that cannot be read is named first.
  const std::string &model = options.positionals[0];
  bool isThere = model == "-" || llvm::sys::fs::is_regular_file(model);
  if (isThere && options.has("run") && !options.has("data") && !options.has("generate") &&
      !options.has("emit") && !options.has("plan"))
    throw Error(1, std::string(options.has("predict") ? "-predict"
                               : options.has("eval")  ? "-eval"
                                                      : "-run") +
                       " needs -data=FILE.npz");
  if (handover && !handover->makes())
    becomeRuntime(handover->take(), options);
  speaks = true;
  checkPaths(options, launcher);
  return compileHere(options, launcher, handover, configured, argc, argv);
}

/// Whether the command line asks for a run, before all of it is understood.
static bool asksToRun(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    bool isOption = word.consume_front("-");
    word.consume_front("-");
    for (const char *name : {"run", "train", "eval", "predict", "generate"})
      if (word == name && (i == 1 || isOption))
        return true;
  }
  return false;
}

/// The elements of -tile-products=auto: where a model does not fit without.
static int64_t chooseTiles(ModuleOp module, const ParsedOptions &options, const LauncherInfo &launcher) {
  int64_t budget = options.integer("device-memory");
  bool plans = goalStage(options) > Stage::Graph && !options.has("print-pipeline");
  if (options.text("tile-products") != "auto" || budget <= 0 || !plans || findStage(module) != Stage::Graph)
    return 0;
  return Trials(module, options, launcher, budget).search().chooseTiles();
}

/// `carried` is what the model itself sets, `configured` what a configuration does. What is said of the model
/// is said with the first target.
static void compileModel(MLIRContext &context, const ParsedOptions &options,
                         const std::vector<ConfiguredOption> &carried,
                         const std::vector<ConfiguredOption> &configured, const LauncherInfo &launcher,
                         runtime::Handover *handover, Targets &targets, bool isFirst, int argc, char **argv) {
  checkSchedule(options);
  checkCompression(options);
  checkOptimizer(options, context);
  std::string path = options.positionals[0];
  checkName(path);
  if (options.has("inspect")) {
    Inspection found = inspectSource(context, options);
    writeText(options.text("o"), [&](llvm::raw_ostream &out) {
      printInspection(found, options, out);
      return true;
    });
    return;
  }
  bool isText = isStage(path);
  bool reports = options.text("report") == "import";
  if (reports && isText)
    throw Error(1, "-report=import got " + path + ", expected an ONNX model");
  ImportReport report;
  OwningOpRef<ModuleOp> module = readSource(context, options, report, /*warns=*/isFirst);
  if (options.has("list-parameters")) {
    listParameters(isText ? parametersOf(*module) : report.initializers,
                   options.text("list-parameters") == "json", llvm::outs());
    return;
  }
  if (std::string line = summarizeParameters(report.initializers);
      isFirst && !line.empty() && !options.has("quiet") && !options.has("predict") &&
      !options.has("generate"))
    llvm::errs() << "dsopt: " << line << "\n";
  int64_t tiles = chooseTiles(*module, options, launcher);
  Stage stage = takeOptions(*module, options, launcher, runtime::spelledCommand("dsopt", argc, argv));
  checkDeviceOptions(*module, options);
  if (!targets.areSeveral() || !isForDevice(*module))
    setGemmTable(*module, options);
  if (tiles > 0)
    setOption(*module, "tile_products", Builder(&context).getI64IntegerAttr(tiles));
  if (std::string line = describeModelType(*module); isFirst && !line.empty() && !isText &&
                                                     !options.has("quiet") && !options.has("predict") &&
                                                     !options.has("generate"))
    llvm::errs() << "dsopt: " << line << "\n";
  for (const std::string &line : optionsWithoutEffect(*module, options, configured))
    llvm::errs() << "dsopt: warning: " << line << "\n";
  Stage goal = goalStage(options);
  if (goal < stage)
    throw Error(1, path + " is at stage " + stageName(stage).str() + ", which is after " +
                       stageName(goal).str());
  std::vector<std::string> passes = passesTo(goal, *module, options);
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
    return;
  }
  if (options.has("tune")) {
    auto first = llvm::find(passes, "compile-products");
    if (isForDevice(*module) || first == passes.end())
      throw Error(1, "-tune measures products on a processor, and " +
                         (isForDevice(*module) ? "this program is for a GPU: leave -target=cuda out"
                                               : path + " has its kernels already: start from the model"));
    passes.erase(first, passes.end());
  }

  if (options.has("remarks")) {
    remark::RemarkCategories categories;
    categories.missed = kOverlapRemarks.str();
    if (failed(remark::enableOptimizationRemarks(context, /*streamer=*/nullptr,
                                                 std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                                 categories, /*printAsEmitRemarks=*/true)))
      throw Error(1, "-remarks is not possible here");
  }
  Messages messages(context);
  if (reports && failed(printImportReport(report, *module, carried, llvm::errs())))
    messages.fail("the report on the import failed");
  std::string protobuf;
  if (goal == Stage::LLVM && !options.has("tune"))
    if (std::optional<std::string> source = modelPath(*module, path)) {
      auto model = modelWithoutParameters(*source, *module);
      if (failed(model))
        messages.fail("cannot embed the model");
      protobuf = std::move(*model);
    }
  auto lower = makesObjects(options) ? llvm::find(passes, kKernelPasses) : passes.end();
  std::vector<std::string> lowering(lower, passes.end());
  passes.erase(lower, passes.end());
  runPasses(*module, std::move(passes), goal, options, messages);
  KnownKernels known;
  if (!lowering.empty()) {
    std::string text = pipelineText(lowering);
    known = findKnownKernels(*module, text, objectOptions());
    if (failed(runPipeline(*module, text, options.has("insert-pass"))))
      messages.fail("compilation failed");
  }
  // The process ends with what follows: a large program takes long to free, operation by operation.
  ModuleOp compiled = module.release();
  if (options.has("tune"))
    return tuneProducts(compiled, options.text("tune"), options.has("quiet"));
  if (goal == Stage::LLVM && options.text("plan") == "kernels") {
    writeText(options.text("o"), [&](llvm::raw_ostream &out) {
      if (failed(printKernels(compiled, objectOptions(), assemblerBesideTools(), out)))
        messages.fail("planning failed");
      return true;
    });
    return;
  }
  if (goal == Stage::LLVM) {
    Product product{compiled, protobuf, path, handover, targets, std::move(known)};
    if (failed(product.produce(options)))
      messages.fail("code generation failed");
    return;
  }
  if (targets.areSeveral()) {
    llvm::raw_string_ostream text(targets.plans);
    text << "-target=" << options.text("target") << "\n";
    if (failed(printPlan(compiled, text, /*json=*/false, columnsOf(options.text("o")))))
      messages.fail("planning failed");
    if (!isFirst)
      writeText(options.text("o"), [&](llvm::raw_ostream &out) {
        out << targets.plans;
        return true;
      });
    return;
  }
  writeText(options.text("o"), [&](llvm::raw_ostream &out) {
    std::string plan = options.text("plan");
    if (!options.has("plan"))
      printModule(compiled, out);
    else if (plan == "collectives")
      printCollectives(compiled, out);
    else if (plan == "sharding")
      printSharding(compiled, out);
    else if (failed(isCurve ? printRecomputeCurve(compiled, out)
                            : printPlan(compiled, out, plan == "json", columnsOf(options.text("o")))))
      messages.fail("planning failed");
    return true;
  });
}

static int compileHere(const ParsedOptions &options, const LauncherInfo &launcher,
                       runtime::Handover *handover, const std::vector<ConfiguredOption> &configured, int argc,
                       char **argv) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  loadPlugins(options);
  Targets targets(options);
  for (ParsedOptions &one : targets.each) {
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false);
    std::vector<ConfiguredOption> carried = applyModelOptions(one, context);
    try {
      compileModel(context, one, carried, configured, launcher, handover, targets,
                   &one == &targets.each.front(), argc, argv);
    } catch (const Error &error) {
      std::string remedy = findRemedy(context, one, launcher);
      throw withOrigin(remedy.empty() ? error : Error(error.status, error.what() + ("\n  note: " + remedy)),
                       carried);
    }
  }
  return 0;
}

namespace {
/// How this process reaches the other ranks of a run.
struct Reach {
  runtime::Launch launch;
  bool insecure = false;
  std::unique_ptr<runtime::Handover> handover;
};
} // namespace

static int runCompiler(int argc, char **argv, bool &speaks, Reach &reach) {
  ParsedOptions options;
  try {
    if (std::optional<int> status = parseWords(argc, argv, options, llvm::outs()))
      return *status;
  } catch (const Error &) {
    if (asksToRun(argc, argv)) {
      reach.launch = runtime::findLaunch("");
      reach.handover = findHandover(reach.launch, {});
    }
    throw;
  }
  if (options.text("help") == "man") {
    llvm::outs() << runtime::optionsManual(runtime::Tool::Compiler, DSOPT_VERSION);
    return 0;
  }
  if (options.has("help")) {
    llvm::outs() << "usage: dsopt [WORD] MODEL.onnx|STAGE.mlir [options]\n\nwords:\n";
    for (const runtime::CommandWord &word : runtime::commandWords())
      llvm::outs() << llvm::left_justify(std::string("  ") + word.name, 34) << word.help << "\n";
    llvm::outs() << "\n" << runtime::optionsHelp(runtime::Tool::Compiler);
    return 0;
  }
  if (options.has("completion")) {
    llvm::outs() << runtime::optionsCompletion(runtime::Tool::Compiler, options.text("completion"), "dsopt");
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
  if (options.has("tokenize"))
    return tokenize(options, llvm::outs());
  // An evaluation is a run, unless something else is asked for.
  checkPrediction(options);
  if ((options.has("eval") || options.has("predict") || options.has("generate")) && !options.has("o") &&
      !options.has("emit") && !options.has("plan"))
    options.setDefault("run", "");
  LauncherInfo launcher = options.has("run") ? findLauncher(options) : LauncherInfo();
  if (options.has("run"))
    reach.launch = runtime::findLaunch(options.text("launcher"));
  reach.insecure = options.has("insecure");
  reach.handover = findHandover(reach.launch, options);
  std::vector<ConfiguredOption> configured = applyConfig(options, launcher, launcher.rank != 0);
  try {
    return compile(options, launcher, reach.handover.get(), configured, argc, argv, speaks);
  } catch (const runtime::LaunchError &) {
    throw;
  } catch (const Error &error) {
    throw withOrigin(error, configured);
  }
}

/// What LLVM ends the process for.
static void endFor(void *, const char *reason, bool) {
  // No memory is asked for: there may be none.
  for (const char *text : {"dsopt: error: ", reason, "\n"})
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0)
      break;
  _exit(runtime::StatusFailure);
}
static void endWithoutMemory(void *user, const char *, bool diagnose) {
  endFor(user, "the system gives no more memory to compile with (limits: ulimit -v, ulimit -d, the cgroup's)",
         diagnose);
}

int main(int argc, char **argv) {
  runtime::prepareProcess();
  llvm::install_bad_alloc_error_handler(endWithoutMemory);
  llvm::install_out_of_memory_new_handler();
  llvm::install_fatal_error_handler(endFor);
  bool speaks = runtime::launchedRank() <= 0;
  Reach reach;
  int status;
  try {
    runtime::fault::start();
    status = runCompiler(argc, argv, speaks, reach);
    finishStandardOutput();
  } catch (const Error &error) {
    // Said before the other ranks end, after which a launcher ends this one.
    speaks |=
        dynamic_cast<const runtime::LaunchError *>(&error) || (reach.handover && reach.handover->makes());
    if (speaks)
      printError(error);
    status = error.status;
    // What could not be printed before it is no second error.
    llvm::outs().flush();
    llvm::outs().clear_error();
    bool isSaid = speaks || error.quiet;
    bool isToldHere = reach.handover && reach.handover->fail(error.status, error.what());
    isSaid |= isToldHere;
    // Where the program is handed over, its maker tells other hosts.
    if (!isToldHere || (reach.handover->makes() && reach.launch.localSize != reach.launch.size))
      isSaid |= runtime::tellOthers(reach.launch, reach.insecure, error, isSaid);
    if (!isSaid && reach.launch.size > 1)
      printError(error);
  }
  // Where standard error is gone, nobody can be told.
  llvm::errs().clear_error();
  return status;
}

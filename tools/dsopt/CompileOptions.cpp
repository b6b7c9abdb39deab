//===- CompileOptions.cpp - what the command line means for a module ------===//

#include "CompileOptions.h"
#include "CompressionOptions.h"
#include "Messages.h"
#include "NodeOptions.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Pipeline/Plan.h"
#include "dsopt/Runtime/Launch.h"
#include "dsopt/Runtime/SaveFolder.h"
#include "dsopt/Runtime/Session.h"
#include "dsopt/Target/Target.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <sched.h>
#include <thread>

using namespace mlir;
using dsopt::runtime::Error;
using dsopt::runtime::OptionUse;
using dsopt::runtime::ParsedOptions;

namespace dsopt {

LauncherInfo findLauncher(const ParsedOptions &options) {
  runtime::Launch launch = runtime::findLaunch(options.text("launcher"));
  LauncherInfo info;
  if (launch.launcher == runtime::Launcher::Local)
    return info;
  if (launch.size < 1)
    throw Error(1,
                "-launcher=mpi is given, but nothing says how many ranks were started (OMPI_COMM_WORLD_SIZE "
                "is not set): start it with mpirun");
  info.worldSize = launch.size;
  info.rank = std::max(launch.rank, 0);
  // Without a number on its host, a rank compiles for itself.
  info.localRank = std::max(launch.localRank, 0);
  info.localSize = launch.localRank < 0 ? 1 : std::max(launch.localSize, 1);
  info.job = launch.job;
  return info;
}

namespace {
/// The options that decide the layout, resolved.
struct Layout {
  int64_t dp = 1, pp = 1, sp = 1, tp = 1, tensorShards = 1, sequenceShards = 1, zero = 0, microBatches = 1,
          shards = 1, rows = 0;
  std::string accumulate;
};
} // namespace

/// The common first dimension of the inputs, 0 if they have none.
static int64_t commonRows(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  int64_t rows = 0;
  if (forward)
    for (Type type : forward.getArgumentTypes()) {
      auto shape = cast<ShapedType>(type).getShape();
      if (shape.empty() || (rows && shape[0] != rows))
        return 0;
      rows = shape[0];
    }
  return rows;
}

static std::string str(int64_t value) { return std::to_string(value); }

/// The checkpoint whose batch a program is compiled for, if it is to go on from one.
static std::optional<runtime::Manifest> resumedManifest(const ParsedOptions &options, int64_t dp) {
  if (!options.has("resume") || options.has("resume-new-batch"))
    return std::nullopt;
  bool isAutomatic = options.text("resume") == "auto";
  std::string folder = options.text(isAutomatic ? "save" : "resume"), checkpoint;
  std::optional<runtime::Manifest> found;
  for (std::vector<std::string> all = runtime::findCheckpoints(folder); !found && !all.empty();
       all.pop_back())
    try {
      checkpoint = all.back();
      found = runtime::readManifest(checkpoint);
    } catch (const runtime::Unreadable &) {
      if (!isAutomatic)
        throw;
    }
  if (!found)
    return std::nullopt; // the run says so, unless it is `auto`
  const runtime::Manifest &manifest = *found;
  std::vector<int64_t> degrees = runtime::possibleDegrees(manifest.K, manifest.V);
  if (!llvm::is_contained(degrees, dp)) {
    std::string list;
    for (int64_t degree : degrees)
      list += (list.empty() ? "" : ", ") + str(degree);
    throw Error(1, "-resume: " + checkpoint + " was written with " + str(manifest.K) +
                       " micro-batches a step in " + str(manifest.V) +
                       " shards; it goes on with the same bits under -dp of " + list + ", not " + str(dp) +
                       "; -resume-new-batch goes on with a new batch");
  }
  return manifest;
}

/// Shards of a sequence are added below those of the batch.
static void checkSequence(const Layout &layout) {
  if (layout.sp == 1)
    return;
  if (layout.shards != layout.dp)
    throw Error(1, "-reduction-shards=" + str(layout.shards) + " with -dp=" + str(layout.dp) +
                       " and -sp=" + str(layout.sp) + ": expected as many as -dp where -sp is above 1");
  if (layout.dp > 1 && (layout.sp & (layout.sp - 1)))
    throw Error(1, "-sp=" + str(layout.sp) + " with -dp=" + str(layout.dp) +
                       ": expected a power of two where -dp is above 1");
}

static Layout resolveLayout(ModuleOp module, const ParsedOptions &options, const LauncherInfo &launcher) {
  Layout layout;
  auto get = [&](const char *name, int64_t otherwise) {
    std::string key = name;
    std::replace(key.begin(), key.end(), '-', '_');
    return options.has(name) ? options.integer(name) : getOption(module, key, otherwise);
  };
  layout.pp = get("pp", 1);
  layout.sp = get("sp", 1);
  layout.tp = get("tp", 1);
  int64_t others = layout.pp * layout.sp * layout.tp;
  layout.dp = get("dp", launcher.worldSize ? std::max<int64_t>(1, launcher.worldSize / others) : 1);
  layout.zero = get("zero", 0);
  if (int64_t ranks = layout.dp * others; launcher.worldSize && launcher.worldSize != ranks)
    throw Error(1, "the launcher started " + str(launcher.worldSize) + " ranks, but -dp=" + str(layout.dp) +
                       " x -pp=" + str(layout.pp) + (layout.sp > 1 ? " x -sp=" + str(layout.sp) : "") +
                       (layout.tp > 1 ? " x -tp=" + str(layout.tp) : "") + " needs " + str(ranks));
  layout.rows = commonRows(module);
  if (options.has("micro-batch-size") && layout.rows && options.integer("micro-batch-size") != layout.rows)
    throw Error(1, "-micro-batch-size=" + options.text("micro-batch-size") +
                       ", but the model's inputs have " + str(layout.rows) + " rows");
  std::optional<runtime::Manifest> resumed = resumedManifest(options, layout.dp);
  auto getShards = [&](const std::string &name, const std::string &axis, int64_t ranks,
                       int64_t resumedShards) {
    int64_t shards = get(name.c_str(), resumed ? resumedShards : ranks), each = shards / ranks;
    if (ranks > 1 && (shards % ranks || (each & (each - 1))))
      throw Error(1, "-" + name + "=" + str(shards) +
                         (resumed && !options.has(name) ? ", as the checkpoint of -resume has them," : "") +
                         " over -" + axis + "=" + str(ranks) + ": expected -" + axis +
                         " times a power of two");
    return shards;
  };
  layout.tensorShards = getShards("tensor-shards", "tp", layout.tp, resumed ? resumed->T : 1);
  layout.sequenceShards = getShards("sequence-shards", "sp", layout.sp, resumed ? resumed->Q : 1);
  layout.microBatches = get("micro-batches", options.has("generate") ? 1
                                             : resumed               ? resumed->K / layout.dp
                                                                     : layout.pp);
  if (options.has("global-batch")) {
    if (!layout.rows)
      throw Error(1, "-global-batch needs inputs with one common first dimension");
    int64_t global = options.integer("global-batch"), unit = layout.dp * layout.rows;
    if (global % unit)
      throw Error(1, "-global-batch=" + str(global) + " is no multiple of " + str(unit) + " (" +
                         str(layout.dp) + " dp x " + str(layout.rows) + " rows of a micro-batch)");
    if (options.has("micro-batches") && options.integer("micro-batches") * unit != global)
      throw Error(1, "-global-batch=" + str(global) + " and -micro-batches=" + options.text("micro-batches") +
                         " contradict each other: " + str(layout.dp) + " dp x " +
                         options.text("micro-batches") + " micro-batches x " + str(layout.rows) +
                         " rows are " + str(options.integer("micro-batches") * unit));
    layout.microBatches = global / unit;
  }
  layout.shards = get("reduction-shards", resumed ? resumed->V : layout.dp);
  int64_t total = layout.dp * layout.microBatches;
  if (layout.shards < 1 || total % layout.shards)
    throw Error(1, "-reduction-shards=" + str(layout.shards) + " does not divide the " + str(total) +
                       " micro-batches of a step (" + str(layout.dp) + " dp x " + str(layout.microBatches) +
                       ")");
  int64_t perRank = layout.shards / layout.dp;
  if (layout.dp > 1 && (layout.shards % layout.dp || (perRank & (perRank - 1))))
    throw Error(1, "-reduction-shards=" + str(layout.shards) + " over -dp=" + str(layout.dp) +
                       ": expected -dp times a power of two");
  checkSequence(layout);
  // What ranks exchange behind a freeze is made of whole gradients.
  bool freezes = options.has("freeze-step") || options.text("optimizer") == "zero-one-adam";
  std::string byStage = resumed                                                       ? resumed->accumulate
                        : (layout.zero >= 2 && !freezes) || layout.sequenceShards > 1 ? "sharded"
                                                                                      : "local";
  layout.accumulate = options.has("accumulate") ? options.text("accumulate")
                                                : options::accumulate(module).value_or(byStage).str();
  if (int64_t each = layout.sequenceShards / layout.sp, runs = total / layout.shards;
      layout.accumulate == "local" && each > 1 && runs > 1)
    throw Error(1, "-accumulate=local with " + str(each) + " sequence shards a rank and " + str(runs) +
                       " micro-batches a reduction shard: their sums would have to be kept apart; expected "
                       "-accumulate=sharded");
  return layout;
}

/// Elements of -tile-products: 0 where nothing is cut, or nothing was chosen yet.
static int64_t tileElements(const ParsedOptions &options) {
  std::string text = options.text("tile-products");
  int64_t elements = 0;
  if (text != "none" && text != "auto" && (!runtime::parseSize(text, 1000, elements) || elements < 1))
    throw Error(1, "-tile-products=" + text + ": expected none, auto or a number of elements");
  return elements;
}

/// The CPUs this process may run on: affinity, then the cgroup's quota.
static int64_t availableCpus() {
  cpu_set_t set;
  int64_t cpus =
      sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : std::thread::hardware_concurrency();
  if (FILE *file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    char quota[32];
    long period = 0;
    if (std::fscanf(file, "%31s %ld", quota, &period) == 2 && std::isdigit((unsigned char)quota[0]) &&
        period > 0)
      cpus = std::min<int64_t>(cpus, std::max<int64_t>(1, std::atoll(quota) / period));
    std::fclose(file);
  }
  return std::max<int64_t>(1, cpus);
}

/// Refuses -arch and -threads that contradict what the module was built for.
static void checkTarget(ModuleOp module, const ParsedOptions &options) {
  auto present = module->getAttrOfType<TargetAttr>(kTargetAttr);
  auto refuse = [&](const char *option, const std::string &builtFor) {
    throw Error(1, std::string("-") + option + "=" + options.text(option) +
                       " cannot be changed any more: this module " +
                       (present ? "was built for " + builtFor : "does not say what it was built for") +
                       "; start from the model");
  };
  if (options.has("target") && (!present || options.text("target") != stringifyTargetKind(present.getKind())))
    refuse("target", present ? stringifyTargetKind(present.getKind()).str() : "");
  if (options.has("arch")) {
    Messages messages(*module.getContext());
    FailureOr<TargetAttr> given =
        resolveTarget(module.getLoc(), present ? present.getKind() : TargetKind::CPU, options.text("arch"),
                      present ? present.getThreads() : 1);
    if (failed(given))
      messages.fail("-arch=" + options.text("arch") + " is unknown");
    if (*given != present)
      refuse("arch", present ? present.getArch().str() : "");
  }
  if (!options.has("threads"))
    return;
  // A run may take fewer than there is scratch for.
  int64_t threads = options.integer("threads");
  if (!present || threads > present.getThreads() || (threads < present.getThreads() && !options.has("run")))
    refuse("threads", present ? str(present.getThreads()) + " threads" : "");
}

/// What optimizers that freeze their variance take, and what goes with them.
static void checkFreeze(ModuleOp module, const ParsedOptions &options, const Layout &layout) {
  std::string optimizer = options.text("optimizer");
  bool movesApart = optimizer == "zero-one-adam", isLamb = optimizer == "onebit-lamb";
  bool freezes = optimizer == "onebit-adam" || isLamb || movesApart;
  auto refuseOption = [&](const char *name, const char *expected) {
    if (options.has(name))
      throw Error(1, "-" + std::string(name) + "=" + options.text(name) + " has no meaning with -optimizer=" +
                         optimizer + ": expected -optimizer=" + expected);
  };
  if (!freezes)
    refuseOption("freeze-step", "onebit-adam, onebit-lamb or zero-one-adam");
  if (optimizer != "onebit-adam")
    refuseOption("onebit-gather", "onebit-adam");
  for (const char *name : {"var-update-scaler", "local-step-scaler", "local-step-clipper"})
    if (!movesApart)
      refuseOption(name, "zero-one-adam");
  if (!freezes)
    return;
  if (!movesApart && !options.has("freeze-step"))
    throw Error(1, "-optimizer=" + optimizer + " needs -freeze-step=N, the applied steps of its warm-up");
  auto refuse = [&](const std::string &with, const std::string &instead) {
    throw Error(1, "-optimizer=" + optimizer + " does not go with " + with + ": " + instead);
  };
  if (layout.zero == 3)
    refuse("-zero=3", "ranks exchange whole momenta behind the freeze; expected -zero=0, 1 or 2");
  if (layout.accumulate != "local")
    refuse("-accumulate=" + layout.accumulate,
           "behind the freeze each rank has its own gradient whole; expected -accumulate=local");
  if (options.has("delayed-update"))
    refuse("-delayed-update", "its updates follow an exchange; expected no delay");
  if (options.text("offload-optimizer") == "nvme")
    refuse("-offload-optimizer=nvme", "whole momenta are needed at once; expected none or cpu");
  if (options.text("offload-params") != "none")
    refuse("-offload-params=" + options.text("offload-params"), "parameters are whole; expected none");
  if (options.text("onebit-gather") == "parameters") {
    auto without = [&](const std::string &with, const std::string &instead) {
      throw Error(1, "-onebit-gather=parameters does not go with " + with + ": " + instead);
    };
    if (layout.zero == 0)
      without("-zero=0", "variances and masters are cut by stages 1 and 2; expected -zero=1 or 2");
    if (options.text("offload-optimizer") != "none")
      without("-offload-optimizer=" + options.text("offload-optimizer"),
              "ranks gather momenta in the first memory; expected none");
    setOption(module, optionKey("onebit-gather"), Builder(module.getContext()).getStringAttr("parameters"));
  }
  if (!movesApart)
    return;
  Builder builder(module.getContext());
  for (const char *name : {"var-update-scaler", "local-step-scaler", "local-step-clipper"})
    setOption(module, optionKey(name), builder.getI64IntegerAttr(options.integer(name, 1)));
  if (!options.has("freeze-step"))
    setOption(module, "freeze_step", builder.getI64IntegerAttr(100000));
}

/// What a module keeps of an option that was given, or has a default.
static Attribute keptValue(Builder &builder, const runtime::OptionRow &row, const ParsedOptions &options) {
  using runtime::OptionKind;
  if (row.repeatable()) {
    std::vector<std::string> values = options.list(row.name);
    // Inputs are bound in any order.
    if (StringRef(row.name) == "input")
      llvm::sort(values);
    return builder.getStrArrayAttr(SmallVector<StringRef>(values.begin(), values.end()));
  }
  if (llvm::is_contained({OptionKind::Count, OptionKind::Integer, OptionKind::Bytes}, row.kind))
    return builder.getI64IntegerAttr(options.integer(row.name));
  return builder.getStringAttr(options.text(row.name));
}

void setCompileOptions(ModuleOp module, const ParsedOptions &options, const LauncherInfo &launcher,
                       const std::string &commandLine) {
  Builder builder(module.getContext());
  bool hasTarget = module->hasAttr(kTargetAttr);
  for (const runtime::OptionRow &row : runtime::optionTable())
    // What a module is compiled for it says itself, once it does.
    if (row.kept != runtime::OptionKept::No && options.has(row.name) &&
        !(hasTarget && llvm::is_contained({"arch", "target", "threads"}, StringRef(row.name))))
      setOption(module, optionKey(row.name), keptValue(builder, row, options));
  if (hasTarget)
    checkTarget(module, options);

  // What follows from several options, or from more than them.
  auto setInteger = [&](StringRef name, int64_t value) {
    setOption(module, name, builder.getI64IntegerAttr(value));
  };
  Layout layout = resolveLayout(module, options, launcher);
  setInteger("dp", layout.dp);
  setInteger("pp", layout.pp);
  if (layout.tensorShards > 1) {
    setInteger("tp", layout.tp);
    setInteger("tensor_shards", layout.tensorShards);
  }
  if (layout.sequenceShards > 1) {
    setInteger("sp", layout.sp);
    setInteger("sequence_shards", layout.sequenceShards);
  }
  setInteger("zero", layout.zero);
  setInteger("micro_batches", layout.microBatches);
  setInteger("reduction_shards", layout.shards);
  setOption(module, "accumulate", builder.getStringAttr(layout.accumulate));
  if (layout.rows)
    setInteger("micro_batch_size", layout.rows);
  setNodeOptions(module, options, launcher);
  auto modelType = module->getAttrOfType<TypeAttr>(graph::kModelTypeAttr);
  if (modelType && modelType.getValue().isBF16() && !options.has("precision"))
    setOption(module, "precision", builder.getStringAttr("bf16"));
  for (const char *name : runtime::kLossScaleOptions)
    if (options.has(name) && !runtime::scalesLoss(options::precision(module).str()))
      throw Error(1, std::string("option -") + name + " is of -precision=fp16, whose loss is scaled");
  runtime::fixedLossScale(options.text("loss-scale"));
  if (options.text("init") != "model")
    runtime::initDeviation(options.text("init"));
  runtime::diskOptions(options.text("aio"));
  checkFreeze(module, options, layout);
  checkCompression(module, options);
  if (options.has("link") && !parseLink(options.text("link")))
    throw Error(1, "-link=" + options.text("link") + ": expected a rate such as 1Gb/s or 5GB/s");
  if (options.has("tile-products") || !getOption(module, "tile_products"))
    setInteger("tile_products", tileElements(options));
  if (options.has("grad-clip") || !getOption(module, "clip"))
    setInteger("clip", options.number("grad-clip") > 0);
  if (options.has("momentum") || !getOption(module, "momentum"))
    setInteger("momentum", options.number("momentum") > 0);
  if (!hasTarget && (options.has("threads") || !options::threads(module))) {
    int64_t given = options.integer("threads"), cpus = availableCpus();
    if (given > cpus && options.has("run") && !options.has("quiet"))
      llvm::errs() << "dsopt: -threads=" << given << " are more than the " << cpus
                   << " CPUs of this process: they take turns\n";
    int64_t localRanks =
        launcher.worldSize ? launcher.localSize : layout.dp * layout.pp * layout.sp * layout.tp;
    setInteger("threads", options.has("threads") ? given : std::max<int64_t>(1, cpus / localRanks));
  }
  if (options.has("eval") || options.has("predict") || options.has("generate"))
    setInteger("train", 0);
  if (options.has("generate"))
    setInteger("generate", 1);
  if (!getOption(module, "command"))
    setOption(module, "command", builder.getStringAttr(commandLine));

  NamedAttrList defaults(dyn_cast_or_null<DictionaryAttr>(getOption(module, "run_defaults")));
  for (const auto &[name, values] : options.values)
    if (const runtime::OptionRow *row = runtime::findOption(name); row && row->use == OptionUse::Run)
      defaults.set(name, builder.getStringAttr(llvm::join(values, ",")));
  // The path of the data is not part of a program; a tokenizer is in it.
  for (const char *name : {"data", "eval", "eval-data", "log", "quiet", "save-outputs", "save-weights",
                           "save-onnx", "trace", "compare", "breakdown", "report", "prompt", "prompts",
                           "prompt-ids", "tokenizer", "tokenizer-pattern"})
    defaults.erase(name);
  setOption(module, "run_defaults", defaults.getDictionary(module.getContext()));
}

void checkPrecision(ModuleOp module) {
  if (options::precision(module) != "fp16")
    return;
  StringRef arch = options::arch(module);
  auto present = module->getAttrOfType<TargetAttr>(kTargetAttr);
  FailureOr<TargetAttr> target =
      present ? FailureOr<TargetAttr>(present)
              : resolveTarget(module.getLoc(), isForDevice(module) ? TargetKind::CUDA : TargetKind::CPU, arch,
                              /*threads=*/1);
  if (succeeded(target) && !convertsF16(*target))
    throw Error(1, "-precision=fp16 needs F16C, which " + target->getArch().str() + " has not");
}

std::string describeModelType(ModuleOp module) {
  auto type = module->getAttrOfType<TypeAttr>(graph::kModelTypeAttr);
  if (!type)
    return "";
  std::string name;
  llvm::raw_string_ostream(name) << type.getValue();
  return "the model's parameters are " + name + ": trained as fp32 masters, computed in " +
         options::precision(module).str() + " (-precision), saved as " + name;
}

/// Whether two spellings mean the same: alike but for how the number is written that they end in.
static bool meanTheSame(StringRef a, StringRef b) {
  auto split = [](StringRef text) {
    size_t number = text.find_last_of("=:") + 1; // of GLOB=X, normal:X
    return std::pair(text.take_front(number), text.drop_front(number));
  };
  auto [name, number] = split(a);
  auto [otherName, otherNumber] = split(b);
  double x = 0, y = 0;
  return a == b || (name == otherName && !number.getAsDouble(x) && !otherNumber.getAsDouble(y) && x == y);
}

/// What the module was built with of an option; null where it does not keep it.
static Attribute builtWith(ModuleOp module, StringRef option) {
  int64_t rows = options::micro_batch_size(module).value_or(0);
  if (option == "global-batch" && rows)
    return Builder(module.getContext())
        .getI64IntegerAttr(options::dp(module).value_or(1) * options::micro_batches(module).value_or(1) *
                           rows);
  return getOption(module, optionKey(option));
}

/// Whether a given option means `present`.
static bool isValue(const ParsedOptions &options, const std::string &name, Attribute present) {
  std::vector<std::string> given = options.list(name);
  if (auto number = dyn_cast<IntegerAttr>(present))
    return options.integer(name, number.getInt() - 1) == number.getInt();
  if (auto text = dyn_cast<StringAttr>(present))
    return meanTheSame(text.getValue(), given.back());
  auto list = dyn_cast<ArrayAttr>(present);
  return list && llvm::equal(list.getAsValueRange<StringAttr>(), given, meanTheSame);
}

static std::string valueText(Attribute value) {
  if (auto number = dyn_cast<IntegerAttr>(value))
    return str(number.getInt());
  if (auto list = dyn_cast<ArrayAttr>(value))
    return llvm::join(list.getAsValueRange<StringAttr>(), ",");
  return cast<StringAttr>(value).str();
}

void setLaterOptions(ModuleOp module, const ParsedOptions &options, Stage stage) {
  Builder builder(module.getContext());
  checkTarget(module, options);
  for (const auto &[name, values] : options.values) {
    const runtime::OptionRow *row = runtime::findOption(name);
    if (!row || !row->isCompiledIn() || name == "arch" || name == "target" || name == "gemm-table")
      continue;
    Attribute present = builtWith(module, name);
    if (!present && row->kept != runtime::OptionKept::No && *row->defaultValue)
      present = keptValue(builder, *row, ParsedOptions());
    if (present && isValue(options, name, present))
      continue;
    if (name == "tile-products" && tileElements(options) == getOption(module, "tile_products", 0))
      continue;
    if (stage != Stage::Dist || row->use != OptionUse::Schedule)
      throw Error(
          1, "-" + name + "=" + llvm::join(values, ",") + " cannot be changed any more: this module " +
                 (present ? "was built with " + valueText(present) : "does not say what it was built with") +
                 "; start from the model");
    setOption(module, optionKey(name), keptValue(builder, *row, options));
  }
}

} // namespace dsopt

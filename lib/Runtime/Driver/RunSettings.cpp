//===- RunSettings.cpp - a run's options against what is compiled in ------===//

#include "RunSettings.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Data.h"
#include "dsopt/Runtime/OptimizerFacts.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <sys/stat.h>

using namespace dsopt::runtime;

/// Splits a recorded command line at blanks outside quotes.
static std::vector<std::string> splitWords(const std::string &text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  for (char c : text) {
    if (quote ? c == quote : c == '\'' || c == '"')
      quote = quote ? 0 : c;
    if (c == ' ' && !quote) {
      if (!word.empty())
        words.push_back(word);
      word.clear();
      continue;
    }
    word += c;
  }
  if (!word.empty())
    words.push_back(word);
  return words;
}

std::string dsopt::runtime::dsoptCommand(const Program &program, const std::vector<std::string> &given) {
  std::string command;
  for (const std::string &word : splitWords(program.command)) {
    bool replaced = false;
    size_t dashes = word.find_first_not_of('-');
    if (dashes == 1 || dashes == 2) {
      std::string name =
          word.substr(dashes, word.find('=') == std::string::npos ? word.size() : word.find('=') - dashes);
      for (const std::string &other : given) {
        const OptionRow *row = findOption(name);
        replaced |= other.substr(0, other.find('=')) == name && !(row && row->repeatable());
      }
    }
    if (!replaced)
      command += (command.empty() ? "" : " ") + word;
  }
  if (command.empty())
    command = "dsopt " + (program.model.empty() ? std::string("MODEL") : program.model);
  for (const std::string &option : given)
    command += " -" + option;
  return command;
}

void dsopt::runtime::refuseCompiledIn(const Program &program, const std::vector<std::string> &given) {
  std::string name = given.front().substr(0, given.front().find('='));
  const OptionRow *row = findOption(name);
  bool command = row && row->use == OptionUse::Command;
  throw Error(StatusInput, "option -" + name +
                               (command            ? " is one of dsopt, not of a trained program"
                                : name == "target" ? " is compiled in (where both are, -run-on chooses)"
                                                   : " is compiled in") +
                               "; use: " + dsoptCommand(program, given));
}

/// Whether the program's updates have state of this kind (sgd with momentum).
static bool hasMomentum(const Program &program) {
  for (const Position &position : program.positions)
    for (const Action &update : position.updates)
      return update.refs.size() > (program.precision == "fp32" ? 2 : 3); // with masters
  return false;
}

/// Sets the optimizer's defaults. What it does not take is an Error, and what it cannot take.
static void resolveOptimizer(const Program &program, ParsedOptions &options) {
  const std::string &name = program.optimizer;
  const OptimizerFacts &facts = factsOf(name);
  for (auto [option, value] : facts.defaults)
    options.setDefault(option, value);
  for (auto [option, takes] :
       {std::pair("betas", facts.takesBetas), {"eps", facts.takesEps}, {"momentum", facts.takesMomentum}})
    if (facts.refuses && !takes && options.has(option))
      throw Error(StatusInput, std::string("option -") + option + " has no meaning with -optimizer=" + name);
  if (options.has("adam-lr") && name != "muon")
    throw Error(StatusInput, "option -adam-lr has no meaning with -optimizer=" + name);
  if (name == "muon" && !(options.number("momentum") < 1))
    throw Error(StatusInput, "option -momentum=" + options.text("momentum") +
                                 ": -optimizer=muon takes a mean by it, expected a number from 0 to below 1");
  if (facts.takesEps && !(static_cast<float>(options.number("eps")) > 0))
    throw Error(StatusInput, "option -eps=" + options.text("eps") + ": -optimizer=" + name +
                                 " divides by it where gradients are 0, expected a number above 0 in fp32");
}

/// The bounds of 1-bit LAMB's coefficients; what they cannot be is an Error, and with other rules all of
/// them.
static LambOptions resolveLamb(const Program &program, const ParsedOptions &options) {
  LambOptions lamb;
  for (auto [option, number, isShare] : {std::tuple("min-coeff", &lamb.leastCoeff, false),
                                         {"max-coeff", &lamb.largestCoeff, false},
                                         {"coeff-beta", &lamb.coeffBeta, true},
                                         {"factor-min", &lamb.factorMin, false},
                                         {"factor-max", &lamb.factorMax, false},
                                         {"factor-threshold", &lamb.factorThreshold, true}}) {
    if (options.has(option) && program.optimizer != "onebit-lamb")
      throw Error(StatusInput, std::string("option -") + option + " has no meaning with -optimizer=" +
                                   program.optimizer + ": expected -optimizer=onebit-lamb");
    *number = options.number(option);
    if (isShare && !(*number < 1))
      throw Error(StatusInput, std::string("option -") + option + "=" + options.text(option) +
                                   ": expected a number from 0 to below 1");
  }
  for (auto [least, largest] : {std::pair("min-coeff", "max-coeff"), {"factor-min", "factor-max"}})
    if (options.number(least) > options.number(largest))
      throw Error(StatusInput, std::string("option -") + least + "=" + options.text(least) +
                                   ": expected at most -" + largest + "=" + options.text(largest));
  return lamb;
}

/// The seed of the order of actions whose accesses are checked, 0: they are not.
static int64_t accessSeed() {
  const char *text = std::getenv("DSOPT_CHECK_ACCESSES");
  if (!text || !*text)
    return 0;
  int64_t seed = 0;
  const char *last = text + std::strlen(text);
  auto [end, error] = std::from_chars(text, last, seed);
  if (error != std::errc() || end != last || seed < 0 || seed > INT32_MAX)
    throw Error(StatusInput, std::string("environment variable DSOPT_CHECK_ACCESSES=") + text +
                                 ": expected 1 or another seed of the order of actions, or 0");
  return seed;
}

/// The schedule with its parameters; what it does not take is an Error.
static void resolveSchedule(RunOptions &run, const Program &program, const ParsedOptions &options) {
  std::string name = options.text("lr-schedule");
  run.schedule = lrScheduleNamed(name);
  run.lrParameters = lrParameters(run.schedule, options.text("lr-params"));
  if (run.schedule == LrSchedule::Stream) {
    for (const char *option : {"warmup-steps", "lr-decay-steps", "min-lr"})
      if (options.has(option))
        throw Error(StatusInput,
                    std::string("option -") + option +
                        " has no meaning with -lr-schedule=stream: each step's data says its rate");
    if (program.delayed_update > 0)
      throw Error(StatusInput, "option -lr-schedule=stream: the program delays updates (-delayed-update=" +
                                   std::to_string(program.delayed_update) +
                                   "), whose rate would come with another step's data");
  }
  if (!isDeepSpeeds(run.schedule))
    return;
  auto refuse = [&](const char *option, const std::string &instead) {
    if (options.has(option))
      throw Error(StatusInput, std::string("option -") + option + " has no meaning with -lr-schedule=" +
                                   name + "; -lr-params takes " + instead);
  };
  refuse("min-lr", run.schedule == LrSchedule::WarmupCosine ? "cos_min_ratio" : "its floor");
  bool warms = run.schedule <= LrSchedule::WarmupCosine;
  if (!warms)
    refuse("warmup-steps", "its steps");
  else if (run.warmupSteps < 1)
    throw Error(StatusInput, "option -lr-schedule=" + name + " needs -warmup-steps=W of 1 or more");
  bool cycles = run.schedule == LrSchedule::OneCycle;
  if (cycles && run.lrParameters["cycle_momentum"] > 0 && !factsOf(program.optimizer).takesBetas)
    run.lrParameters["cycle_momentum"] = 0; // as DeepSpeed: only betas move
}

/// How the loss is scaled. Options of it for which there is no use are an Error.
static LossScaleOptions resolveLossScale(const Program &program, const ParsedOptions &options,
                                         const ParsedOptions &given) {
  LossScaleOptions scale;
  scale.fixed = fixedLossScale(options.text("loss-scale"));
  scale.initialPower = options.integer("initial-scale-power");
  scale.window = options.integer("loss-scale-window");
  scale.hysteresis = options.integer("loss-scale-hysteresis");
  scale.least = options.number("min-loss-scale");
  for (const char *name : kLossScaleOptions) {
    if (!options.has(name))
      continue;
    if (!scalesLoss(program.precision))
      throw Error(
          StatusInput,
          std::string("option -") + name + ": the program is of -precision=" + program.precision +
              ", whose loss is not scaled; use: " +
              dsoptCommand(program, {"precision=fp16", std::string(name) + "=" + options.text(name)}));
    if (scale.fixed > 0 && given.has(name) && name != std::string("loss-scale"))
      throw Error(StatusInput, std::string("option -") + name +
                                   " is of a dynamic loss scale, but -loss-scale=" +
                                   options.text("loss-scale") + " is given");
  }
  checkLossScale(scale);
  return scale;
}

RunSettings dsopt::runtime::resolveSettings(const Program &program, ParsedOptions options) {
  RunSettings settings;
  // The launcher first: it decides which rank prints what is wrong with the rest.
  settings.launch = findLaunch(options.text("launcher"));
  if (!options.compiledIn.empty())
    refuseCompiledIn(program, options.compiledIn);
  const ParsedOptions given = options;
  bool stepsGiven = options.has("steps"), epochsGiven = options.has("epochs");
  if (stepsGiven && epochsGiven)
    throw Error(StatusInput, "options -steps and -epochs exclude each other");
  for (auto &[name, value] : program.defaults) {
    const OptionRow *row = findOption(name);
    bool other = (name == "steps" && epochsGiven) || (name == "epochs" && stepsGiven);
    if (row && row->use == OptionUse::Run && !other)
      options.setDefault(name, value);
  }

  RunOptions &run = settings.options;
  resolveOptimizer(program, options);
  run.lr = options.number("lr");
  if (options.has("adam-lr")) {
    if (!(run.lr > 0))
      throw Error(StatusInput, "option -adam-lr=" + options.text("adam-lr") + " needs -lr above 0, got " +
                                   options.text("lr"));
    run.adamLrFactor = options.number("adam-lr") / run.lr;
  }
  run.minLr = options.number("min-lr");
  run.momentum = options.number("momentum");
  std::tie(run.beta1, run.beta2) = options.numberPair("betas");
  run.eps = options.number("eps");
  run.weightDecay = options.number("weight-decay");
  run.lamb = resolveLamb(program, options);
  run.gradClip = options.number("grad-clip");
  run.lossScale = resolveLossScale(program, options, given);
  run.seed = options.integer("seed");
  run.nvmePath = options.text("nvme-path");
  run.engine = options.text("engine");
  run.cudaGraph = options.text("cuda-graph");
  run.disk = diskOptions(options.text("aio"));
  run.warmupSteps = options.integer("warmup-steps");
  run.decaySteps = options.integer("lr-decay-steps");
  resolveSchedule(run, program, options);
  run.checkAccesses = accessSeed();
  run.logNorms = options.has("log-norms");
  if (program.clip != (run.gradClip > 0))
    throw Error(StatusInput, std::string("option -grad-clip: clipping is compiled ") +
                                 (program.clip ? "in, expected a value above 0" : "out") + "; use: " +
                                 dsoptCommand(program, {"grad-clip=" + options.text("grad-clip")}));
  if (program.optimizer == "sgd" && hasMomentum(program) != (run.momentum > 0))
    throw Error(StatusInput, std::string("option -momentum: momentum is compiled ") +
                                 (run.momentum > 0 ? "out" : "in, expected a value above 0") +
                                 "; use: " + dsoptCommand(program, {"momentum=" + options.text("momentum")}));

  settings.epochs = options.integer("epochs");
  settings.threads = options.integer("threads");
  if (settings.threads > std::max<int64_t>(program.threads, 1))
    throw Error(StatusInput, "option -threads=" + std::to_string(settings.threads) +
                                 ": the program was planned with " + std::to_string(program.threads) +
                                 " at most; use: " +
                                 dsoptCommand(program, {"threads=" + std::to_string(settings.threads)}));
  settings.data = options.text("data");
  settings.evalData = options.text("eval-data");
  settings.evalEvery = options.integer("eval-every");
  settings.evalBatches = options.integer("eval-batches");
  settings.evaluates = options.has("eval") || !program.trains;
  settings.steps = settings.evaluates ? 0 : options.integer("steps");
  if (settings.evaluates && !settings.evalData.empty())
    throw Error(StatusInput, "options -eval and -eval-data exclude each other: -eval measures -data");
  for (const char *name : {"eval-every", "eval-batches"})
    if (options.has(name) && settings.evalData.empty() &&
        !(settings.evaluates && std::string(name) == "eval-batches"))
      throw Error(StatusInput, std::string("option -") + name + " needs -eval-data");
  for (const char *name : {"stop-after", "keep-best", "best-metric"})
    if (options.has(name) && settings.evalEvery == 0)
      throw Error(StatusInput, std::string("option -") + name +
                                   " compares evaluations: it needs -eval-data and -eval-every");
  settings.stopAfter = options.integer("stop-after");
  settings.keepBest = options.has("keep-best");
  if (settings.stopAfter || settings.keepBest)
    settings.bestMetric = options.text("best-metric");
  else if (options.has("best-metric"))
    throw Error(StatusInput,
                "option -best-metric says what -stop-after and -keep-best go by: give one of them");
  std::string word = program.sequences > 0 ? "-generate" : program.outputs.empty() ? "-eval" : "-predict";
  for (const char *name : {"save", "steps", "epochs"})
    if (settings.evaluates && given.has(name))
      throw Error(StatusInput,
                  std::string("option -") + name + " trains, but nothing is trained with " + word);
  run.shuffle = options.has("shuffle");
  if (run.shuffle && !program.outputs.empty())
    throw Error(StatusInput,
                "option -shuffle does not go with -predict, which writes outputs in the data's order");
  settings.pad = options.has("pad");
  settings.tokens.bytes = options.integer("token-bytes");
  settings.tokens.shifted = options.text("labels") == "shifted";
  settings.tokens.input = options.text("token-input");
  settings.tokens.label = options.text("label-input");
  settings.log = options.text("log");
  if (options.has("log-every"))
    settings.logEvery = options.integer("log-every");
  settings.save = options.text("save");
  if (settings.keepBest && settings.save.empty())
    throw Error(StatusInput, "option -keep-best keeps a checkpoint in the folder of -save: give one");
  settings.saveEvery = options.integer("save-every");
  settings.saveKeep = options.integer("save-keep");
  settings.saveAsync = options.has("save-async");
  if (settings.saveAsync && !settings.evaluates)
    run.saveStaging = DSOPT_SAVE_STAGING;
  settings.saveAside = options.text("save-existing") == "aside";
  settings.resume = options.text("resume");
  run.newBatch = settings.resumeNewBatch = options.has("resume-new-batch");
  for (const char *name : {"save-every", "save-keep", "save-async", "save-existing"})
    if (options.has(name) && settings.save.empty())
      throw Error(StatusInput, std::string("option -") + name + " needs -save=DIR");
  settings.stallTimeout = std::chrono::seconds(options.integer("stall-timeout"));
  settings.restarts = options.integer("restarts");
  if (settings.restarts && settings.launch.launcher != Launcher::Local)
    throw Error(StatusInput, "option -restarts is for ranks that are started here; under a launcher its own "
                             "restarts with -resume=auto do the same");
  if (settings.restarts && settings.save.empty())
    throw Error(StatusInput, "option -restarts needs -save=DIR, to begin again at its newest checkpoint");
  if (settings.resume == "auto" && settings.save.empty())
    throw Error(StatusInput, "option -resume=auto goes on in the folder of -save=DIR, which is not given");
  settings.saveWeights = options.text("save-weights");
  settings.saveOnnx = options.text("save-onnx");
  settings.saveOutputs = options.text("save-outputs");
  if (program.sequences > 0)
    settings.generate = resolveGenerate(program, options, settings.launch.rank <= 0);
  else if (settings.saveOutputs.empty() != program.outputs.empty())
    throw Error(StatusInput, program.outputs.empty()
                                 ? "option -save-outputs is of a program that predicts; use: " +
                                       dsoptCommand(program, {"predict"})
                                 : std::string("the program predicts: it needs -save-outputs=FILE.npz"));
  settings.trace = options.text("trace");
  if (settings.evaluates && !settings.trace.empty())
    throw Error(StatusInput, "option -trace records training; with " + word + " there is none");
  settings.compare = options.text("compare");
  settings.breakdown = run.breakdown = options.has("breakdown");
  settings.reportKernels = options.text("report") == "kernels";
  if (options.text("report") == "import")
    throw Error(StatusInput, "-report=import is dsopt's: a trained program has no model to import");
  // Standard output is for answers.
  settings.quiet = options.has("quiet") || settings.generate;
  settings.insecure = options.has("insecure");
  for (const OptionRow &row : optionTable())
    if (row.use == OptionUse::Run && row.ranks == AmongRanks::Equal)
      settings.alike.push_back({row.name, options.meaning(row)});
  struct stat info;
  if (std::string path = options.text("weights"); !path.empty()) {
    if (sys::stat(path.c_str(), &info) != 0)
      throw Error(StatusInput, "option -weights: there is no file or folder " + path);
    (S_ISDIR(info.st_mode) ? run.weights.folder : run.weights.file) = path;
  }
  return settings;
}

std::string dsopt::runtime::batchLine(const Program &program) {
  std::string parts = std::to_string(program.dp()) + " dp x " + std::to_string(program.M) + " micro-batches";
  if (program.micro_batch_size <= 0)
    return "global batch " + std::to_string(program.K) + " micro-batches = " + parts;
  return "global batch " + std::to_string(program.K * program.micro_batch_size) + " = " + parts + " x " +
         std::to_string(program.micro_batch_size);
}

std::string dsopt::runtime::targetLine(const Program &program, const std::string &device) {
  return "target: " + program.target + ", " + (device.empty() ? program.arch : device);
}

std::string dsopt::runtime::graphLine(const GraphCounts &counts, const RunSettings &settings) {
  if (settings.options.cudaGraph == "off")
    return "no CUDA graphs: -cuda-graph=off";
  if (counts.graphs == 0)
    return "no CUDA graphs: between any few actions of the device the host or another rank has a part";
  return "CUDA graphs: " + std::to_string(counts.graphs) + " a step, for " + std::to_string(counts.actions) +
         " of the device's " + std::to_string(counts.all) + " actions" +
         (settings.trace.empty() ? "" : ", but not in the steps that -trace shows");
}

std::string dsopt::runtime::programHelp(const Program &program, const std::string &name) {
  std::map<std::string, std::string> values = program.defaults;
  const OptimizerFacts &facts = factsOf(program.optimizer);
  values.insert(facts.defaults.begin(), facts.defaults.end());
  values.emplace("weight-decay", "0");
  values.emplace("threads", "at most " + std::to_string(program.threads));
  bool generates = program.sequences > 0;
  std::string text = "usage: " + name + (generates ? " -prompt-ids=FILE.npz" : " -data=FILE.npz") +
                     " [options]\n\n" + (generates ? "Generates by " : "Trains ") +
                     (program.model.empty() ? "a model" : program.model) + ", compiled by dsopt " +
                     program.dsopt + ".\n\n" + optionsHelp(Tool::Program, values);
  auto number = [](int64_t value) { return std::to_string(value); };
  text += "compiled in:\n";
  text += "  layout      dp " + number(program.dp()) + ", pp " + number(program.pp()) +
          (program.sp() > 1 ? ", sp " + number(program.sp()) : "") +
          (program.tp() > 1 ? ", tp " + number(program.tp()) : "") + ", zero " + number(program.zero) +
          ", schedule " + program.schedule + " (" + number(program.ranks()) + " ranks)\n";
  text += "  batch       " + batchLine(program) + ", reduction shards " + number(program.V) +
          ", accumulate " + program.accumulate + "\n";
  text += "  numerics    precision " + program.precision + ", gradient type " + program.gradient_type +
          (program.matmul_precision == "high" ? ", fp32 products by TF32\n" : "\n");
  text +=
      "  optimizer   " + program.optimizer + (program.clip ? ", with clipping" : ", without clipping") + "\n";
  text +=
      "  target      " + program.target + ", " + program.arch + ", threads " + number(program.threads) + "\n";
  text += "  inputs      " + describeInputs(program) + "\n";
  text += "  command     " + program.command + "\n";
  return text;
}

//===- Checkpoints.cpp - which checkpoint a run goes on from --------------===//

#include "Checkpoints.h"
#include "Core/Together.h"
#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/SaveFolder.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace dsopt::runtime;

/// How often what was chosen may vanish before it is opened.
static constexpr int kMostVanished = 20;
/// Options whose absence is a value of its own: no update lags; the host computes; products of fp32 are of
/// fp32; what goes over the wire is not quantized.
static constexpr std::pair<const char *, const char *> kUnwritten[] = {
    {"delayed-update", "off"},       {"target", "cpu"},
    {"matmul-precision", "highest"}, {"gather-type", "param"},
    {"reduce-type", "gradient"},     {"compress-gradients", "none"},
    {"gemm-table", "none"},          {"input", "none"}};

/// A checkpoint whose batch is not the program's: which programs could go on with it.
static void checkBatch(const Program &program, const RunSettings &settings, const std::string &checkpoint,
                       const Manifest &m) {
  if (settings.resumeNewBatch || (m.K == program.K && m.V == program.V && m.accumulate == program.accumulate))
    return;
  std::string degrees;
  for (int64_t dp : possibleDegrees(m.K, m.V))
    degrees += (degrees.empty() ? "" : ", ") + std::to_string(dp);
  auto batch = [](int64_t K, int64_t V, const std::string &accumulate) {
    return "K " + std::to_string(K) + " micro-batches a step, V " + std::to_string(V) +
           " shards, accumulate " + accumulate;
  };
  std::string text = checkpoint + " was written with " + batch(m.K, m.V, m.accumulate) +
                     "; the program has " + batch(program.K, program.V, program.accumulate) +
                     ". It goes on with the same bits under -dp of " + degrees;
  if (m.K % program.dp() == 0)
    text += "; for -dp=" + std::to_string(program.dp()) + " use: " +
            dsoptCommand(program, {"micro-batches=" + std::to_string(m.K / program.dp()),
                                   "reduction-shards=" + std::to_string(m.V), "accumulate=" + m.accumulate});
  throw Error(StatusInput, text + "; -resume-new-batch goes on with the new batch");
}

/// A checkpoint of other tensor or sequence shards than the program's, whose sums have other bits.
static void checkShards(const Program &program, const RunSettings &settings, const std::string &checkpoint,
                        const Manifest &m) {
  auto check = [&](const std::string &letter, const std::string &kind, const std::string &axis,
                   int64_t written, int64_t has) {
    if (settings.resumeNewBatch || written == has)
      return;
    std::string degrees;
    for (int64_t degree : possibleDegrees(written, written))
      degrees += (degrees.empty() ? "" : ", ") + std::to_string(degree);
    throw Error(StatusInput, checkpoint + " was written with " + letter + " " + std::to_string(written) +
                                 " " + kind + " shards; the program has " + letter + " " +
                                 std::to_string(has) + ". It goes on with the same bits under -" + kind +
                                 "-shards=" + std::to_string(written) + " and -" + axis + " of " + degrees +
                                 "; -resume-new-batch goes on with the new shards");
  };
  check("T", "tensor", "tp", m.T, program.T);
  check("Q", "sequence", "sp", m.Q, program.Q);
}

/// State of one rule means something else to another, whatever it is called. Adam and AdamW have the same.
static void checkOptimizer(const Program &program, const std::string &checkpoint, const Manifest &m) {
  auto family = [](const std::string &name) { return name == "adamw" ? "adam" : name; };
  if (family(m.optimizer) == family(program.optimizer))
    return;
  throw Error(StatusInput, checkpoint + " was written with -optimizer=" + m.optimizer + "; the program has " +
                               program.optimizer + ", to which its state means something else. Use: " +
                               dsoptCommand(program, {"optimizer=" + m.optimizer}));
}

std::vector<std::string> CheckpointSearch::candidates() const {
  std::vector<std::string> all =
      isAutomatic() ? listCheckpoints(settings.save) : findCheckpoints(settings.resume);
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](auto &path) { return std::count(paths.begin(), paths.end(), path) > 0; }),
            all.end());
  return all;
}

std::optional<CheckpointChoice> CheckpointSearch::choose() {
  while (true) {
    fault::point("resume.choose");
    std::vector<std::string> all = candidates();
    if (!all.empty()) {
      CheckpointChoice choice{all.back(), 0, ""};
      try {
        Manifest manifest = inspectCheckpoint(choice.path);
        checkOptimizer(program, choice.path, manifest);
        checkBatch(program, settings, choice.path, manifest);
        checkShards(program, settings, choice.path, manifest);
        choice.step = manifest.step;
        choice.identity = manifest.identity;
        return choice;
      } catch (const Unreadable &error) {
        cannotRead(choice, error);
        continue;
      }
    }
    // A run that saves there may have replaced its only one while the names were read.
    struct stat lock;
    if (!isAutomatic() && sys::stat((settings.resume + "/lock").c_str(), &lock) == 0 &&
        ++vanished < kMostVanished)
      continue;
    if (!isAutomatic())
      throw Error(StatusInput, "option -resume: there is no complete checkpoint in " + settings.resume +
                                   " (a folder step-N with its manifest.json)");
    if (!texts.empty())
      throw Error(StatusInput, "option -resume=auto: no checkpoint in " + settings.save +
                                   " can be read; the newest: " + texts.front());
    return std::nullopt;
  }
}

void CheckpointSearch::cannotRead(const CheckpointChoice &choice, const Error &why) {
  // Another run may have removed or replaced it: then there is another newest one.
  struct stat info;
  bool gone = sys::stat(choice.path.c_str(), &info) != 0;
  if (!gone && !choice.identity.empty()) {
    try {
      gone = readManifest(choice.path).identity != choice.identity;
    } catch (const Error &) { // it is there, and damaged
    }
  }
  bool isExplicit = !isAutomatic() && choice.path == settings.resume;
  if (gone && !isExplicit && ++vanished < kMostVanished)
    return;
  if (!isAutomatic())
    throw Error(why.status, why.what());
  paths.push_back(choice.path);
  texts.push_back(why.what());
}

/// The end of a learning rate that decays, where the command line has none: what was given to the run before
/// stays; what followed from its -steps follows from those of this run, if there are more.
static void moveDecay(RunSettings &settings, const Manifest &m, std::vector<Note> &notes) {
  RunOptions &options = settings.options;
  options.decaySteps = m.decaySteps;
  options.decayGiven = m.decayGiven;
  if (settings.evaluates || !decays(options.schedule) || settings.steps <= m.decaySteps)
    return;
  auto before = m.options.find("lr-schedule");
  std::string steps = std::to_string(settings.steps), end = std::to_string(m.decaySteps);
  std::string schedule = std::string("-lr-schedule=") + lrScheduleName(options.schedule);
  auto rate = [&] { return jsonNumber(learningRate(options, m.step), 6); };
  if (m.decayGiven) {
    if (settings.steps < DataSource::kEndless && m.step < settings.steps)
      notes.push_back({schedule + " ends at step " + end +
                           ", as the checkpoint keeps of -lr-decay-steps, before step " + steps +
                           ": the last rate stays; -lr-decay-steps=" + steps + " moves the end",
                       true});
    return;
  }
  std::string old = rate();
  options.decaySteps = settings.steps;
  if (before != m.options.end() && decays(lrScheduleNamed(before->second)) && m.step < settings.steps)
    notes.push_back({schedule + " now ends at step " + steps + " instead of " + end +
                         ", as -steps asks: the rate of step " + std::to_string(m.step) + " is " + rate() +
                         " instead of " + old + " (-lr-decay-steps=" + end + " keeps the end)",
                     true});
}

/// What the user should know of the checkpoint; `settings` take from it what is not given.
static void compareOptions(const Program &program, const RunSettings &settings, const Resumed &resumed,
                           std::vector<Note> &notes) {
  const Manifest &m = resumed.manifest;
  auto compare = [&](const std::string &name, const std::string &before, const std::string &after) {
    if (before != after)
      notes.push_back({name + " is " + after + ", the checkpoint was written with " + before, true});
  };
  compare("precision", m.precision, program.precision);
  compare("gradient type", m.gradientType, program.gradient_type);
  compare("architecture", m.arch, program.arch);
  if (program.target == "cpu")
    compare("kernel table", std::to_string(m.kernelTable), std::to_string(kKernelTable));
  std::map<std::string, std::string> before = m.options, after = optionsOf(program, settings.options);
  for (auto [name, value] : kUnwritten) {
    before.emplace(name, value);
    after.emplace(name, value);
  }
  // Where the end was not given, moveDecay says how it moved.
  if (settings.options.decaySteps != m.decaySteps && !settings.options.decayGiven)
    before.erase("lr-decay-steps");
  // A step's options change nothing of what is only measured, but for those that its products and weights
  // have.
  static const std::set<std::string> ofForward = {"target", "matmul-precision", "gather-type", "gemm-table",
                                                  "shard"};
  for (auto &[name, value] : after)
    if (auto it = before.find(name); it != before.end() && (!settings.evaluates || ofForward.count(name) > 0))
      compare(name == "shard" ? "what tensor shards cut (-shard)" : "-" + name, it->second, value);
  const std::string &path = resumed.choice.path;
  if (program.trains && program.delayed_update > 0 && m.step > program.delayed_update && !m.pendingFactor)
    notes.push_back({path + " has no gradients that wait for their update: step " + std::to_string(m.step) +
                         " updates nothing, its gradients wait",
                     true});
  if (!m.ranks.layout.empty())
    notes.push_back({path + " has state of ranks of the layout " + m.ranks.layout +
                         ", for which the program has no use: it is dropped",
                     true});
  notes.push_back({"resumed from " + path + " after step " + std::to_string(m.step - 1)});
  if (!settings.evaluates && m.step >= settings.steps)
    notes.push_back({path + " has " + std::to_string(m.step) + " steps behind it, of " +
                         std::to_string(settings.steps) +
                         " in all: nothing is trained (-steps and -epochs count from the beginning)",
                     true});
}

/// Rank 0's choice on all ranks; collective.
static std::optional<CheckpointChoice> shareChoice(Engine &engine,
                                                   const std::optional<CheckpointChoice> &mine) {
  struct Record {
    int64_t step = -1;
    char identity[40] = "", path[4096] = "";
  } record;
  if (mine) {
    if (mine->path.size() >= sizeof record.path)
      throw Error(StatusInput, "option -resume: the path " + mine->path + " is too long");
    record.step = mine->step;
    mine->identity.copy(record.identity, sizeof record.identity - 1);
    mine->path.copy(record.path, sizeof record.path - 1);
  }
  std::vector<Record> all(engine.size());
  engine.exchange(&record, sizeof record, all.data());
  if (all[0].step < 0)
    return std::nullopt;
  return CheckpointChoice{all[0].path, all[0].step, all[0].identity};
}

std::optional<Resumed> dsopt::runtime::startTogether(
    const Program &program, RunSettings &settings, Engine &engine, std::vector<Note> &notes,
    const std::function<std::unique_ptr<Session>()> &makeSession,
    const std::function<void(const Resumed *)> &chosen, std::unique_ptr<Session> &session) {
  bool first = engine.rank() == 0;
  CheckpointSearch search(program, settings);
  const int64_t decaySteps = settings.options.decaySteps;
  std::vector<Note> ofDecay;
  settings.options.decayGiven = decaySteps > 0;
  while (!settings.resume.empty()) {
    std::optional<CheckpointChoice> choice = shareChoice(engine, first ? search.choose() : std::nullopt);
    if (!choice)
      break;
    Resumed resumed{*choice, {}, search.leftOut()};
    std::optional<Error> failure = together(engine, [&] {
      resumed.manifest = readManifest(choice->path);
      if (resumed.manifest.identity != choice->identity)
        throw Unreadable(StatusInput, choice->path + " is another checkpoint on rank " +
                                          std::to_string(engine.rank()) +
                                          " than on rank 0: -resume needs one that all ranks see");
    });
    if (!failure) {
      ofDecay.clear();
      if (!decaySteps)
        moveDecay(settings, resumed.manifest, ofDecay);
      if (first)
        chosen(&resumed);
      session = makeSession();
      failure = session->resume(choice->path, resumed.manifest);
    }
    if (!failure) {
      for (const std::string &reason : search.reasons())
        notes.push_back({"left out: " + reason, true});
      notes.insert(notes.end(), ofDecay.begin(), ofDecay.end());
      compareOptions(program, settings, resumed, notes);
      return resumed;
    }
    session.reset();
    if (first)
      search.cannotRead(*choice, *failure);
  }
  settings.options.decaySteps = decaySteps;
  settings.options.decayGiven = decaySteps > 0;
  if (first)
    chosen(nullptr);
  session = makeSession();
  session->loadParameters();
  return std::nullopt;
}

//===- Checkpoints.cpp - -save and -resume of a run -----------------------===//

#include "Checkpoints.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <filesystem>

#include <unistd.h>

using namespace dsopt::runtime;
namespace fs = std::filesystem;

/// A checkpoint whose batch is not the program's: which programs could go on with it.
static void checkBatch(const Program &program, const RunSettings &settings, const Resumed &resumed) {
  const Manifest &m = resumed.manifest;
  if (settings.resumeNewBatch || (m.K == program.K && m.V == program.V && m.accumulate == program.accumulate))
    return;
  std::string degrees;
  for (int64_t dp : possibleDegrees(m.K, m.V))
    degrees += (degrees.empty() ? "" : ", ") + std::to_string(dp);
  auto batch = [](int64_t K, int64_t V, const std::string &accumulate) {
    return "K " + std::to_string(K) + " micro-batches a step, V " + std::to_string(V) +
           " shards, accumulate " + accumulate;
  };
  std::string text = resumed.checkpoint + " was written with " + batch(m.K, m.V, m.accumulate) +
                     "; the program has " + batch(program.K, program.V, program.accumulate) +
                     ". It goes on with the same bits under -dp of " + degrees;
  if (m.K % program.dp == 0)
    text += "; for -dp=" + std::to_string(program.dp) + " use: " +
            dsoptCommand(program, {"micro-batches=" + std::to_string(m.K / program.dp),
                                   "reduction-shards=" + std::to_string(m.V), "accumulate=" + m.accumulate});
  throw Error(StatusInput, text + "; -resume-new-batch goes on with the new batch");
}

std::optional<Resumed> dsopt::runtime::openCheckpoint(const Program &program, RunSettings &settings,
                                                      std::vector<Note> &notes) {
  if (settings.resume.empty())
    return std::nullopt;
  bool automatic = settings.resume == "auto";
  Resumed resumed;
  resumed.checkpoint = findCheckpoint(automatic ? settings.save : settings.resume);
  if (resumed.checkpoint.empty()) {
    if (automatic)
      return std::nullopt;
    throw Error(StatusInput, "option -resume: there is no complete checkpoint in " + settings.resume +
                                 " (a folder step-N with its manifest.json)");
  }
  resumed.manifest = readManifest(resumed.checkpoint);
  const Manifest &m = resumed.manifest;
  checkBatch(program, settings, resumed);
  RunOptions &options = settings.options;
  if (options.decaySteps == 0)
    options.decaySteps = m.decaySteps;
  std::map<std::string, std::string> now = optionsOf(program, options);
  auto compare = [&](const std::string &name, const std::string &before, const std::string &after) {
    if (before != after)
      notes.push_back({name + " is " + after + ", the checkpoint was written with " + before, true});
  };
  compare("precision", m.precision, program.precision);
  compare("gradient type", m.gradientType, program.gradient_type);
  compare("architecture", m.arch, program.arch);
  for (auto &[name, value] : now)
    if (auto it = m.options.find(name); it != m.options.end())
      compare("-" + name, it->second, value);
  notes.push_back({"resumed from " + resumed.checkpoint + " after step " + std::to_string(m.step - 1)});
  if (!settings.evaluates && m.step >= settings.steps)
    notes.push_back({resumed.checkpoint + " has " + std::to_string(m.step) + " steps behind it, of " +
                         std::to_string(settings.steps) +
                         " in all: nothing is trained (-steps and -epochs count from the beginning)",
                     true});
  return resumed;
}

void dsopt::runtime::prepareSaving(const RunSettings &settings) {
  if (settings.save.empty())
    return;
  std::error_code error;
  fs::create_directories(settings.save, error);
  if (error || access(settings.save.c_str(), W_OK | X_OK) != 0)
    throw Error(StatusInput, "option -save: cannot write into the folder " + settings.save +
                                 (error ? ": " + error.message() : ""));
  for (fs::directory_iterator it(settings.save, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename();
    std::error_code ignored;
    if (name.rfind("step-", 0) == 0 && it->path().extension() == ".tmp")
      fs::remove_all(it->path(), ignored);
  }
}

bool dsopt::runtime::savesAfter(const RunSettings &settings, int64_t done, bool last) {
  if (settings.save.empty())
    return false;
  return last || (settings.saveEvery > 0 && done % settings.saveEvery == 0);
}

void dsopt::runtime::saveCheckpoint(const RunSettings &settings, Session &session, bool first) {
  session.save(settings.save + "/" + checkpointName(session.stepsDone()));
  if (!first || settings.saveKeep <= 0)
    return;
  std::vector<std::string> all = listCheckpoints(settings.save);
  std::error_code ignored;
  for (size_t i = 0; i + settings.saveKeep < all.size(); ++i) {
    // Under another name it is no checkpoint any more, should this be cut short.
    fs::rename(all[i], all[i] + ".tmp", ignored);
    fs::remove_all(all[i] + ".tmp", ignored);
  }
}

//===- RunMain.cpp - a run from main() to its exit status -----------------===//

#include "dsopt/Runtime/RunMain.h"
#include "BestEvaluation.h"
#include "ChooseTarget.h"
#include "Launched.h"
#include "LocalRanks.h"
#include "ProgramObject.h"
#include "RankRun.h"
#include "RunSettings.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Mappings.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/World.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

using namespace dsopt::runtime;

static void refuseStream(const DataSource &data, const std::string &option) {
  if (data.streams())
    throw Error(StatusInput, "option " + option +
                                 ": a stream is read once, by training; expected an .npz file "
                                 "or files of tokens");
}

/// What is wrong with the command line or the number of ranks mostly is wrong for all of them: under MPI,
/// which ends all when one has ended, the first says it, and another one only if that has not happened. Other
/// launched ranks tell rank 0.
template <typename Body> static auto saidByFirst(const Launch &launch, Body body) {
  try {
    return body();
  } catch (const LaunchError &) {
    throw;
  } catch (const Error &) {
    if (launch.launcher == Launcher::Mpi && launch.rank > 0)
      sleep(2);
    throw;
  }
}

/// The data of -eval-data, null without.
static std::unique_ptr<DataSource> openEvalData(const Program &program, const RunSettings &settings) {
  if (settings.evalData.empty())
    return nullptr;
  if (program.evaluation.empty())
    throw Error(StatusInput, "option -eval-data: the program has no evaluation; compile it anew");
  std::unique_ptr<DataSource> data = openData(program, settings.evalData, settings.tokens, settings.pad);
  refuseStream(*data, "-eval-data");
  data->prepare();
  return data;
}

/// All that can be wrong before the ranks start.
static std::unique_ptr<DataSource> prepare(const Program &program, RunSettings &settings,
                                           std::vector<Note> &notes,
                                           std::unique_ptr<SaveFolder> &saveFolder) {
  saidByFirst(settings.launch, [&] { checkWorldSize(program, settings.launch); });
  fault::point("load.data");
  std::unique_ptr<DataSource> data;
  if (settings.generate)
    data = std::make_unique<RowSource>(program);
  else
    data = openData(program, settings.data, settings.tokens, settings.pad);
  if (settings.options.shuffle)
    data->shuffle(settings.options.seed);
  if (settings.restarts)
    refuseStream(*data, "-restarts");
  if (!settings.bestMetric.empty())
    BestEvaluation(program, settings);
  if (settings.evaluates)
    refuseStream(*data, "-eval");
  else
    settings.steps = data->plannedSteps(settings.steps, settings.epochs);
  settings.options.logLosses = data->streams();
  if (settings.steps == DataSource::kEndless && settings.options.decaySteps == 0 &&
      decays(settings.options.schedule))
    throw Error(StatusInput, std::string("option -lr-schedule=") + lrScheduleName(settings.options.schedule) +
                                 ": a stream's end is not known; give -lr-decay-steps or -steps");
  notes = data->notes();
  std::vector<int64_t> disk = memoriesOf(program, MemoryKind::Disk);
  if (!settings.options.nvmePath.empty() &&
      std::all_of(disk.begin(), disk.end(), [](auto n) { return n == 0; }))
    notes.push_back({"option -nvme-path has no effect: the program keeps nothing on disk; compile it with "
                     "-offload-optimizer=nvme",
                     true});
  if (!settings.evaluates && program.freeze_step >= settings.steps && program.freeze_step > 0)
    notes.push_back(
        {"option -freeze-step=" + std::to_string(program.freeze_step) + " is not reached in " +
             std::to_string(settings.steps) +
             (program.local_policy.local_step_clipper > 0 ? " steps: none of them is local"
                                                          : " steps: all of them exchange gradients"),
         true});
  if (settings.launch.rank <= 0)
    for (auto &[path, option] :
         {std::pair(settings.log, "log"), std::pair(settings.saveWeights, "save-weights"),
          std::pair(settings.saveOnnx, "save-onnx"), std::pair(settings.saveOutputs, "save-outputs"),
          std::pair(settings.trace, "trace")})
      if (!path.empty())
        checkWritable(path, option);
  if (settings.launch.rank <= 0)
    saveFolder = openSaveFolder(settings, notes);
  return data;
}

/// Prints what was asked for and nothing else: an Error of status 2 if it cannot be.
static int answer(const std::string &text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(StatusFailure, std::string("standard output: writing failed: ") + std::strerror(errno));
  return StatusOk;
}

namespace {
/// How this process reaches the other ranks before it knows all of its options.
struct Reach {
  Launch launch;
  bool insecure = false;
};
} // namespace

static int run(int argc, char **argv, Reach &reach) {
  for (int i = 1; i < argc; ++i)
    reach.insecure |= !std::strcmp(argv[i], "-insecure") || !std::strcmp(argv[i], "--insecure");
  ParsedOptions options;
  try {
    options = parseOptions(argc, argv, Tool::Program);
  } catch (const Error &) {
    reach.launch = findLaunch("");
    throw;
  }
  reach.launch = findLaunch(options.text("launcher"));
  std::string name = argc > 0 ? argv[0] : "dsopt-run";
  if (options.has("version"))
    return answer("dsopt " DSOPT_VERSION "\n");
  if (options.text("help") == "man")
    return answer(optionsManual(Tool::Program, DSOPT_VERSION));
  if (options.has("completion"))
    return answer(
        optionsCompletion(Tool::Program, options.text("completion"), name.substr(name.rfind('/') + 1)));
  if (options.has("check"))
    return checkCheckpoints(options.text("check"));
  std::vector<std::unique_ptr<ProgramObject>> objects = ProgramObject::fromExecutable();
  if (objects.empty()) {
    if (options.positionals.empty()) {
      if (!options.has("help"))
        throw Error(StatusInput, "no program given; usage: " + name + " PROGRAM.so -data=FILE.npz [options]");
      return answer("usage: " + name + " PROGRAM.so -data=FILE.npz [options]\n\n" +
                    optionsHelp(Tool::Program));
    }
    objects.push_back(ProgramObject::fromFile(options.positionals.front()));
    options.positionals.erase(options.positionals.begin());
  }
  if (options.has("help"))
    return answer(programHelp(objects.back()->program, name));
  if (!options.positionals.empty())
    throw Error(StatusInput,
                "unexpected argument '" + options.positionals.front() + "'; options begin with a dash");
  const auto &defaults = objects.front()->program.defaults;
  auto byDefault = defaults.find("run-on");
  std::vector<Note> chosen;
  std::unique_ptr<ProgramObject> object = saidByFirst(reach.launch, [&] {
    return chooseTarget(std::move(objects),
                        options.text("run-on", byDefault == defaults.end() ? "" : byDefault->second),
                        reach.launch, chosen);
  });
  const Program &program = object->program;
  checkMachine(program);
  RunSettings settings = saidByFirst(reach.launch, [&] { return resolveSettings(program, options); });
  reach = {settings.launch, settings.insecure};
  for (int i = 0; i < argc; ++i)
    settings.commandLine += (i ? " " : "") + std::string(argv[i]);
  if (!settings.saveOnnx.empty() && (!object->model() || !object->modelBytes()))
    throw Error(StatusInput, "option -save-onnx: the program carries no ONNX model; it was compiled from " +
                                 (program.model.empty() ? std::string("something else") : program.model));
  std::vector<Note> notes;
  std::unique_ptr<SaveFolder> saveFolder;
  std::unique_ptr<DataSource> data = prepare(program, settings, notes, saveFolder);
  notes.insert(notes.begin(), chosen.begin(), chosen.end());
  data->prepare();
  std::unique_ptr<DataSource> evalData = openEvalData(program, settings);
  if (evalData)
    notes.insert(notes.end(), evalData->notes().begin(), evalData->notes().end());
  // Before this run's log can take the other's place.
  std::shared_ptr<Comparison> comparison;
  if (!settings.compare.empty() && reach.launch.rank <= 0)
    comparison = std::make_shared<Comparison>(settings.compare);
  reach = {};
  Run run{*object, settings, *data, evalData.get(), notes, std::move(saveFolder), comparison};
  if (settings.launch.launcher == Launcher::Local)
    return runLocalRanks(run);
  runLaunched(run);
}

int dsopt::runtime::runMain(int argc, char **argv) {
  prepareProcess();
  installSignals(OnSignal::Leave);
  reportLostMappings(STDERR_FILENO, "dsopt: error: ", '\n');
  Reach reach;
  int status = StatusFailure;
  try {
    fault::start();
    fault::setRank(launchedRank());
    status = run(argc, argv, reach);
  } catch (const LaunchError &error) {
    // Said by every rank.
    if (!error.quiet)
      printError(error.what());
    tellOthers(reach.launch, reach.insecure, error, /*isSaid=*/true);
    status = error.status;
  } catch (const Error &error) {
    if (!tellOthers(reach.launch, reach.insecure, error, error.quiet) && !error.quiet)
      printError((reach.launch.rank > 0 ? "rank " + std::to_string(reach.launch.rank) + ": " : "") +
                 error.what());
    status = error.status;
  } catch (const std::exception &error) {
    printError(messageOf(error));
    tellOthers(reach.launch, reach.insecure, Error(StatusFailure, messageOf(error)), /*isSaid=*/true);
  }
  std::fflush(nullptr);
  return status;
}

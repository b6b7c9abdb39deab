//===- RunMain.cpp - a run from main() to its exit status -----------------===//

#include "dsopt/Runtime/RunMain.h"
#include "LocalRanks.h"
#include "ProgramObject.h"
#include "RankRun.h"
#include "RunSettings.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <cstdio>

using namespace dsopt::runtime;

static int runUnderMpi(Run &run) {
  const Program &program = run.program();
  installSignals(0);
  std::unique_ptr<Engine> engine = joinMpi();
  try {
    int64_t world = program.dp * program.pp;
    if (engine->size() != world)
      throw Error(StatusInput,
                  "MPI came up with " + std::to_string(engine->size()) +
                      " ranks; the program was compiled for " + std::to_string(world) + " (dp " +
                      std::to_string(program.dp) + " x pp " + std::to_string(program.pp) + ")",
                  engine->rank() != 0);
    int position = rankInfo(program, engine->rank()).position;
    int status = runRank(run, *engine, allocateArena(program.positions[position].arena));
    engine->finish();
    return status;
  } catch (const Error &error) {
    if (!error.quiet)
      printError(error.what());
    engine->fail(error.status, error.quiet);
    throw Error(error.status, error.what(), /*quiet=*/true);
  }
}

static void refuseStream(const DataSource &data, const std::string &option) {
  if (data.streams())
    throw Error(StatusInput, "option " + option +
                                 ": a stream is read once, by training; expected an .npz file "
                                 "or files of tokens");
}

/// The data of -eval-data, null without.
static std::unique_ptr<DataSource> openEvalData(const Program &program, const RunSettings &settings) {
  if (settings.evalData.empty())
    return nullptr;
  if (program.evaluation.empty())
    throw Error(StatusInput, "option -eval-data: the program has no evaluation; compile it anew");
  std::unique_ptr<DataSource> data = openData(program, settings.evalData, settings.tokens);
  refuseStream(*data, "-eval-data");
  data->prepare();
  return data;
}

/// All that can be wrong before the ranks start.
static std::unique_ptr<DataSource> prepare(const Program &program, RunSettings &settings,
                                           std::vector<std::string> &notes, std::optional<Resumed> &resumed) {
  int64_t world = program.dp * program.pp;
  if (settings.launchedRanks && settings.launchedRanks != world)
    throw Error(StatusInput, "the launcher started " + std::to_string(settings.launchedRanks) +
                                 " ranks; the program was compiled for " + std::to_string(world) + " (dp " +
                                 std::to_string(program.dp) + " x pp " + std::to_string(program.pp) + ")");
  std::unique_ptr<DataSource> data = openData(program, settings.data, settings.tokens);
  if (settings.options.shuffle)
    data->shuffle(settings.options.seed);
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
  resumed = openCheckpoint(program, settings, notes);
  settings.resumed = resumed.has_value();
  if (settings.launchedRank <= 0)
    for (auto &[path, option] :
         {std::pair(settings.log, "log"), std::pair(settings.saveWeights, "save-weights"),
          std::pair(settings.saveOnnx, "save-onnx")})
      if (!path.empty())
        checkWritable(path, option);
  if (settings.launchedRank <= 0)
    prepareSaving(settings);
  return data;
}

static int run(int argc, char **argv, int &launchedRank) {
  ParsedOptions options = parseOptions(argc, argv, Tool::Program);
  std::string name = argc > 0 ? argv[0] : "dsopt-run";
  if (options.has("version")) {
    std::printf("dsopt %s\n", DSOPT_VERSION);
    return StatusOk;
  }
  std::unique_ptr<ProgramObject> object = ProgramObject::fromExecutable();
  if (!object) {
    if (options.positionals.empty()) {
      if (!options.has("help"))
        throw Error(StatusInput, "no program given; usage: " + name + " PROGRAM.so -data=FILE.npz [options]");
      std::printf("usage: %s PROGRAM.so -data=FILE.npz [options]\n\n%s", name.c_str(),
                  optionsHelp(Tool::Program).c_str());
      return StatusOk;
    }
    object = ProgramObject::fromFile(options.positionals.front());
    options.positionals.erase(options.positionals.begin());
  }
  const Program &program = object->program;
  if (options.has("help")) {
    std::fputs(programHelp(program, name).c_str(), stdout);
    return StatusOk;
  }
  if (!options.positionals.empty())
    throw Error(StatusInput,
                "unexpected argument '" + options.positionals.front() + "'; options begin with a dash");
  checkMachine(program);
  RunSettings settings = resolveSettings(program, options);
  launchedRank = settings.launchedRank;
  for (int i = 0; i < argc; ++i)
    settings.commandLine += (i ? " " : "") + std::string(argv[i]);
  if (!settings.saveOnnx.empty() && (!object->model() || !object->modelBytes()))
    throw Error(StatusInput, "option -save-onnx: the program carries no ONNX model; it was compiled from " +
                                 (program.model.empty() ? std::string("something else") : program.model));
  std::vector<std::string> notes;
  std::optional<Resumed> resumed;
  std::unique_ptr<DataSource> data = prepare(program, settings, notes, resumed);
  data->prepare();
  std::unique_ptr<DataSource> evalData = openEvalData(program, settings);
  Run run{*object, settings, *data, evalData.get(), notes, std::move(resumed)};
  return settings.launcher == Launcher::Mpi ? runUnderMpi(run) : runLocalRanks(run);
}

int dsopt::runtime::runMain(int argc, char **argv) {
  // Under a launcher that numbers its ranks, what is wrong for all is said by the first.
  int launchedRank = -1;
  for (const char *variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"})
    if (const char *text = std::getenv(variable); text && launchedRank < 0)
      launchedRank = std::atoi(text);
  int status = StatusFailure;
  try {
    status = run(argc, argv, launchedRank);
  } catch (const Error &error) {
    if (!error.quiet && launchedRank <= 0)
      printError(error.what());
    status = error.status;
  } catch (const std::exception &error) {
    printError(error.what());
  }
  std::fflush(nullptr);
  return status;
}

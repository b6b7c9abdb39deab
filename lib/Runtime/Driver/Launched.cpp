//===- Launched.cpp - one rank of those that a launcher started -----------===//

#include "Launched.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Process.h"
#include "dsopt/Runtime/World.h"

#include <cstdlib>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;

void dsopt::runtime::checkWorldSize(const Program &program, const Launch &launch) {
  if (!launch.size || launch.size == program.dp * program.pp)
    return;
  std::string text = "the launcher started " + std::to_string(launch.size) +
                     " ranks; the program was compiled for " + describeWorld(program);
  if (launch.launcher == Launcher::Mpi)
    throw Error(StatusInput, text);
  throw LaunchError(StatusInput, "rank " + std::to_string(launch.rank) + ": " + text);
}

/// What all ranks must agree on beside the program: the numbers of the training, and what they do together.
static uint64_t hashOptions(const RunSettings &settings, const Program &program) {
  std::string text;
  for (const auto &[name, value] : optionsOf(program, settings.options))
    text += name + "=" + value + "\n";
  for (int64_t value : {settings.steps, settings.saveEvery, settings.evalEvery,
                        settings.evalBatches})
    text += std::to_string(value) + "\n";
  for (bool value :
       {settings.resume.empty(), settings.save.empty(), settings.log.empty(), settings.saveWeights.empty(), settings.saveOnnx.empty(),
        settings.evalData.empty(), settings.evaluates, settings.trace.empty(), settings.breakdown,
        settings.reportKernels, settings.options.logNorms})
    text += value ? '1' : '0';
  return XXH3_64bits(text.data(), text.size());
}

static Joined joinLaunched(const Run &run) {
  const Launch &launch = run.settings.launch;
  const Program &program = run.program();
  if (launch.size == 1) {
    Joined joined;
    joined.engine = makeSingleEngine();
    joined.arena = allocateArena(arenaOf(program.positions[0]));
    return joined;
  }
  // A connection to each rank, and what the run opens beside them.
  constexpr int64_t kReserve = 64;
  int64_t descriptors = raiseDescriptorLimit(launch.size + kReserve);
  if (descriptors < launch.size + kReserve)
    throw LaunchError(StatusInput, "rank " + std::to_string(launch.rank) + ": this process may open " +
                                       std::to_string(descriptors) + " files, and " +
                                       std::to_string(launch.size) + " ranks need " +
                                       std::to_string(launch.size + kReserve) + "; raise it with ulimit -n");
  Meeting meeting;
  meeting.rank = launch.rank;
  meeting.size = launch.size;
  meeting.address = launch.address;
  meeting.port = launch.port;
  meeting.portTaken = launch.portTaken;
  meeting.job = launch.job;
  if (const char *host = std::getenv("DSOPT_HOST"))
    meeting.host = host;
  if (const char *limit = std::getenv("DSOPT_LAUNCH_TIMEOUT"); limit && std::atoi(limit) > 0)
    meeting.limit = std::chrono::seconds(std::atoi(limit));
  ProgramObject::Identity identity = run.object.identity();
  meeting.program = identity.table;
  meeting.build = identity.code;
  meeting.options = hashOptions(run.settings, program);
  char hash[20];
  std::snprintf(hash, sizeof hash, "%08x", static_cast<unsigned>(identity.code));
  meeting.what = (program.model.empty() ? std::string("a program") : program.model) + " for " +
                 describeWorld(program) + " ranks, dsopt " + program.dsopt + ", " + hash;
  meeting.interrupted = stopRequested;
  return joinWorld(meeting, arenasOf(program));
}

static Joined joinUnderMpi(const Run &run) {
  const Program &program = run.program();
  Joined joined;
  joined.engine = joinMpi();
  int rank = joined.engine->rank(), size = joined.engine->size();
  if (size != program.dp * program.pp) {
    Error error(StatusInput,
                "MPI came up with " + std::to_string(size) + " ranks; the program was compiled for " +
                    describeWorld(program),
                rank != 0);
    if (!error.quiet)
      printError(error.what());
    joined.engine->fail(error.status, error.quiet);
    throw Error(error.status, error.what(), /*quiet=*/true);
  }
  joined.arena = allocateArena(arenaOf(program.positions[rankInfo(program, rank).position]));
  return joined;
}

int dsopt::runtime::runLaunched(Run &run) {
  installSignals(OnSignal::StopThenLeave);
  fault::setRank(run.settings.launch.rank);
  Joined joined = run.settings.launch.launcher == Launcher::Mpi ? joinUnderMpi(run) : joinLaunched(run);
  joined.engine->setStallLimit(run.settings.stallTimeout);
  try {
    int status = runRank(run, *joined.engine, joined.arena);
    joined.engine->finish();
    return status;
  } catch (const Error &error) {
    if (!error.quiet)
      printError(error.what());
    joined.engine->fail(error.status, error.quiet);
    throw Error(error.status, error.what(), /*quiet=*/true);
  } catch (const std::exception &error) { // of memory, mostly
    printError(describeRank(run.program(), joined.engine->rank()) + ": " + error.what());
    joined.engine->fail(StatusFailure, /*quiet=*/false);
    throw Error(StatusFailure, error.what(), /*quiet=*/true);
  }
}

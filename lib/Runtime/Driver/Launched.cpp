//===- Launched.cpp - one rank of those that a launcher started -----------===//

#include "Launched.h"
#include "RunRecord.h"
#include "Secret.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Partners.h"
#include "dsopt/Runtime/RunMain.h"
#include "dsopt/Runtime/World.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;

void dsopt::runtime::checkWorldSize(const Program &program, const Launch &launch) {
  if (!launch.size || launch.size == program.ranks())
    return;
  throw Error(StatusInput, "the launcher started " + std::to_string(launch.size) +
                               " ranks; the program was compiled for " + describeWorld(program));
}

/// So long ranks wait for each other to start.
static std::chrono::seconds launchLimit() {
  const char *limit = std::getenv("DSOPT_LAUNCH_TIMEOUT");
  return std::chrono::seconds(limit && std::atoi(limit) > 0 ? std::atoi(limit) : 60);
}

/// How this process meets the others, but for what it runs.
static Meeting meetingOf(const Launch &launch, bool insecure) {
  Meeting meeting;
  meeting.rank = launch.rank;
  meeting.size = launch.size;
  meeting.address = launch.address;
  meeting.port = launch.port;
  meeting.portTaken = launch.portTaken;
  meeting.job = launch.job;
  if (const char *host = std::getenv("DSOPT_HOST"))
    meeting.host = host;
  meeting.limit = launchLimit();
  meeting.secret = readSecret();
  meeting.insecure = insecure;
  meeting.say = printError;
  meeting.interrupted = stopRequested;
  return meeting;
}

bool dsopt::runtime::tellOthers(const Launch &launch, bool insecure, const Error &error, bool isSaid) {
  bool meets = launch.launcher == Launcher::Environment || launch.launcher == Launcher::Slurm;
  if (!meets || launch.size < 2 || error.status < StatusInput || error.status > StatusInterrupted)
    return false;
  installSignals(OnSignal::StopThenLeave);
  try {
    Meeting meeting = meetingOf(launch, insecure);
    meeting.trouble = {error.status, error.what()};
    meeting.say = [&](const std::string &text) {
      if (!std::exchange(isSaid, true))
        printError((launch.rank > 0 ? "rank " + std::to_string(launch.rank) + ": " : "") + text);
    };
    return tellTrouble(meeting) || isSaid;
  } catch (const Error &) {
    return isSaid; // about the secret: there is no way to the others
  }
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
  Meeting meeting = meetingOf(launch, run.settings.insecure);
  auto tell = [&](const Error &error) {
    return Error(error.status, error.what(), tellOthers(launch, run.settings.insecure, error, false));
  };
  try {
    meeting.record = recordOf(run);
  } catch (const Error &error) {
    throw tell(error);
  } catch (const std::exception &error) { // of memory, mostly
    throw tell(Error(StatusFailure, messageOf(error)));
  }
  meeting.peers = peersOf(program, launch.rank);
  return joinWorld(meeting, arenasOf(program));
}

/// The meeting of ranks that MPI connects: all hashes to all, then the record of the first that differs to
/// rank 0, which says in what.
static void compareRecords(Engine &engine, const Record &record) {
  struct Sum {
    uint64_t hash, bytes;
  };
  std::string mine = packRecord(record);
  Sum sum{XXH3_64bits(mine.data(), mine.size()), mine.size()};
  std::vector<Sum> sums(engine.size());
  engine.exchange(&sum, sizeof sum, sums.data());
  int other = 0;
  while (other < engine.size() && sums[other].hash == sums[0].hash)
    ++other;
  if (other == engine.size())
    return;
  constexpr uint64_t kTag = 1;
  std::string text;
  if (engine.rank() == other) {
    engine.startSend(0, 0, mine.data(), static_cast<int64_t>(mine.size()), kTag, TrafficClass::Control);
    engine.complete(0);
  } else if (engine.rank() == 0) {
    std::string theirs(sums[other].bytes, '\0');
    engine.startRecv(0, other, theirs.data(), static_cast<int64_t>(theirs.size()), kTag);
    engine.complete(0);
    Record first;
    if (unpackRecord(theirs, first))
      text = "rank " + std::to_string(other) + " " + differenceOf(first, record, "its host");
  }
  throw Error(StatusInput, text, /*quiet=*/engine.rank() != 0);
}

static Joined joinUnderMpi(const Run &run) {
  const Program &program = run.program();
  Joined joined;
  joined.engine = joinMpi(run.settings.launch.rank, launchLimit());
  int rank = joined.engine->rank(), size = joined.engine->size();
  if (size != program.ranks()) {
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

void dsopt::runtime::runLaunched(Run &run) {
  installSignals(OnSignal::StopThenLeave);
  fault::setRank(run.settings.launch.rank);
  Joined joined = run.settings.launch.launcher == Launcher::Mpi ? joinUnderMpi(run) : joinLaunched(run);
  joined.engine->setStallLimit(run.settings.stallTimeout);
  try {
    if (run.settings.launch.launcher == Launcher::Mpi)
      compareRecords(*joined.engine, recordOf(run));
    int status = runRank(run, *joined.engine, joined.arena);
    // Until the others are done, somebody watches this rank; after that nobody does, so it only leaves.
    run.saveFolder.reset();
    joined.engine->finish();
    std::fflush(nullptr);
    _exit(status);
  } catch (const Error &error) {
    if (!error.quiet)
      printError(error.what());
    joined.engine->fail(error.status, error.quiet);
    throw Error(error.status, error.what(), /*quiet=*/true);
  } catch (const std::exception &error) { // of memory, mostly
    printError(describeRank(run.program(), joined.engine->rank()) + ": " + messageOf(error));
    joined.engine->fail(StatusFailure, /*quiet=*/false);
    throw Error(StatusFailure, messageOf(error), /*quiet=*/true);
  }
}

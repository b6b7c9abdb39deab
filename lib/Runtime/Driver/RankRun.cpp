//===- RankRun.cpp - the steps of one rank, its log and its saves ---------===//

#include "RankRun.h"
#include "BestEvaluation.h"
#include "Core/Together.h"
#include "Generate/Answers.h"
#include "GivenParameters.h"
#include "KernelsReport.h"
#include "MetricsLog.h"
#include "PredictionFile.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Cpus.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Liveness.h"
#include "dsopt/Runtime/Mappings.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include <unistd.h>

using namespace dsopt::runtime;

namespace {
/// Steps of a run that -trace records: enough to see how they go, and a file that a browser opens.
constexpr int64_t kTracedSteps = 20;
/// Where the rank is while this lives.
struct During {
  explicit During(Place place) : before(static_cast<Place>(pulse().place.load())) { enter(place); }
  ~During() { enter(before); }
  During(const During &) = delete;
  Place before;
};

/// Bytes resident in this process beside the arena (all that is mapped together with it) and the data
/// file: code, libraries and what they allocated.
int64_t residentLibraries(const char *arena, const std::string &data) {
  std::ifstream maps("/proc/self/smaps");
  int64_t total = 0;
  bool counts = false;
  std::string name = data.substr(data.rfind('/') + 1);
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) {
      auto at = reinterpret_cast<unsigned long long>(arena);
      bool isData =
          line.size() > name.size() && line.compare(line.size() - name.size(), name.size(), name) == 0;
      counts = (at < begin || at >= end) && !isData;
    } else if (counts && std::sscanf(line.c_str(), "Rss: %lld kB", &kilobytes) == 1) {
      total += kilobytes * 1024;
    }
  }
  return total;
}

template <typename T> std::vector<T> exchanged(Engine &engine, const T &mine) {
  std::vector<T> all(engine.size());
  engine.exchange(&mine, sizeof mine, all.data());
  return all;
}

/// How many threads, where the command line does not say, and where they run.
void placeThreads(const Program &program, Engine &engine, int64_t given, RunOptions &options) {
  std::vector<CpuRecord> records = exchanged(engine, cpuRecord());
  options.threads =
      given ? given : std::min(cpuShare(records, engine.rank()), std::max<int64_t>(program.threads, 1));
  options.localRank = localRank(records, engine.rank());
  options.cpus = cpusOfRank(records, engine.rank(), options.threads);
  Sharing sharing = sharingOf(records, engine.rank());
  options.spins = options.threads * sharing.ranks <= sharing.cpus;
  engine.setSpinning(sharing.ranks <= sharing.cpus);
}

void say(Progress &progress, const std::vector<Note> &notes) {
  for (const Note &note : notes)
    note.warning ? progress.warning(note.text) : progress.line(note.text);
}

/// Waits for a step's data, all ranks together; false at the data's end or when somebody asked for a stop.
bool stepArrives(Run &run, Engine &engine, Session &session, Saving &saving, Progress &progress,
                 bool &stopped) {
  if (!run.data.streams())
    return true;
  using Arrival = DataSource::Arrival;
  while (true) {
    Arrival mine = Arrival::Stopped;
    {
      During awaiting(Place::AwaitingData);
      mine = run.data.awaitStep(session.stepsDone(), stopRequested);
    }
    std::vector<Arrival> all = exchanged(engine, mine);
    stopped = std::find(all.begin(), all.end(), Arrival::Stopped) != all.end();
    if (stopped)
      return false;
    // The folder may have changed between two ranks' looks: what is there now all of them see.
    if (std::count(all.begin(), all.end(), mine) != engine.size())
      continue;
    if (mine != Arrival::Asked)
      return mine == Arrival::Ready;
    for (const Request &request : run.data.requests()) {
      During fulfilling(request.kind == Request::Take ? Place::Loading : Place::Saving);
      if (request.kind == Request::Save)
        say(progress, saving.saveInto(request.place, session));
      else if (request.kind == Request::Write)
        writeWeights(run, session, request.place, engine.rank() == 0);
      else
        session.replaceParameters(request.place, originalNames(run.object.model(), run.object.modelBytes()));
    }
    engine.barrier();
    if (engine.rank() == 0)
      run.data.answer();
    engine.barrier();
  }
}

/// The table of -breakdown; the log gets the numbers.
std::string breakdownOf(Engine &engine, const Times &mine, bool evaluates, MetricsLog *log) {
  std::vector<Breakdown> ranks;
  std::vector<double> milliseconds;
  double share = 1.0 / static_cast<double>(std::max<int64_t>(mine.steps, 1));
  for (const Times &other : exchanged(engine, mine)) {
    ranks.emplace_back();
    for (const BreakdownPart &part : breakdownParts(evaluates))
      ranks.back().*part.time = other.sum.*part.time * share;
    milliseconds.push_back(other.ms * share);
  }
  if (log)
    log->breakdown(ranks, evaluates);
  return breakdownTable(ranks, milliseconds, evaluates);
}

/// Measures the loss on `data` and says it (collective).
Evaluation evaluate(const Run &run, Session &session, DataSource &data, MetricsLog *log, Progress &progress) {
  const RunSettings &settings = run.settings;
  int64_t count = data.microBatches();
  if (settings.evalBatches)
    count = std::min(count, settings.evalBatches);
  fault::point("evaluate");
  During evaluating(Place::Evaluating);
  Evaluation result = session.evaluate(data, count);
  int64_t step = std::max<int64_t>(session.stepsDone() - 1, 0);
  if (!result.stop && log) {
    log->evaluation(step, result);
    char loss[32], size[64];
    std::snprintf(loss, sizeof loss, "%.9g", result.loss);
    std::snprintf(size, sizeof size, "  (%lld micro-batches, %.1f ms)", (long long)result.microBatches,
                  result.times.ms);
    progress.line((settings.evaluates ? "eval loss " : "step " + std::to_string(step) + "  eval loss ") +
                  loss + metricsLine(run.program(), result.metrics) + size);
  }
  return result;
}

/// Writes what the program computes of `data` (collective). Whether all ranks agreed to stop meanwhile.
bool predict(const Run &run, Session &session, MetricsLog *log, Progress &progress, Times &times) {
  int64_t count = run.data.microBatches(), rows = run.data.rows();
  const Program &program = run.program();
  if (run.settings.evalBatches && run.settings.evalBatches < count) {
    count = run.settings.evalBatches;
    rows = rows ? count * program.micro_batch_size : 0;
  }
  During evaluating(Place::Evaluating);
  std::optional<PredictionFile> file;
  if (log)
    file.emplace(run.settings.saveOutputs, program, run.data.chooseVariant(0), count, rows);
  Evaluation result =
      session.predict(run.data, count, [&](int64_t output, const char *values, int64_t bytes) {
        file->take(output, values, bytes);
      });
  times = result.times;
  if (result.stop || !log)
    return result.stop;
  file->finish();
  char text[64];
  std::snprintf(text, sizeof text, "%lld micro-batches in %.1f ms", (long long)result.microBatches,
                result.times.ms);
  progress.line(std::string("predicted ") + text);
  return false;
}

/// Collective: an Error if rank 0 could not write its log.
void checkLog(Engine &engine, const MetricsLog *log) {
  std::vector<char> failed = exchanged(engine, char(log && !log->failure().empty()));
  if (failed[0])
    throw Error(StatusFailure, log ? log->failure() : "rank 0 could not write its log", /*quiet=*/!log);
}

/// What the log of a failed run ends with, where rank 0 heard of it.
void endLog(MetricsLog &log, int64_t steps, const std::exception &failure) {
  auto *error = dynamic_cast<const Error *>(&failure);
  bool interrupted = error && error->status == StatusInterrupted;
  int rank = error && (error->quiet || error->rank >= 0) ? error->rank : 0;
  log.end(failureRecord(steps, interrupted ? "interrupted" : "failed", rank, messageOf(failure)));
}
} // namespace

void dsopt::runtime::printError(const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "dsopt: error: %s\n", message.c_str());
}

int dsopt::runtime::runRank(Run &run, Engine &engine, char *arena) {
  const Program &program = run.program();
  RunSettings &settings = run.settings;
  bool first = engine.rank() == 0;
  fault::point("start");
  RunOptions &options = settings.options;
  options.steps = settings.steps;
  if (!options.weights.file.empty())
    options.weights.names = originalNames(run.object.model(), run.object.modelBytes());
  placeThreads(program, engine, settings.threads, options);

  auto makeSession = [&] {
    return std::make_unique<Session>(
        program, [&](const std::string &name) { return run.object.symbol(name); }, engine, arena, options,
        run.data);
  };
  enter(Place::Loading);
  Saving saving(program, settings, engine, first ? run.saveFolder.get() : nullptr);
  std::unique_ptr<Session> started;
  settings.resumed = startTogether(
                         program, settings, engine, run.notes, makeSession,
                         [&](const Resumed *resumed) { saving.goesOnFrom(resumed); }, started)
                         .has_value();
  for (const std::string &option :
       {options.weights.file.empty() ? "" : "-weights=" + options.weights.file,
        program.init == "model" || program.init.empty() ? "" : "-init=" + program.init})
    if (settings.resumed && !option.empty())
      run.notes.push_back(
          {"option " + option +
               " has no effect on what the checkpoint of -resume has: its parameters are taken",
           true});
  Session &session = *started;
  ActiveRun active(session, engine);
  saving.begin(run.notes);
  int64_t stepsBefore = session.stepsDone();

  RunFacts facts;
  facts.steps = settings.steps;
  facts.microBatches = run.data.microBatches();
  facts.engine = session.engineName();
  facts.device = session.device();
  std::optional<GraphCounts> graphs = session.graphs();
  if (graphs)
    facts.graphs = graphs->graphs;
  facts.comparison = run.comparison.get();
  facts.arenaBytes = memoriesOf(program, MemoryKind::Device);
  facts.hostBytes = memoriesOf(program, MemoryKind::Host);
  facts.diskBytes = memoriesOf(program, MemoryKind::Disk);
  facts.stagingBytes = options.saveStaging;
  if (!settings.log.empty())
    facts.libraries = exchanged(engine, residentLibraries(arena, settings.data));

  std::unique_ptr<MetricsLog> log;
  Progress progress(program, settings, facts);
  if (first) {
    if (std::string obstacle = session.diskObstacle(); !obstacle.empty())
      run.notes.push_back({obstacle, true});
    progress.line(targetLine(program, facts.device));
    if (graphs)
      progress.line(graphLine(*graphs, settings));
    if (std::string obstacle = session.ncclObstacle(); !obstacle.empty())
      run.notes.push_back({"GPUs are joined by their hosts, not by NCCL: " + obstacle, false});
    say(progress, run.notes);
    progress.line(batchLine(program));
    log = std::make_unique<MetricsLog>(program, settings, facts);
    if (run.board) {
      run.board->steps = stepsBefore;
      run.board->logOpen = !settings.log.empty();
    }
  }

  bool stopped = false;
  int64_t saved = -1, measured = -1; // after which step
  Times times;                       // of steps, or of the evaluation that the run is
  double measuredMs = 0;
  int64_t measuredSteps = 0;
  if (settings.reportKernels)
    session.measureCalls();
  bool traces = !settings.trace.empty();
  if (traces)
    session.trace(kTracedSteps);
  enter(Place::Training);
  // The first line that the log cannot take ends the run as a signal would: with all that it has saved.
  auto listen = [&] {
    if (first && !log->failure().empty())
      requestStop();
  };
  std::optional<BestEvaluation> best;
  if (!settings.bestMetric.empty()) {
    best.emplace(program, settings);
    best->goOn(exchanged(engine, first ? best->before() : 0.0).front());
  }
  std::string enough; // why the run ends before its steps
  auto measure = [&](DataSource &data) {
    Evaluation result = evaluate(run, session, data, log.get(), progress);
    if (settings.evaluates)
      times = result.times;
    return result;
  };
  try {
    listen();
    if (settings.generate)
      stopped =
          answerPrompts(session, engine, program, static_cast<RowSource &>(run.data), *settings.generate);
    else if (!program.outputs.empty())
      stopped = predict(run, session, log.get(), progress, times);
    else if (settings.evaluates)
      stopped = measure(run.data).stop;
    auto before = std::chrono::steady_clock::now();
    while (session.stepsDone() < settings.steps && !stopped && enough.empty() &&
           stepArrives(run, engine, session, saving, progress, stopped)) {
      fault::setStep(session.stepsDone());
      fault::point("step");
      const StepResult &result = session.step();
      auto now = std::chrono::steady_clock::now();
      double seconds = std::chrono::duration<double>(now - before).count();
      before = now;
      times.add(result.breakdown, result.ms);
      measuredMs += result.ms;
      ++measuredSteps;
      // The first step touches memory for the first time: not what a run is made of.
      if (settings.reportKernels && session.stepsDone() == stepsBefore + 1 &&
          settings.steps > session.stepsDone()) {
        session.measureCalls();
        measuredMs = measuredSteps = 0;
      }
      if (traces && session.stepsDone() == stepsBefore + kTracedSteps) {
        session.writeTrace(settings.trace);
        traces = false;
        before = std::chrono::steady_clock::now();
      }
      if (first) {
        log->step(result, seconds);
        listen();
        progress.step(result, seconds);
        if (run.board)
          run.board->steps = session.stepsDone();
      }
      stopped = result.stop;
      saving.goOn(session);
      int64_t done = session.stepsDone();
      bool measures = done == settings.steps || (settings.evalEvery && done % settings.evalEvery == 0);
      if (run.evalData && measures && !stopped) {
        Evaluation result = measure(*run.evalData);
        stopped = result.stop;
        measured = done;
        if (best && !stopped) {
          if (best->see(result) && settings.keepBest) {
            During savingNow(Place::Saving);
            say(progress, saving.saveBest(session));
            together(engine, [&] {
              if (first)
                best->record(done);
            });
          }
          enough = best->reasonToStop();
        }
        before = std::chrono::steady_clock::now();
      }
      bool last = stopped || !enough.empty() || done >= settings.steps;
      if (savesAfter(settings, done, last)) {
        During savingNow(Place::Saving);
        say(progress, saving.save(session, last));
        saved = done;
        before = std::chrono::steady_clock::now();
      }
    }
    enter(Place::Finishing);
    fault::point("finish");
    together(engine, checkMappings);
    if (traces)
      session.writeTrace(settings.trace);
    if (first && !stopped && enough.empty() && !settings.evaluates && session.stepsDone() < settings.steps &&
        settings.steps < DataSource::kEndless)
      progress.warning("the data ended after " + std::to_string(session.stepsDone()) + " of " +
                       std::to_string(settings.steps) + " steps");
    if (first && session.stepsSkipped() > 0 && session.stepsSkipped() == session.stepsDone())
      progress.warning(
          "every step has overflowed in fp16 and was skipped: the parameters are what they were; a "
          "smaller -loss-scale or -initial-scale-power may help");
    // A stream's last step is known to be the last only now.
    if (run.evalData && !stopped && measured != session.stepsDone() && session.stepsDone() > stepsBefore)
      stopped = measure(*run.evalData).stop;
    if (!settings.save.empty() && saved != session.stepsDone() && session.stepsDone() > stepsBefore) {
      During savingNow(Place::Saving);
      say(progress, saving.save(session, /*last=*/true));
      saved = session.stepsDone();
    }
    {
      During savingNow(Place::Saving);
      say(progress, saving.finish(session));
    }
    if (first)
      progress.end();
    std::string hash = giveParameters(run, session, first);
    if (!settings.log.empty())
      facts.libraries = exchanged(engine, residentLibraries(arena, settings.data));
    bool interrupted = stopped && (settings.evaluates || session.stepsDone() < settings.steps);
    if (settings.breakdown) {
      std::string table = breakdownOf(engine, times, settings.evaluates, log.get());
      if (first)
        progress.line(table);
    }
    if (settings.reportKernels) {
      std::vector<CallRow> rows = session.measuredCalls();
      MachineLimits limits = session.measureMachine(rows);
      if (first)
        progress.line(kernelsTable(program, rows, limits, options.threads, measuredMs, measuredSteps));
    }
    if (first && run.comparison) {
      log->compared();
      progress.line(run.comparison->text());
    }
    // All that can fail together is behind all ranks; from here on a signal changes nothing.
    checkLog(engine, log.get());
    enter(Place::Done);
    if (first) {
      log->end(session.stepsDone(), session.stepsSkipped(), hash, interrupted ? "interrupted" : "ok", enough);
      if (run.board)
        run.board->logOpen = 0;
      if (!log->failure().empty())
        throw Error(StatusFailure, log->failure());
      if (interrupted)
        progress.line("interrupted after " + std::to_string(session.stepsDone()) +
                      (settings.steps < DataSource::kEndless ? " of " + std::to_string(settings.steps) : "") +
                      " steps");
      if (!enough.empty())
        progress.line("ended after " + std::to_string(session.stepsDone()) + " steps: " + enough);
      if (std::string places = placesLine(settings, saved); !places.empty())
        progress.line(places);
    }
    return interrupted ? StatusInterrupted : StatusOk;
  } catch (const std::exception &error) {
    if (first) {
      progress.end();
      // A launcher knows better whose failure it is.
      if (!run.board)
        endLog(*log, session.stepsDone(), error);
      else if (!log->failure().empty())
        run.board->logOpen = 0;
    }
    throw;
  }
}

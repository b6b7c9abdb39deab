//===- MetricsLog.h - what rank 0 says of a run -----------------*- C++ -*-===//
//
// The JSON lines of -log (CONTRACT section 4) and what a person sees: a progress
// bar on a terminal, else lines that get rarer.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_METRICSLOG_H
#define DSOPT_LIB_RUNTIME_DRIVER_METRICSLOG_H

#include "Compare.h"
#include "RunSettings.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// What does not change during a run.
struct RunFacts {
  int64_t steps = 0;        ///< of the run
  int64_t microBatches = 0; ///< in the data
  std::string engine;
  std::string device;               ///< of the first rank, with its architecture; empty: the host
  std::optional<int64_t> graphs;    ///< CUDA graphs of a step; none: the host
  std::vector<int64_t> arenaBytes;  ///< mapped, one a rank
  std::vector<int64_t> hostBytes;   ///< the same of the host's memory
  std::vector<int64_t> diskBytes;   ///< and of the disk's
  int64_t stagingBytes = 0;         ///< of each rank, of -save-async
  Comparison *comparison = nullptr; ///< takes what is logged
  std::vector<int64_t> libraries;   ///< bytes resident beside arena and data, one a rank
};

/// One number a rank, or [min, max] above 16 ranks.
std::string jsonRanks(const std::vector<int64_t> &values);

/// What a log ends with where the run failed; `rank` -1: nobody's failure in particular.
std::string failureRecord(int64_t steps, const std::string &status, int rank, const std::string &reason);
/// Writes it to a log that nobody has open any more; silent where that fails.
void appendEnd(const std::string &path, const std::string &record);

/// The lines of -log, each written at once. Without a file, nothing.
class MetricsLog {
public:
  MetricsLog(const Program &program, const RunSettings &settings, const RunFacts &facts);
  ~MetricsLog();
  MetricsLog(const MetricsLog &) = delete;
  void step(const StepResult &result, double seconds);
  /// The loss on other data after step `step`.
  void evaluation(int64_t step, const Evaluation &result);
  /// What the comparison found.
  void compared();
  /// Milliseconds of a step, by rank.
  void breakdown(const std::vector<Breakdown> &ranks, bool evaluates);
  /// `ended`: why the run had fewer steps than asked for, if it was not interrupted.
  void end(int64_t steps, int64_t skipped, const std::string &weightsHash, const std::string &status,
           const std::string &ended = "");
  void end(const std::string &record) { write(record); }
  /// What kept a line from being written, empty: nothing. No more is written then.
  const std::string &failure() const { return error; }

private:
  void write(const std::string &line);
  void run();
  const Program &program;
  const RunSettings &settings;
  const RunFacts &facts;
  int file = -1;
  std::string error;
  int tokens = -1; ///< the input whose elements are tokens, -1 where there is no input_ids
};

/// What is printed while a run goes on. With -quiet only warnings.
class Progress {
public:
  Progress(const Program &program, const RunSettings &settings, const RunFacts &facts);
  void step(const StepResult &result, double seconds);
  /// A line of its own, above the bar.
  void line(const std::string &text);
  /// The same on standard error.
  void warning(const std::string &text);
  /// Leaves the bar of the last step where it is: nothing is drawn any more.
  void end();

private:
  /// Whether a step has a line where there is no bar.
  bool isDue(const StepResult &result);
  void bar(const StepResult &result);
  void draw();
  void erase();
  void flush();
  const Program &program;
  const RunSettings &settings;
  const RunFacts &facts;
  bool terminal = false;
  bool unread = false;                         ///< standard output takes no more
  std::string last;                            ///< the bar of the last step, empty before the first
  size_t shown = 0;                            ///< characters of the bar on the screen
  double smoothed = 0;                         ///< seconds of a step
  int64_t steps = 0;                           ///< of this run, so far
  std::chrono::steady_clock::time_point drawn; ///< the bar, or the last step's line
};

/// Samples of one step over all ranks (micro-batches where they have no rows); -1: no variant.
int64_t samplesPerStep(const Program &program, int variant);

/// One of the parts that a step's or an evaluation's time has.
struct BreakdownPart {
  const char *name;
  double Breakdown::*time;
};
const std::vector<BreakdownPart> &breakdownParts(bool evaluates);

/// The table of -breakdown: milliseconds of a step (an evaluation's: of as many micro-batches), one row a
/// rank and their mean.
std::string breakdownTable(const std::vector<Breakdown> &ranks, const std::vector<double> &milliseconds,
                           bool evaluates);

/// Where all went that a run wrote: "wrote weights to w.safetensors, the log to run.jsonl"; empty: nothing.
/// `saved` is the step of its last checkpoint, -1: none.
std::string placesLine(const RunSettings &settings, int64_t saved);

/// "  accuracy 0.75" of each of the program's metrics.
std::string metricsLine(const Program &program, const std::vector<float> &values);

/// "1.5 GB".
std::string describeBytes(int64_t bytes);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_METRICSLOG_H

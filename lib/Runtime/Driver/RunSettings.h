//===- RunSettings.h - a run's options, resolved ----------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_RUNSETTINGS_H
#define DSOPT_LIB_RUNTIME_DRIVER_RUNSETTINGS_H

#include "Generate/GenerateSettings.h"
#include "dsopt/Runtime/Data.h"
#include "dsopt/Runtime/Launch.h"
#include "dsopt/Runtime/Options.h"
#include "dsopt/Runtime/Session.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dsopt::runtime {

struct RunSettings {
  RunOptions options; ///< but for `steps` and `threads`, which depend on the data and the ranks
  int64_t steps = 0, epochs = 0, threads = 0; ///< as given, 0: not
  std::string data, evalData, log, save, resume, saveWeights, saveOnnx, saveOutputs, trace, compare;
  std::optional<GenerateSettings> generate; ///< of a program that does
  bool evaluates = false;                   ///< forward only, on `data`
  int64_t evalEvery = 0, evalBatches = 0;   ///< steps between evaluations, 0: only at the end; 0: all
  int64_t saveEvery = 0, saveKeep = 3;      ///< steps between checkpoints, 0: only at the end; how many stay
  int64_t stopAfter = 0;  ///< evaluations without a better one, 0: the run ends after its steps
  std::string bestMetric; ///< METRIC[:min|max]; empty: nobody asks which evaluation is best
  bool keepBest = false;  ///< its checkpoint stays
  TokenOptions tokens;
  bool pad = false; ///< fill micro-batches up to the next size of the dimension
  /// Names of this run in what it saves: one for each time that its ranks were started, the last is now's.
  std::vector<std::string> names;
  bool saveAsync = false; ///< checkpoints are written while steps go on
  bool saveAside = false; ///< others' later checkpoints in the folder of -save get other names
  bool resumeNewBatch = false;
  bool resumed = false;            ///< there was a checkpoint to go on from (known when ranks have met)
  std::optional<int64_t> logEvery; ///< none: each step in the log, fewer and fewer on standard output
  bool breakdown = false, reportKernels = false, quiet = false;
  Launch launch;
  bool insecure = false;                     ///< ranks need no secret to meet where others can reach them
  std::chrono::milliseconds stallTimeout{0}; ///< without anything moving; 0: none
  int64_t restarts = 0;                      ///< of the ranks that are started here
  bool appendsLog = false;                   ///< the log is this run's, of before a restart
  std::string commandLine;                   ///< this run's
  /// Options that all ranks have alike: name, and value in one spelling.
  std::vector<std::pair<std::string, std::string>> alike;
};

/// What the command line and the values compiled in say together. An Error of status 1 says what is wrong.
RunSettings resolveSettings(const Program &program, ParsedOptions options);

/// An Error of status 1 for options that are compiled in, with the dsopt command to use.
[[noreturn]] void refuseCompiledIn(const Program &program, const std::vector<std::string> &given);

/// The dsopt command that made the program, with these options ("zero=3") in place of its own.
std::string dsoptCommand(const Program &program, const std::vector<std::string> &given);

/// "global batch 32 = 4 dp x 2 micro-batches x 4".
std::string batchLine(const Program &program);

/// "target: cpu, x86-64-v3" or, on a device, "target: cuda, NVIDIA H100 80GB HBM3 (sm_90)".
std::string targetLine(const Program &program, const std::string &device);

/// What a device replays of a step, or why it does not: "CUDA graphs: 5 a step, for 63 of the device's 70
/// actions".
std::string graphLine(const GraphCounts &counts, const RunSettings &settings);

/// `./train --help`: run options with the values compiled in, then what else is.
std::string programHelp(const Program &program, const std::string &name);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_RUNSETTINGS_H

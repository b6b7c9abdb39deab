//===- Session.h - one rank's training run, seen from main() ----*- C++ -*-===//
//
// What tools/dsopt-run needs of the runtime's core: options of a run, a session
// that loads parameters and runs steps, and a way to see the trained parameters.
// Every method throws dsopt::runtime::Error. Methods named collective are called
// by all ranks in the same order.
//
// A rank's life:
//   Program program = parseProgram(json, bytes);
//   launcher: SharedGroup::create({program.positions[r / dp].arena for each r}), fork
//   rank:     auto engine = group->join(rank);           // or joinMpi(), or makeSingleEngine()
//             Session session(program, resolve, *engine, arena, options, inputs);
//             session.loadParameters(); session.step() ...; session.visitParameters(...)
//             engine->finish();      // on an Error: engine->fail(error.status, error.quiet), print unless
//             quiet
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_SESSION_H
#define DSOPT_RUNTIME_SESSION_H

#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/LossScale.h"
#include "dsopt/Runtime/Manifest.h"
#include "dsopt/Runtime/Program.h"
#include "dsopt/Runtime/Schedules.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsopt::runtime {

/// Reads the program table; an Error of status 1 names what is wrong with it. `actions` are the documents
/// that its positions' sections lie in, read later: they have to stay.
Program parseProgram(const char *json, size_t bytes, std::string_view actions = {});

/// An Error of status 1 if this machine lacks a CPU feature the program needs.
void checkMachine(const Program &program);
/// Why the devices that so many ranks of this machine would take cannot run a program for devices; empty:
/// they can. Starts the driver: for a process that ends then.
std::string deviceObstacle(const Program &program, int ranks);

/// The address of a symbol of the program's object, or null.
using SymbolResolver = std::function<void *(const std::string &)>;

/// A rank and where it is on the grid: its pipeline position, which of the data-parallel ranks it is, which
/// slice of buckets it has, and its coordinates.
struct RankInfo {
  int rank = 0, position = 0, dpRank = 0, slice = 0;
  std::array<int64_t, kAxes> coordinates{};

  /// Bytes from the beginning of the slot that an address is in.
  int64_t offsetOf(const Ref &ref) const {
    int64_t offset = ref.offset;
    for (size_t axis = 0; axis < kAxes; ++axis)
      offset += ref.steps[axis] * coordinates[axis];
    return offset;
  }
};
RankInfo rankInfo(const Program &program, int rank);
/// Bytes of each rank's arena.
std::vector<int64_t> arenasOf(const Program &program);
/// Bytes of each rank's memories of a kind.
std::vector<int64_t> memoriesOf(const Program &program, MemoryKind kind);
/// Where a position's memories begin: in a rank's arena, or at `disk`.
std::vector<char *> memoriesIn(char *arena, char *disk, const Position &position);
/// "8 (dp 2 x pp 4)": how many ranks a program was compiled for.
std::string describeWorld(const Program &program);

/// Where parameters come from if not from the model's own files.
struct WeightsFrom {
  std::string folder;  ///< replaces the program's model folder unless empty
  std::string file;    ///< a safetensors file, instead of all else; empty: none
  OriginalNames names; ///< what parameters may be called there
};

/// The standard deviation of -init=normal:0.02; an Error of status 1 if it is none.
double initDeviation(const std::string &init);

/// How what lies on disk is read and written (-aio).
struct DiskOptions {
  int64_t blockSize = 1 << 20; ///< bytes of a request
  int64_t queueDepth = 32;     ///< requests under way at once
};
/// From "block_size=1048576,queue_depth=8"; an Error of status 1 says what is wrong.
DiskOptions diskOptions(const std::string &text);

/// Bounds and means of LAMB's coefficients that 1-bit LAMB goes by: DeepSpeed's defaults.
struct LambOptions {
  double leastCoeff = 0.01, largestCoeff = 10;
  double coeffBeta = 0.9, factorMin = 0.5, factorMax = 4, factorThreshold = 0.1;
};

/// Options of a run, resolved (defaults are those of PyTorch's Adam; the caller sets the optimizer's).
struct RunOptions {
  int64_t steps = 1;
  double lr = 1e-3;
  LrSchedule schedule = LrSchedule::Constant;
  int64_t warmupSteps = 0;
  int64_t decaySteps = 0;  ///< 0: steps
  bool decayGiven = false; ///< here for the checkpoint's record
  double minLr = 0;
  std::map<std::string, double> lrParameters; ///< of DeepSpeed's schedules, all of the schedule's
  double momentum = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weightDecay = 0;
  double adamLrFactor = 1;    ///< the learning rate of AdamW beside Muon, divided by lr
  LambOptions lamb;           ///< of 1-bit LAMB
  double gradClip = 0;        ///< read where the program has clipping compiled in
  LossScaleOptions lossScale; ///< read where the program is of fp16
  int64_t seed = 0;
  WeightsFrom weights;
  bool shuffle = false;    ///< the source permutes each epoch; here for the checkpoint's record
  int64_t threads = 1;     ///< at most the program's
  std::vector<int> cpus;   ///< where they run: one each if there are as many, else any; empty: as inherited
  int localRank = 0;       ///< among the ranks of its host: which of its devices is the rank's
  std::string engine;      ///< of ranks with devices: nccl, host, or empty: NCCL where it can be
  std::string cudaGraph;   ///< off: a device's work is put on streams anew in each step
  bool breakdown = false;  ///< times of phases are asked for
  bool spins = false;      ///< threads may spin before they sleep: this host has a CPU for each
  std::string nvmePath;    ///< folder of what programs keep on disk
  DiskOptions disk;        ///< how it is read and written there
  bool newBatch = false;   ///< a checkpoint of other ranks goes on, not with the same bits
  bool logNorms = false;   ///< fill gradNorms and paramNorms
  bool logLosses = false;  ///< fill losses
  int64_t saveStaging = 0; ///< bytes of memory through which startSave takes state, 0: none is started

  /// Compare what each action does with what it says: seed of the order in which actions go; 0: do not.
  int64_t checkAccesses = 0;
};

/// CUDA graphs of a step, and how many of a device's actions they do.
struct GraphCounts {
  int64_t graphs = 0, actions = 0, all = 0;
};

/// Where micro-batches come from.
class InputSource {
public:
  virtual ~InputSource() = default;
  /// Writes graph input `input` (index into Program::inputs) of micro-batch `microBatch` (0 <= m < K)
  /// of step `step` to `target`, the program's type and shape. Called between and during steps: must
  /// not allocate.
  virtual void fill(int64_t step, int64_t microBatch, int64_t input, void *target) = 0;
  /// The number of the variant (Program::variants) that the micro-batches of a step fit, -1: none, or the
  /// program has none. Until the next call, `fill` writes what has its shapes.
  virtual int chooseVariant(int64_t step) { return -1; }
  /// Where element `element` of what `fill` writes comes from, for messages; empty if there is no more to
  /// say than step and micro-batch.
  virtual std::string describe(int64_t step, int64_t microBatch, int64_t input, int64_t element) {
    return "";
  }
  /// The micro-batches that steps before `step` have consumed: those of `step` follow them.
  virtual void startAt(int64_t step, int64_t consumed) {}
  /// The learning rate that comes with a step's data (LrSchedule::Stream); none where it says none.
  virtual std::optional<double> rateOf(int64_t step) { return std::nullopt; }
  /// Of a source whose place is more than a number of steps: what it has to know to go on after `steps` of
  /// them, for checkpoints; else empty.
  virtual std::string placeAfter(int64_t steps) const { return ""; }
};

/// Milliseconds of this rank in one step, or in an evaluation's forward of as many micro-batches.
struct Breakdown {
  double forward = 0, backward = 0, communication = 0, update = 0, waiting = 0;
  double evaluation = 0; ///< instead of forward
};

/// What steps or evaluations took in all.
struct Times {
  Breakdown sum;
  double ms = 0;
  int64_t steps = 0;
  void add(const Breakdown &one, double oneMs);
};

struct StepResult {
  int64_t step = 0;
  int variant = -1;           ///< that the step's micro-batches fit, -1: none
  float loss = 0;             ///< mean over the K micro-batches, equal on all ranks
  std::vector<float> metrics; ///< of Program::metrics, equal on all ranks
  float gradNorm = 0;         ///< before clipping, equal on all ranks; nan where the step is skipped
  double lr = 0;
  double ms = 0;        ///< this rank's
  double lossScale = 0; ///< 0: the loss is not scaled
  bool skipped = false; ///< what it computed is not finite in fp16: nothing is updated
  bool stop = false;    ///< all ranks agreed to stop after this step
  bool writing = false; ///< some rank had not written its part of a checkpoint (startSave)
  Breakdown breakdown;
  SentBytes sent{};                ///< by this rank in this step
  std::vector<int64_t> sentByRank; ///< model traffic of a step (all classes but Control), one a rank
  /// With logNorms, on all ranks: by parameter (index into Program::parameters), trainable ones only;
  /// others are -1. Gradient norms are before clipping, parameter norms after the update.
  std::vector<float> gradNorms, paramNorms;
  std::vector<double> losses; ///< with logLosses, on all ranks: of the K micro-batches
};

/// The loss over some micro-batches.
struct Evaluation {
  float loss = 0;               ///< mean over the micro-batches, equal on all ranks
  std::vector<float> metrics{}; ///< of Program::metrics, over all of them
  int64_t microBatches = 0;     ///< evaluated
  Times times;                  ///< this rank's
  bool stop = false;            ///< all ranks agreed to stop: `loss` means nothing then
};

/// What a kernel takes of a device: registers of a thread, shared bytes of a block, and bytes that a thread
/// keeps in memory for want of registers. Of a library's product, the algorithm, as long as the device's
/// products live.
struct KernelFigures {
  int64_t registers = 0, shared = 0, spills = 0;
  const char *algorithm = nullptr;
};

/// What a session measured of calls of one kind and shape since it was told to.
struct CallRow {
  Call call;
  bool flies = false; ///< runs beside computation: the time is from its start to its end
  int64_t calls = 0;
  double ms = 0, bytes = 0, flops = 0; ///< of all of them
  KernelFigures figures{};             ///< of the program's kernels on a device, the most of each
  std::string algorithm{}; ///< of a library's product on a device, of several calls the last one's
};

/// What this rank's threads reach, all ranks measuring at the same time; of a device its memory alone.
struct MachineLimits {
  double bandwidth = 0; ///< bytes a second, of a triad; of a device's memory, of a copy there
  std::map<std::string, double>
      peak; ///< flops a second by element type, of multiplications on registers alone
};

/// The options that change what a step computes, by name, as a checkpoint keeps them.
std::map<std::string, std::string> optionsOf(const Program &program, const RunOptions &options);

/// Takes a piece of an output (index into Program::outputs), those of one in the order of the data.
using OutputSink = std::function<void(int64_t output, const char *values, int64_t bytes)>;

class SessionState;

class Session {
public:
  /// `arena` has the position's arena bytes, zeroed, 64-aligned. All references must outlive the session.
  Session(const Program &program, const SymbolResolver &resolve, Engine &engine, char *arena,
          const RunOptions &options, InputSource &inputs);
  ~Session();

  const RankInfo &rankInfo() const;
  /// What keeps the rank's disk from being read and written directly, many blocks at once; empty: nothing.
  std::string diskObstacle() const;
  /// What carries bytes between ranks in a step: the engine, or NCCL.
  std::string engineName() const;
  /// Why that is not NCCL, though ranks have devices and nobody said so; empty: it is, or nobody asked.
  std::string ncclObstacle() const;
  /// What the rank's device replays of a step; none for the host.
  std::optional<GraphCounts> graphs() const;
  /// The rank's device and its architecture; empty: the host.
  std::string device() const;

  /// Reads this rank's parameters (collective): from the model's files, whose size and hashes of the chunks
  /// it reads are checked, or from where -weights and -init say.
  void loadParameters();

  /// Between steps (collective): parameters that a safetensors file has, under `names` or their own, take its
  /// values. Others stay, and what the optimizer keeps. What the file has beside them is an Error.
  void replaceParameters(const std::string &file, const OriginalNames &names);

  /// Writes a checkpoint (collective): the folder appears when it is complete. Manifest.h has its form. The
  /// lineage is rank 0's.
  void save(const std::string &checkpoint, const Lineage &lineage);
  /// The same while steps go on (collective): what is saved is the state of now. `named` runs on rank 0 when
  /// the checkpoint has its name, in another thread. One at a time.
  void startSave(const std::string &checkpoint, const Lineage &lineage, std::function<void()> named);
  /// Goes on with it after a step, where all ranks have written (collective). Throws what it met.
  void continueSave();
  /// Waits until it has its name, if there is one (collective).
  void finishSave();
  /// Takes parameters, optimizer state and step from a checkpoint, instead of loadParameters (collective).
  /// Returns the same on all ranks: nothing, or why the checkpoint cannot be read. The session then has no
  /// values; another checkpoint may do.
  std::optional<Error> resume(const std::string &checkpoint, const Manifest &manifest);

  /// Runs the next step (collective). The result is the session's, overwritten by the next step.
  const StepResult &step();
  int64_t stepsDone() const;
  /// Of these, steps that updated nothing: their gradients overflowed.
  int64_t stepsSkipped() const;
  /// The loss of the parameters as they are on the first `microBatches` of `inputs` (collective).
  Evaluation evaluate(InputSource &inputs, int64_t microBatches);
  /// The same of a program that has outputs instead of a loss: rank 0 hands them to `sink`.
  Evaluation predict(InputSource &inputs, int64_t microBatches, const OutputSink &sink);

  /// Runs a program that generates once, on what its inputs are given (collective): rank 0 hands the outputs
  /// to `sink`. Runs follow one another; what one leaves in the caches the next ones read. Whether all ranks
  /// agreed to stop.
  bool runOnce(int64_t run, const OutputSink &sink);

  /// Measures calls from now on, forgetting what was measured before.
  void measureCalls();
  std::vector<CallRow> measuredCalls() const;
  /// Collective.
  MachineLimits measureMachine(const std::vector<CallRow> &rows);

  /// Notes when actions run in the next `steps` steps.
  void trace(int64_t steps);
  /// Collective: rank 0 writes what was noted as a Chrome trace; nothing is noted any more.
  void writeTrace(const std::string &path);

  /// Asks for a stop at the step all ranks agree on; may be called from a signal handler.
  void requestStop();

  /// Collective: on rank 0 calls `visit` with each parameter in order of name and its whole value,
  /// `bytes` long; elsewhere hands the slices over.
  void visitParameters(const std::function<void(const Parameter &, const char *value)> &visit);

  /// Collective: `bytes` of every rank's `record` in order of rank.
  void exchange(const void *record, int64_t bytes, void *all);

private:
  std::unique_ptr<SessionState> state;
};

/// "rank 3 (stage 1, data-parallel rank 1)" and "gather b2": for messages about a failed rank.
std::string describeRank(const Program &program, int rank);
/// Action number `action` of a position, counted on from list to list (positionsOf); null if there is none.
const Action *findAction(const Program &program, int position, int64_t action);
std::string describeAction(const Program &program, int rank, int64_t action);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_SESSION_H

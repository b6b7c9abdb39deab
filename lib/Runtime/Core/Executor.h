//===- Executor.h - runs the actions of a step or evaluation ----*- C++ -*-===//
//
// Submits a position's actions to its queues (Queue.h) and polls these: an action
// starts when what it waits for is complete. Computation runs inline, communication
// is polled between; when nothing moves the rank sleeps on the engine's waker.
// Everything is prepared once: a step allocates nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_EXECUTOR_H
#define DSOPT_LIB_RUNTIME_CORE_EXECUTOR_H

#include "Core/AccessMemory.h"
#include "Core/Agreement.h"
#include "Core/AsyncSave.h"
#include "Core/Decide.h"
#include "Core/DeviceGraphs.h"
#include "Core/DeviceQueue.h"
#include "Core/NcclQueue.h"
#include "Core/Queue.h"
#include "Core/Trace.h"
#include "Core/TrustRatios.h"
#include "Kernels/CPU/Runtime.h"
#include "Kernels/CUDA/SquarePiece.h"

#include <atomic>
#include <optional>
#include <random>

namespace dsopt::runtime {

class Executor : private DeviceOwner {
public:
  /// Runs this rank's actions of list `list` (positionsOf). `disk` is null where the program has no memory
  /// there, `device` where the program is for the host; else addresses are of its mirror.
  Executor(const Program &program, const RankInfo &info, size_t list, Engine &engine,
           const Addresses &addresses, DiskMemory *disk, DeviceRank *device, const SymbolResolver &resolve,
           ThreadPool &pool, const RunOptions &options, InputSource &inputs);
  ~Executor() override;

  /// Runs step `step`; fills loss, norm, rate, stop and breakdown of `result`. What it writes to disk last
  /// may fly on: beside the next step of this executor, or until `settle`.
  /// `appliedSteps` is counted on when the step applies.
  void run(int64_t step, int64_t &appliedSteps, const std::atomic<bool> &stop, StepResult &result);

  /// Returns when all that steps have written is on disk.
  void settle();

  /// Runs the actions of an evaluation on the K micro-batches from `group * K` on of the inputs. Returns
  /// their losses; `stop` as in a step. Fills stop and adds to the times of `evaluation`.
  const Agreement &evaluate(int64_t group, std::atomic<bool> &stop, Evaluation &evaluation);

  /// Its updates are of `pending`, none where that is empty, and what the agreement decides takes its place:
  /// those of the next step. Outlives the executor's steps.
  void delay(std::optional<Decision> &newPending) { pending = &newPending; }
  /// Its loss is multiplied by `scale`, which each step's decision changes. It outlives the executor's steps.
  void scaleLoss(LossScale &scale) { lossScale = &scale; }
  /// Its steps add their learning rate to `sum`, which begins anew where ranks meet. It outlives them.
  void addRates(double &sum) { rates = &sum; }
  /// From now on actions wait for what `save` takes of what they change. It outlives the executor's steps.
  void waitFor(AsyncSave &save);
  /// From now on actions go one after the other, and what they do is compared with what they say. The memory
  /// outlives the executor's steps; null: they go as they can.
  void check(AccessMemory *memory);
  /// Another executor has run since.
  void takeOver();
  /// Measures calls from now on.
  void measure(Profile &profile) { rt.profile = &profile; }
  /// Notes when actions run, from now on; null: no more.
  void record(Trace *newTrace) { trace = newTrace; }
  /// What graphs of the device do from its second step on.
  GraphCounts graphs() const;

private:
  /// An action with everything looked up.
  struct Prepared {
    const Action *action;
    void *function = nullptr;                    ///< Run: the segment
    const std::vector<int64_t> *calls = nullptr; ///< Run: what it calls
    int64_t call = -1;                           ///< Update: what its kernel is
    size_t args = 0;                             ///< first of its pointers in `pointers`
    char *temp = nullptr;
    int64_t microBatch = 0;                 ///< Input: index in the step
    Element type = Element::F32;            ///< Reduce, Add, Norm: of the gradient
    bool isIdle = false;                    ///< Run: other ranks do it
    size_t firstLaunch = 0, lastLaunch = 0; ///< Update: into `launches`
    size_t norm = 0; ///< Norm: its number; Update: that of the direction, or of the first launch by ratios
    std::vector<cuda::SquarePiece> pieces; ///< Norm on a device
    DiskTransfer *transfer = nullptr;      ///< Copy: where it is one
    bool trails = false;                   ///< Copy: the step need not wait for it
    bool flies = false;                    ///< trails: now, since step `startedIn`
    int64_t startedIn = 0;
    bool meetsTrailing = false; ///< touches what those touch that trail
    const Communicator *communicator = nullptr;
    int peer = 0; ///< a rank
    uint64_t tag = 0;
    TrafficClass traffic = TrafficClass::AllGather;
    double Breakdown::*timer = &Breakdown::communication;
    std::vector<size_t> regions; ///< of what `save` takes, that it changes
  };
  /// One group of an update: a kernel over [begin, end).
  struct Launch {
    void *kernel; ///< a dsopt_kernel, or a device's
    int64_t begin, end;
    size_t args;
    int64_t grain = 4096;
  };
  struct ScalarTable {
    double lrScale;
    double decayScale;
    float *values;
    std::vector<float> uploaded{}; ///< what a device has
  };

  const Communicator &communicator(int64_t index);
  bool hasOwnGradients() const { return kindOfList(list) >= ListKind::FrozenStep; }
  /// What a decision is of behind the freeze of an optimizer that keeps its variance's correction.
  int64_t frozenSince() const {
    ListKind kind = kindOfList(list);
    return kind == ListKind::FrozenStep || kind == ListKind::FirstFrozenStep ? program.freeze_step : 0;
  }
  void prepareQueues();
  void prepareDevice();
  Staged stage(const Prepared &prepared) const;
  NcclAction ncclAction(size_t index) const;
  NcclPlace ncclPlace() const;
  void prepareTrailing();
  /// Whether an update, or the direction before it, goes by norms of whole parameters.
  static bool seesNorms(const Action &action) {
    return action.kind == ActionKind::Update && action.temp.buffer >= 0;
  }
  static void *flatKernel(const std::string &symbol, const SymbolResolver &resolve);
  bool isOfOthers(const Action &run) const;
  /// What maps and transforms read of the first table is there on ranks, too, whose slices are all padding.
  void prepareScalars();
  void prepareUpdate(Prepared &prepared, const SymbolResolver &resolve);
  void addLaunch(const Action &action, const Launch &launch, const float *table);
  float *scalarTable(double lrScale, double decayScale);
  /// So many of buffer 'scalars', one behind the other.
  float *takeTables(int64_t count);
  bool isComplete(int64_t action) const override { return done[action]; }
  bool isHeld(int64_t action) override;
  void start(int64_t index, int slot, Clock::time_point begin) override;
  void announce(int64_t index) override;
  int64_t together(int64_t index) const override;
  void issue(int64_t index) override {
    starting = index;
    runOnDevice(actions[index]);
  }
  void issued() override { starting = -1; }
  bool isDevicesAlone(int64_t index) const override { return isDevicesAlone(actions[index]); }
  bool isDevicesAlone(const Prepared &prepared) const;
  void finish(int64_t index, Clock::time_point begin) override;
  void communicated(Clock::time_point begin) override;
  Error failed(int64_t index, const std::string &what) const override;
  void run(const Prepared &prepared, int slot);
  void runOnDevice(const Prepared &prepared);
  void sumByParameter(const Prepared &prepared);
  /// What a call of the driver that fails says, with where.
  Error deviceFailed(const cuda::Failure &failure) const;
  void prepareUploads();
  void prepareGraphs();
  void leaveRest();
  void uploadTables();
  void uploadSeed(const float *seed);
  /// Whether a device does it, not the host or its engine.
  bool isOnDevice(const Prepared &prepared) const;
  void fillInput(const Prepared &prepared, void *target);
  void measured(const Prepared &prepared, const Profile::Span &span);
  const std::vector<int64_t> &shapeOf(int64_t input) const {
    return list < kListKinds ? program.inputs[input].shape
                             : program.variants[list / kListKinds - 1].shapes[input];
  }
  void checkIndices(const Prepared &prepared, const void *values) const;
  void fold(const Action &action, void **args) const;
  void fillContext(const Prepared &prepared, uint32_t *context) const;
  int64_t bytesMoved(const Prepared &prepared) const;
  /// Runs all actions once.
  void runActions(Breakdown &breakdown);
  /// Polls the queues while there are any.
  void drive(const size_t &count, Breakdown &breakdown);
  void driveQueues(const size_t &count, Breakdown &breakdown);
  /// The same, one after the other.
  void runChecked(Breakdown &breakdown);
  int64_t chooseNext();
  std::vector<OthersTouch> othersTouch(int64_t action) const;
  AccessMemory::Trial trialOf(int64_t action, const std::vector<OthersTouch> &others);
  void rehearse(const Prepared &prepared);
  void runCompared(int64_t action, Breakdown &breakdown);
  void landCompared();
  void expectStaged(const Prepared &prepared, const std::vector<Touch> &touches) const;
  std::vector<Touch> wholeTouches(const Prepared &prepared, std::vector<Touch> touches) const;
  void writeSeed();
  void decide();
  void writeTables(const Decision &decision);
  /// "in step 3, in 'gather b2'", on a device with the stream.
  std::string whereIs(int64_t index) const;
  [[noreturn]] void stuck() const;
  /// Lets a device work on; false if none does.
  bool awaitDevice();
  [[noreturn]] void stalled(int64_t index) const;

  const Program &program;
  RankInfo info;
  size_t list;
  const Position &position;
  bool evaluates;
  int64_t starting = -1;   ///< the action that is begun
  int64_t firstAction = 0; ///< where its actions begin among those that describeAction counts
  Engine &engine;
  const Addresses &addresses;
  DiskMemory *disk;
  DeviceRank *device;
  ThreadPool &pool;
  dsopt_rt rt;
  const RunOptions &options;
  InputSource &inputs;

  std::map<int64_t, Communicator> communicators; ///< that this rank's actions use, by index in the program
  std::vector<Prepared> actions;
  std::vector<void *> pointers;
  std::vector<void *> devicePointers; ///< the same, where a device does something
  std::vector<Launch> launches;
  std::vector<ScalarTable> tables;
  int64_t takenTables = 0;                   ///< of buffer 'scalars', also by ratios on a device
  std::vector<DiskTransfer> transfers;       ///< by action, where there is a disk
  std::vector<Staged> staged;                ///< by action, where there is a device
  std::vector<NcclAction> ncclActions;       ///< by action, where NCCL joins the ranks' devices
  std::vector<std::vector<int64_t>> uploads; ///< by action: those from where the host then writes
  std::unique_ptr<DeviceOrder> order;
  GraphPlan graphPlan;               ///< empty where there are none
  std::vector<char> followsDecision; ///< by action: a graph that begins there does only what applies
  /// What goes up of `tables`, by turns: what went two times ago is there when an agreement is.
  std::unique_ptr<cuda::Pinned> tableCopies;
  size_t tableTurn = 0;
  /// What goes up of the loss's gradient: the last one is there when an agreement is.
  std::unique_ptr<cuda::Pinned> seedCopy;
  std::optional<float> uploadedSeed;                ///< what the device has
  std::vector<std::unique_ptr<ActionQueue>> queues; ///< as the program lists them
  std::vector<int> slots;                           ///< of the engine, by queue, -1: it does not fly
  std::vector<ActionQueue *> polled;                ///< communication first
  StallClock clock;                                 ///< of waiting for peers
  std::optional<WaitsForPeers> deviceWaits;         ///< for what peers have a part in, until it gets on
  std::unique_ptr<Agreement> agreement;
  std::unique_ptr<TrustRatios> ratios; ///< where updates go by norms of whole parameters
  /// Where each micro-batch of the step, by index, is among the ranks' in their run orders.
  std::vector<int64_t> microBatches;

  // Of the step in progress.
  std::vector<char> done;
  bool replays = false; ///< graphs of the device
  bool leaves = false;  ///< what only the device has still to do
  size_t left = 0;      ///< actions that are not complete, or not begun where they trail
  size_t trailing = 0;  ///< actions that fly on, of this step and the one before
  Breakdown *times = nullptr;
  bool applies = true; ///< as the agreement decided
  int64_t step = 0;
  bool hasRun = false; ///< all of its actions, once
  int64_t *appliedSteps = nullptr;
  std::optional<Decision> *pending = nullptr; ///< of updates that lag
  LossScale *lossScale = nullptr;
  double *rates = nullptr; ///< where ranks move apart
  const std::atomic<bool> *stopRequest = nullptr;
  StepResult *result = nullptr;
  Trace *trace = nullptr;
  AsyncSave *save = nullptr;
  int64_t held = -1; ///< an action that waits for it, as polled last

  /// Of a step whose actions go one after the other, but for those that fly.
  struct Checked {
    AccessMemory &memory;
    std::vector<std::vector<Touch>> touches;   ///< by action
    std::vector<std::vector<int64_t>> byQueue; ///< actions
    std::vector<size_t> next{};                ///< by queue
    std::vector<int64_t> flying{};             ///< launched and not looked at since
    std::mt19937_64 random{};
    std::unique_ptr<cuda::Stream> stream{}; ///< of what runs first
    size_t awaited = 0;                     ///< 1 until one of those is complete
  };
  std::unique_ptr<Checked> checked; ///< null: they go as they can
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_EXECUTOR_H

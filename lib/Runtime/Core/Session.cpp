//===- Session.cpp - one rank's training run -------------------------------===//

#include "dsopt/Runtime/Session.h"
#include "Core/AsyncSave.h"
#include "Core/DeliverOutputs.h"
#include "Core/DeviceRank.h"
#include "Core/Executor.h"
#include "Core/FirstTouch.h"
#include "Core/FrozenSteps.h"
#include "Core/InitialValues.h"
#include "Core/LambCoefficients.h"
#include "Core/LocalSteps.h"
#include "Core/ParameterNorms.h"
#include "Core/Parameters.h"
#include "Core/Replaced.h"
#include "Core/RunManifest.h"
#include "Core/SavedState.h"
#include "Core/Together.h"
#include "dsopt/Runtime/Convolution.h"
#include "dsopt/Runtime/Epilogue.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

namespace dsopt::runtime {

/// What generated code calls by name: kept though nothing here does.
[[gnu::used, gnu::retain]] static void *const abi[] = {reinterpret_cast<void *>(&dsopt_rt_launch),
                                                       reinterpret_cast<void *>(&dsopt_rt_launch_device),
                                                       reinterpret_cast<void *>(&dsopt_rt_gemm),
                                                       reinterpret_cast<void *>(&dsopt_rt_gemm_part),
                                                       reinterpret_cast<void *>(&dsopt_rt_linear_nll),
                                                       reinterpret_cast<void *>(&dsopt_rt_scatter_add),
                                                       reinterpret_cast<void *>(&dsopt_rt_convolution),
                                                       reinterpret_cast<void *>(&dsopt_rt_scatter),
                                                       reinterpret_cast<void *>(&dsopt_rt_accumulate),
                                                       reinterpret_cast<void *>(&dsopt_rt_ctc),
                                                       reinterpret_cast<void *>(&dsopt_rt_cached_attention),
                                                       reinterpret_cast<void *>(&dsopt_rt_ctc_grad),
                                                       reinterpret_cast<void *>(&dsopt_rt_gemm_epilogue)};

/// Of threads that share their CPUs with nobody.
constexpr int kSpins = 4000;

/// The element types of products.
static int64_t productType(const std::string &type) {
  return type == "bf16" ? DSOPT_BF16 : type == "f16" ? DSOPT_F16 : type == "f64" ? DSOPT_F64 : DSOPT_F32;
}

class SessionState {
public:
  SessionState(const Program &program, const SymbolResolver &resolve, Engine &engine, char *arena,
               const RunOptions &given, InputSource &inputs)
      : program(program), info(rankInfo(program, engine.rank())), engine(engine), options(checked(given)),
        disk(openDisk()),
        pool(static_cast<int>(options.threads), options.spins ? kSpins : 0, prepareThread, options.cpus),
        // A device's mirror is used here and there only.
        touched(arena, isOnDevice() ? 0 : arenaOf(program.positions[info.position]), pool.threads(),
                options.cpus),
        memories(memoriesIn(arena, disk ? disk->begin() : nullptr, program.positions[info.position])),
        resolve(resolve), device(openDevice()),
        accessMemory(AccessMemory::open(options, program.positions[info.position], memories, device.get())),
        executed(prepareSteps(inputs)), addresses(sizesOf(ListKind::Step).front()->addresses),
        inputs(inputs) {
    engine.setPool(&pool);
    if (const Buffer *seed = addresses.find("seed")) {
      *reinterpret_cast<float *>(addresses.at(*seed)) = static_cast<float>(1.0 / program.K);
      if (device)
        device->upload(addresses.at(*seed), sizeof(float));
    }
    if (options.saveStaging > 0)
      saveAsync(savePlan());
    for (auto &size : sizesOf(ListKind::DelayedStep))
      size->executor.delay(pending);
    for (ListKind kind : {ListKind::LocalStep, ListKind::JoinStep})
      for (auto &size : sizesOf(kind))
        size->executor.addRates(rates);
    if (program.trains && scalesLoss(program.precision)) {
      lossScale.emplace(options.lossScale);
      eachExecutor([&](Executor &executor) { executor.scaleLoss(*lossScale); });
    }
    if (options.logNorms) {
      norms.emplace(program, info, addresses, engine, pool);
      result.gradNorms.resize(program.parameters.size(), -1.0f);
    }
    result.sentByRank.resize(engine.size());
  }
  ~SessionState() {
    engine.abandon();
    engine.setPool(nullptr);
  }

  /// What steps have written is on disk, and nothing flies.
  void settleSteps() {
    eachExecutor([](Executor &executor) { executor.settle(); });
  }
  /// What was changed on disk by address is there.
  void settleDisk() {
    if (disk)
      disk->settle();
  }
  /// What was loaded is there, on disk and on the device.
  void settleState() {
    settleDisk();
    if (device)
      onDevice("as its parameters went there",
               [&] { device->uploadState(program.positions[info.position]); });
  }
  /// All that outlives steps is where addresses say, and nothing flies.
  void fetchState() {
    settleSteps();
    if (device)
      onDevice("as its state was fetched", [&] { device->downloadState(program.positions[info.position]); });
  }
  /// The same of an output, which nothing computes or sends any more.
  void fetchOutput(char *values, int64_t bytes) {
    if (device && device->memory.contains(values))
      onDevice("as its outputs were fetched", [&] { device->download(values, bytes); });
  }
  template <typename Body> void onDevice(const std::string &where, Body body) const {
    try {
      body();
    } catch (const cuda::Failure &failure) {
      throw device->failed(where, failure);
    }
  }
  bool isOnDevice() const { return program.target != "cpu"; }

  std::unique_ptr<ParameterValues> openValues() {
    const WeightsFrom &from = options.weights;
    std::unique_ptr<ParameterValues> model =
        std::make_unique<ParameterFiles>(from.folder.empty() ? program.model_folder : from.folder, &pool);
    if (!from.file.empty())
      model = openWeights(from.file, program, from.names, &pool, std::move(model));
    else if (!program.init.empty() && program.init != "model")
      model = drawWeights(program.init, options.seed, &pool, std::move(model));
    return replaced.over(std::move(model));
  }

  const StepResult &step() {
    auto start = std::chrono::steady_clock::now();
    SentBytes before = engine.sent();
    result.step = steps;
    result.skipped = false;
    result.variant = inputs.chooseVariant(steps);
    ListKind kind = kindOfNext(program, steps, applied, isPadded);
    Executor &executor = sizesOf(kind)[result.variant + 1]->executor;
    bool changes = &executor != last;
    // Other actions may touch the same bytes.
    if (changes && last) {
      last->settle();
      executor.takeOver();
    }
    prepareState(kind);
    last = &executor;
    int64_t appliedBefore = applied;
    executor.run(steps, applied, stop, result);
    if (movesApart(program) && applied == program.freeze_step && applied > appliedBefore)
      endExchanges();
    for (int i = 0; i < kTrafficClasses; ++i)
      result.sent[i] = engine.sent()[i] - before[i];
    if (norms) {
      fetchState();
      norms->exchange(result.paramNorms);
    }
    if (changes || !program.variants.empty()) {
      // A schedule is the same in every step: one exchange is enough.
      int64_t mine = std::accumulate(result.sent.begin(), result.sent.end() - 1, int64_t(0));
      engine.exchange(&mine, sizeof(mine), result.sentByRank.data());
    }
    ++steps;
    result.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

  /// Before steps in which ranks keep their own gradients, what the last ones may have left.
  void prepareState(ListKind kind) {
    if (kind < ListKind::FrozenStep) {
      isPadded = true;
      return;
    }
    if (!std::exchange(isPadded, false))
      return;
    changeState([&] {
      const Position &position = positionsOf(program, static_cast<size_t>(kind))[info.position];
      for (const auto &size : sizesOf(kind))
        clearPadding(program, position, info, size->addresses);
      if (program.optimizer == "onebit-lamb")
        beginFactors(program, info, addresses, engine, pool, /*isFirst=*/applied == program.freeze_step);
    });
  }

  /// Behind the last step before a freeze from which on ranks move apart.
  void endExchanges() {
    changeState([&] { clearErrors(program.positions[info.position], addresses); });
  }

  /// Changes what a checkpoint may still read, by no action that would wait for it.
  template <typename F> void changeState(F change) {
    if (async)
      async->finish();
    fetchState();
    change();
    settleState();
  }

  Evaluation evaluate(InputSource &source, int64_t microBatches, const OutputSink *sink = nullptr) {
    if (program.trains && program.evaluation.empty())
      throw Error(StatusInput, "the program has no evaluation; compile it anew", /*quiet=*/info.rank != 0);
    settleSteps();
    ListKind kind = program.trains ? ListKind::Evaluation : ListKind::Step;
    Sizes forward = prepareSizes(kind, source);
    for (auto &size : forward)
      if (async)
        size->executor.waitFor(*async);
    Evaluation evaluation;
    double total = 0;
    std::vector<double> sums(elementsOf(program.metrics));
    while (evaluation.microBatches < microBatches && !evaluation.stop) {
      // What the last group has too much is computed and left out.
      int64_t group = evaluation.microBatches / program.K;
      int variant = source.chooseVariant(group);
      Size &size = *forward[variant + 1];
      Executor &executor = size.executor;
      const Agreement &agreement = executor.evaluate(group, stop, evaluation);
      int64_t counted = std::min(program.K, microBatches - evaluation.microBatches);
      for (int64_t i = 0; i < counted; ++i)
        total += agreement.losses()[i];
      agreement.addMetrics(counted, sums);
      evaluation.microBatches += counted;
      if (sink && !evaluation.stop)
        deliverOutputs(
            program, positionsOf(program, kListKinds * (variant + 1) + static_cast<size_t>(kind)), info,
            engine, size.addresses, counted, arrived,
            [&](char *values, int64_t bytes) { fetchOutput(values, bytes); }, *sink);
    }
    evaluation.metrics = combineMetrics(program.metrics, sums, microBatches);
    evaluation.loss = static_cast<float>(total / static_cast<double>(microBatches));
    return evaluation;
  }

  bool runOnce(int64_t run, const OutputSink &sink) {
    int variant = inputs.chooseVariant(run);
    Size &size = *sizesOf(ListKind::Step)[variant + 1];
    if (&size.executor != last && last) {
      last->settle();
      size.executor.takeOver();
    }
    last = &size.executor;
    Evaluation evaluation;
    size.executor.evaluate(run, stop, evaluation);
    if (!evaluation.stop)
      deliverOutputs(
          program, positionsOf(program, kListKinds * (variant + 1)), info, engine, size.addresses, 1, arrived,
          [&](char *values, int64_t bytes) { fetchOutput(values, bytes); }, sink);
    return evaluation.stop;
  }

  MachineLimits measureMachine(const std::vector<CallRow> &rows) {
    MachineLimits limits;
    engine.barrier();
    if (device) {
      limits.bandwidth = cuda::measureBandwidth(device->device);
      engine.barrier();
      return limits;
    }
    limits.bandwidth = measureBandwidth(pool);
    for (const CallRow &row : rows)
      if (!row.call.products.empty() && !limits.peak.count(row.call.type))
        limits.peak[row.call.type] = measurePeak(pool, productType(row.call.type));
    engine.barrier();
    return limits;
  }

  /// What is the same in all saves, but for gradients that wait for their update. Collective where these are
  /// new.
  const SavePlan &savePlan() {
    bool isApart = areApart(program, applied);
    if (plan && plan->saved.hasPending == pending.has_value() && plan->saved.hasErrors == hasErrors() &&
        plan->saved.isApart == isApart)
      return *plan;
    if (async)
      async->finish();
    bool isAsync = static_cast<bool>(async);
    async.reset();
    plan = std::make_unique<SavePlan>(program, info, addresses, pending.has_value(), hasErrors(), isApart);
    if (isAsync)
      saveAsync(*plan);
    return *plan;
  }
  /// Whether steps have left out some of what they exchanged.
  bool hasErrors() const { return leavesErrors(program, applied); }
  void saveAsync(const SavePlan &plan) {
    async = std::make_unique<AsyncSave>(plan, engine, options.saveStaging, options.cpus,
                                        device ? &device->state : nullptr);
    eachExecutor([&](Executor &executor) { executor.waitFor(*async); });
  }
  template <typename Body> void eachExecutor(Body body) {
    for (const Sizes &sizes : executed)
      for (auto &size : sizes)
        body(size->executor);
  }
  /// The facts of a checkpoint of now.
  Manifest manifest(const Lineage &lineage) const;
  void resumePending(const std::string &checkpoint, const Manifest &manifest);

  std::unique_ptr<Profile> profile;
  std::unique_ptr<Trace> trace;
  const Program &program;
  RankInfo info;
  Engine &engine;
  RunOptions options;
  std::unique_ptr<DiskMemory> disk; ///< null where the program has none; its thread runs on any CPU
  ThreadPool pool;
  FirstTouch touched;           ///< the arena
  std::vector<char *> memories; ///< where they begin; the device's mirror
  SymbolResolver resolve;
  std::string ncclObstacle;                   ///< why ranks with devices talk by way of their hosts
  std::unique_ptr<DeviceRank> device;         ///< null where the program is for the host
  std::unique_ptr<AccessMemory> accessMemory; ///< null: accesses are not checked
  /// The program at one size of its dimension.
  struct Size {
    Size(SessionState &state, size_t list, InputSource &source)
        : addresses(positionsOf(state.program, list)[state.info.position], state.info, state.memories,
                    state.resolve, state.isOnDevice()),
          executor(state.program, state.info, list, state.engine, addresses, state.disk.get(),
                   state.device.get(), state.resolve, state.pool, state.options, source) {
      executor.check(state.accessMemory.get());
    }
    Addresses addresses;
    Executor executor;
  };
  /// The largest, then the variants. None: there are no such steps.
  using Sizes = std::vector<std::unique_ptr<Size>>;
  std::array<Sizes, kListKinds> executed; ///< by ListKind; evaluations have theirs while they run
  const Sizes &sizesOf(ListKind kind) const { return executed[static_cast<size_t>(kind)]; }
  std::vector<char> arrived;           ///< a piece of an output, on rank 0
  double rates = 0;                    ///< learning rates since ranks met, while they are apart
  std::optional<LossScale> lossScale;  ///< of fp16
  std::optional<Decision> pending;     ///< of the gradients that wait for their update
  std::optional<ParameterNorms> norms; ///< under -log-norms
  Replaced replaced;                   ///< what replaceParameters brought
  bool isPadded = true;                ///< steps may have left anything between parameters
  Executor *last = nullptr;            ///< of the last step
  const Addresses &addresses;          ///< at the largest
  InputSource &inputs;
  int64_t steps = 0, firstStep = 0, applied = 0;
  int64_t consumedBefore = 0; ///< micro-batches, by the steps before firstStep
  std::atomic<bool> stop{false};
  StepResult result;
  std::unique_ptr<SavePlan> plan;   ///< once there was a save
  std::unique_ptr<AsyncSave> async; ///< with a thread that uses all above

private:
  RunOptions checked(RunOptions given) const {
    if (engine.size() != program.ranks())
      throw Error(StatusInput,
                  "started with " + std::to_string(engine.size()) + " ranks; the program was compiled for " +
                      describeWorld(program),
                  /*quiet=*/info.rank != 0);
    if (given.threads < 1 || given.threads > std::max<int64_t>(program.threads, 1))
      throw Error(StatusInput,
                  "-threads=" + std::to_string(given.threads) + ": expected 1 to " +
                      std::to_string(program.threads) + ", for which the program was compiled",
                  /*quiet=*/info.rank != 0);
    limitLibraries(program.features);
    return given;
  }

  /// Collective: a disk that is too small on one rank is so before any of them loads its parameters.
  std::unique_ptr<DiskMemory> openDisk() {
    std::unique_ptr<DiskMemory> opened;
    if (memoriesOf(program, MemoryKind::Disk) == std::vector<int64_t>(engine.size()))
      return opened;
    if (options.nvmePath.empty())
      throw Error(StatusInput, "the program keeps state on disk, but nothing says where: give -nvme-path=DIR",
                  /*quiet=*/info.rank != 0);
    together(engine, [&] {
      if (int64_t bytes = memoriesOf(program, MemoryKind::Disk)[info.rank])
        opened =
            std::make_unique<DiskMemory>(options.nvmePath, bytes, info.rank, options.disk, engine.waker());
    });
    return opened;
  }
  std::unique_ptr<DeviceRank> openDevice() {
    if (!isOnDevice())
      return nullptr;
    std::unique_ptr<DeviceRank> opened;
    together(engine, [&] {
      try {
        opened = std::make_unique<DeviceRank>(program, info, options.localRank, resolve, memories,
                                              /*fills=*/options.checkAccesses > 0);
      } catch (const cuda::Failure &failure) {
        throw Error(StatusFailure,
                    describeRank(program, info.rank) + " as its GPU was opened: " + failure.what());
      }
    });
    if (engine.size() > 1 && options.engine != "host")
      joinByNccl(*opened);
    return opened;
  }
  void joinByNccl(DeviceRank &opened) {
    ncclObstacle = runtime::ncclObstacle(engine, opened.device);
    if (!ncclObstacle.empty() && options.engine == "nccl")
      throw Error(StatusFailure, "-engine=nccl: " + ncclObstacle, /*quiet=*/info.rank != 0);
    if (!ncclObstacle.empty())
      return;
    std::optional<NcclPlan> plan;
    together(engine, [&] { plan = planNccl(program, info.rank); });
    opened.nccl = std::make_unique<NcclWorld>(engine, opened.device, std::move(*plan));
  }
  std::array<Sizes, kListKinds> prepareSteps(InputSource &source) {
    std::array<Sizes, kListKinds> all;
    for (size_t kind = 0; kind < kListKinds; ++kind)
      if (static_cast<ListKind>(kind) != ListKind::Evaluation)
        all[kind] = prepareSizes(static_cast<ListKind>(kind), source);
    return all;
  }
  Sizes prepareSizes(ListKind kind, InputSource &source) {
    Sizes all;
    for (size_t list = static_cast<size_t>(kind); list < countLists(program); list += kListKinds)
      if (!positionsOf(program, list).empty())
        all.push_back(std::make_unique<Size>(*this, list, source));
    return all;
  }
};

Session::Session(const Program &program, const SymbolResolver &resolve, Engine &engine, char *arena,
                 const RunOptions &options, InputSource &inputs)
    : state(std::make_unique<SessionState>(program, resolve, engine, arena, options, inputs)) {}
Session::~Session() = default;

const RankInfo &Session::rankInfo() const { return state->info; }
std::string Session::device() const {
  const DeviceRank *device = state->device.get();
  return device ? device->device.name() + " (sm_" + std::to_string(device->device.architecture()) + ")" : "";
}
std::optional<GraphCounts> Session::graphs() const {
  if (!state->device)
    return std::nullopt;
  return state->sizesOf(ListKind::Step).front()->executor.graphs();
}
std::string Session::engineName() const {
  return state->device && state->device->nccl ? "NCCL" : state->engine.name();
}
std::string Session::ncclObstacle() const { return state->ncclObstacle; }
std::string Session::diskObstacle() const { return state->disk ? state->disk->obstacle() : ""; }

/// What the run that wrote the checkpoint decided of the gradients that wait in it.
void SessionState::resumePending(const std::string &checkpoint, const Manifest &manifest) {
  pending.reset();
  if (!manifest.pendingFactor || !program.trains)
    return;
  if (program.delayed_update == 0 || manifest.step < program.delayed_update)
    throw Error(StatusInput, checkpoint + " has gradients that wait for their update, but the next step, " +
                                 std::to_string(manifest.step) +
                                 ", is not delayed: expected -delayed-update=" +
                                 std::to_string(manifest.step) + " or less");
  Decision decision;
  decision.appliedSteps = manifest.applied;
  decision.lr = learningRate(options, manifest.applied);
  decision.factor = *manifest.pendingFactor;
  pending = decision;
}

void Session::loadParameters() {
  together(state->engine, [&] {
    runtime::loadParameters(state->program, state->info, state->addresses, *state->openValues());
    state->touched.finish();
    state->settleState();
  });
}

Manifest SessionState::manifest(const Lineage &lineage) const {
  Manifest manifest = manifestOf(program, options);
  manifest.lineage = lineage;
  manifest.step = steps;
  manifest.applied = applied;
  manifest.microBatches = consumedBefore + (steps - firstStep) * program.K;
  manifest.dataPlace = inputs.placeAfter(steps);
  if (lossScale)
    manifest.lossScale = lossScale->state();
  if (areApart(program, applied))
    manifest.rates = rates;
  if (pending) {
    manifest.applied = pending->appliedSteps;
    manifest.pendingFactor = pending->factor;
  }
  return manifest;
}

void Session::replaceParameters(const std::string &file, const OriginalNames &names) {
  finishSave();
  state->fetchState();
  together(state->engine, [&] {
    state->replaced.take(state->program, state->info, state->addresses, state->pool, file, names,
                         areApart(state->program, state->applied));
    state->settleState();
  });
}

void Session::save(const std::string &checkpoint, const Lineage &lineage) {
  state->fetchState();
  saveState(state->savePlan(), state->engine, checkpoint, state->manifest(lineage), state->replaced);
  state->settleDisk();
}

void Session::startSave(const std::string &checkpoint, const Lineage &lineage, std::function<void()> named) {
  state->settleSteps();
  const SavePlan &plan = state->savePlan();
  state->async->begin(
      std::make_unique<Saver>(plan, state->engine, checkpoint, state->manifest(lineage), state->replaced),
      std::move(named));
}

void Session::continueSave() {
  if (!state->async)
    return;
  state->async->check();
  if (state->async->awaitsAgreement() && !state->result.writing) {
    state->async->agree();
    state->settleDisk();
  }
}

void Session::finishSave() {
  if (!state->async)
    return;
  state->async->finish();
  state->settleDisk();
}

std::optional<Error> Session::resume(const std::string &checkpoint, const Manifest &manifest) {
  std::optional<Error> failure = together(state->engine, [&] {
    checkFreeze(state->program, checkpoint, manifest);
    state->resumePending(checkpoint, manifest);
    loadState(
        state->program, state->info, state->addresses, &state->pool, checkpoint, manifest,
        [this] { return state->openValues(); }, state->options.newBatch);
    state->replaced.resume(state->program, checkpoint, manifest, state->pool);
    state->touched.finish();
    state->settleState();
  });
  if (failure)
    return failure;
  state->steps = state->firstStep = manifest.step;
  state->applied = manifest.applied + (state->pending ? 1 : 0);
  state->rates = manifest.rates.value_or(0);
  if (state->lossScale && manifest.lossScale)
    state->lossScale->restore(*manifest.lossScale);
  state->consumedBefore = manifest.microBatches;
  state->inputs.startAt(manifest.step, manifest.microBatches);
  return std::nullopt;
}

const StepResult &Session::step() { return state->step(); }
void Times::add(const Breakdown &one, double oneMs) {
  sum.forward += one.forward;
  sum.backward += one.backward;
  sum.communication += one.communication;
  sum.update += one.update;
  sum.waiting += one.waiting;
  sum.evaluation += one.evaluation;
  ms += oneMs;
  ++steps;
}

Evaluation Session::evaluate(InputSource &inputs, int64_t microBatches) {
  return state->evaluate(inputs, microBatches);
}
Evaluation Session::predict(InputSource &inputs, int64_t microBatches, const OutputSink &sink) {
  return state->evaluate(inputs, microBatches, &sink);
}
int64_t Session::stepsDone() const { return state->steps; }
int64_t Session::stepsSkipped() const { return state->lossScale ? state->lossScale->skipped() : 0; }
bool Session::runOnce(int64_t run, const OutputSink &sink) { return state->runOnce(run, sink); }

void Session::measureCalls() {
  if (!state->profile)
    state->profile =
        std::make_unique<Profile>(state->program, state->device ? &state->device->meter : nullptr);
  state->profile->reset();
  state->eachExecutor([&](Executor &executor) { executor.measure(*state->profile); });
}
std::vector<CallRow> Session::measuredCalls() const {
  return state->profile ? state->profile->result() : std::vector<CallRow>();
}
MachineLimits Session::measureMachine(const std::vector<CallRow> &rows) {
  return state->measureMachine(rows);
}

void Session::trace(int64_t steps) {
  int64_t actions = 0;
  for (size_t list = 0; list < kListKinds; ++list)
    if (const std::vector<Position> &positions = positionsOf(state->program, list);
        !positions.empty() && kindOfList(list) != ListKind::Evaluation)
      actions = std::max<int64_t>(actions, positions[state->info.position].actions.size());
  state->trace = std::make_unique<Trace>(actions, steps);
  state->eachExecutor([&](Executor &executor) { executor.record(state->trace.get()); });
}
void Session::writeTrace(const std::string &path) {
  state->settleSteps();
  state->eachExecutor([](Executor &executor) { executor.record(nullptr); });
  if (state->trace)
    runtime::writeTrace(state->program, state->engine, *state->trace, path);
  state->trace.reset();
}

void Session::requestStop() { state->stop.store(true, std::memory_order_relaxed); }

void Session::visitParameters(const std::function<void(const Parameter &, const char *value)> &visit) {
  state->fetchState();
  std::unique_ptr<ParameterValues> values = state->openValues();
  runtime::visitParameters(state->program, state->info, state->addresses, state->engine, *values, visit);
  state->settleDisk();
}

void Session::exchange(const void *record, int64_t bytes, void *all) {
  state->engine.exchange(record, bytes, all);
}

} // namespace dsopt::runtime

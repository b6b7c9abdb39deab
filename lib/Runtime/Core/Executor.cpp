//===- Executor.cpp - runs the actions of a step or evaluation -------------===//

#include "Core/Executor.h"
#include "Kernels/CPU/Elementwise.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>

namespace dsopt::runtime {

static double since(QueueOwner::Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(QueueOwner::Clock::now() - start).count();
}

static uint64_t hashOf(const std::string &tag) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char c : tag)
    hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}

/// Where the time of a run is counted.
static double Breakdown::*timerOf(Phase phase) {
  switch (phase) {
  case Phase::Forward:
    return &Breakdown::forward;
  case Phase::Backward:
  case Phase::Weights:
    return &Breakdown::backward;
  case Phase::Evaluation:
    return &Breakdown::evaluation;
  case Phase::Update:
    return &Breakdown::update;
  }
  return &Breakdown::forward;
}

Executor::Executor(const Program &program, const RankInfo &info, size_t list, Engine &engine,
                   const Addresses &addresses, DiskMemory *disk, DeviceRank *device,
                   const SymbolResolver &resolve, ThreadPool &pool, const RunOptions &options,
                   InputSource &inputs)
    : program(program), info(info), list(list), position(positionsOf(program, list)[info.position]),
      evaluates(!program.trains || kindOfList(list) == ListKind::Evaluation), engine(engine),
      addresses(addresses), disk(disk), device(device), pool(pool), options(options), inputs(inputs),
      transfers(disk ? position.actions.size() : 0), clock(engine.stallClock()) {
  rt.pool = &pool;
  rt.sequenceRank = info.coordinates[static_cast<size_t>(Axis::sp)];
  rt.device = device ? &device->calls : nullptr;
  for (size_t before = 0; before < list; ++before)
    if (!positionsOf(program, before).empty())
      firstAction += positionsOf(program, before)[info.position].actions.size();
  agreement = std::make_unique<Agreement>(program, info, addresses, options.logNorms, pool);
  if (program.precision != "fp32")
    rt.prepareTiles(program.precision == "fp16" ? DSOPT_F16 : DSOPT_BF16);
  prepareScalars();
  for (size_t index = 0; index < position.actions.size(); ++index) {
    const Action &action = position.actions[index];
    Prepared prepared;
    prepared.action = &action;
    prepared.args = pointers.size();
    prepared.type = elementNamed(action.type);
    for (const Ref &ref : action.refs)
      pointers.push_back(addresses.at(ref));
    if (action.communicator >= 0)
      prepared.communicator = &communicator(action.communicator);
    switch (action.kind) {
    case ActionKind::Input:
      prepared.microBatch = microBatchIndex(program, info.dpRank, action.micro_batch);
      prepared.timer = timerOf(evaluates ? Phase::Evaluation : Phase::Forward);
      break;
    case ActionKind::Run:
      prepared.function = resolve(action.symbol);
      if (!prepared.function)
        throw Error(StatusInput, "the program has no segment '" + action.symbol + "'");
      if (auto it = program.segment_calls.find(action.symbol); it != program.segment_calls.end())
        prepared.calls = &it->second;
      if (action.temp.buffer >= 0)
        prepared.temp = addresses.at(action.temp);
      prepared.isIdle = isOfOthers(action);
      prepared.timer = timerOf(action.phase);
      break;
    case ActionKind::Gather:
      prepared.traffic = trafficClass(action.traffic);
      break;
    case ActionKind::Send:
      prepared.traffic = trafficClass(action.traffic);
      [[fallthrough]];
    case ActionKind::Recv:
      prepared.peer = prepared.communicator->ranks[action.peer];
      prepared.tag = hashOf(program.communicators[action.communicator].name + "/" + action.tag);
      break;
    case ActionKind::AllToAll:
    case ActionKind::Shift:
      prepared.traffic = action.traffic.empty() ? TrafficClass::AllToAll : trafficClass(action.traffic);
      break;
    case ActionKind::Reduce:
      break;
    case ActionKind::Add:
      prepared.timer = &Breakdown::backward;
      break;
    case ActionKind::Agree:
      agreement->addAgreement(action);
      break;
    case ActionKind::Norm:
      prepared.norm = agreement->addNorm(action);
      prepared.timer = &Breakdown::update;
      break;
    case ActionKind::Fold:
      prepared.timer = &Breakdown::update;
      microBatches.resize(program.K);
      for (int64_t place = 0; place < program.K; ++place)
        microBatches[microBatchIndex(program, place / program.M, place % program.M)] = place;
      break;
    case ActionKind::Map:
      prepared.timer = &Breakdown::backward;
      prepared.firstLaunch = launches.size();
      launches.push_back(
          {flatKernel(action.symbol, resolve), 0, action.elements, prepared.args, action.grain});
      prepared.lastLaunch = launches.size();
      break;
    case ActionKind::Update:
      prepared.timer = &Breakdown::update;
      prepareUpdate(prepared, resolve);
      break;
    case ActionKind::Copy:
      prepared.timer = &Breakdown::update;
      if (disk && position.queues[action.queue].kind == QueueKind::Disk)
        prepared.transfer = &transfers[index];
      break;
    }
    actions.push_back(prepared);
  }
  done.resize(actions.size());
  if (disk)
    prepareTrailing();
  if (device)
    prepareDevice();
  prepareQueues();
  std::map<std::pair<int, bool>, std::vector<uint64_t>> tags;
  for (const Prepared &prepared : actions)
    if (bool sends = prepared.action->kind == ActionKind::Send;
        sends || prepared.action->kind == ActionKind::Recv)
      tags[{prepared.peer, sends}].push_back(prepared.tag);
  for (auto &[peer, values] : tags)
    engine.addTags(peer.first, peer.second, values);
  if (engine.needsStaging())
    if (const Buffer *staging = addresses.find("staging"))
      engine.setStaging(addresses.at(*staging), staging->bytes);
}

Executor::~Executor() {
  // Communication first: the device's streams may wait for it.
  for (ActionQueue *queue : polled)
    queue->abandon();
}

/// Communication is polled first, so that peers need not wait for this rank's computation; and the disk,
/// which works beside it.
void Executor::prepareQueues() {
  std::vector<size_t> count(position.queues.size());
  for (const Action &action : position.actions)
    ++count[action.queue];
  int slot = 0; ///< of the engine
  for (size_t i = 0; i < position.queues.size(); ++i) {
    bool flies = position.queues[i].kind == QueueKind::Communication;
    bool isDisk = position.queues[i].kind == QueueKind::Disk && disk;
    slots.push_back(flies ? slot++ : -1);
    bool isHost = position.queues[i].kind == QueueKind::Host || !device;
    queues.push_back(flies && device && device->nccl ? makeNcclQueue(*this, ncclPlace(), *order, engine,
                                                                     slots.back(), ncclActions, staged)
                     : flies && device ? makeStagedQueue(*this, *device, *order, engine, slots.back(), staged)
                     : flies           ? makeEngineQueue(*this, engine, slots.back())
                     : isDisk          ? makeDiskQueue(*this, *disk, transfers)
                     : isHost          ? makeComputeQueue(*this)
                                       : makeDeviceQueue(*this, *device, *order, uploads));
    queues.back()->reserve(count[i]);
    polled.insert(flies || isDisk ? polled.begin() : polled.end(), queues.back().get());
  }
}

/// The engine's own communicator is number 0.
const Communicator &Executor::communicator(int64_t index) {
  auto known = communicators.find(index);
  if (known == communicators.end())
    known = communicators
                .emplace(index, Communicator(static_cast<int>(index) + 1,
                                             program.grid.group(info.rank, program.communicators[index].axes),
                                             info.rank))
                .first;
  return known->second;
}

void Executor::fillInput(const Prepared &prepared, void *target) {
  int64_t input = prepared.action->input;
  if (input < 0) {
    fillContext(prepared, static_cast<uint32_t *>(target));
    return;
  }
  inputs.fill(step, prepared.microBatch, input, target);
  if (program.inputs[input].label || program.inputs[input].bound)
    checkIndices(prepared, target);
}

void Executor::run(const Prepared &prepared, int slot) {
  if (isOnDevice(prepared)) {
    size_t mark = rt.profile ? rt.profile->mark() : 0;
    runOnDevice(prepared);
    if (rt.profile)
      measured(prepared, {{}, mark, rt.profile->mark(), /*isOnDevice=*/true});
    return;
  }
  const Action &action = *prepared.action;
  void **args = pointers.data() + prepared.args;
  switch (action.kind) {
  case ActionKind::Input:
    fillInput(prepared, args[0]);
    return;
  case ActionKind::Run:
    if (prepared.isIdle)
      return;
    if (rt.profile)
      rt.profile->startSegment(prepared.calls);
    reinterpret_cast<dsopt_segment>(prepared.function)(&rt, args, prepared.temp, action.accumulate);
    return;
  case ActionKind::Add:
    withElement(prepared.type, [&](auto element) {
      auto *target = static_cast<decltype(element) *>(args[0]),
           *source = static_cast<decltype(element) *>(args[1]);
      pool.split(0, action.elements, 16 << 10, [&](int64_t begin, int64_t end, int) {
        addInto(target + begin, source + begin, end - begin);
      });
    });
    return;
  case ActionKind::Norm:
    agreement->computeNorm(prepared.norm);
    return;
  case ActionKind::Map:
  case ActionKind::Update:
    if (seesNorms(action) && !action.direction)
      ratios->writeTables(action, prepared.norm, prepared.norm + prepared.lastLaunch - prepared.firstLaunch);
    for (size_t i = prepared.firstLaunch; i < prepared.lastLaunch; ++i) {
      const Launch &launch = launches[i];
      pool.split(launch.begin, launch.end, launch.grain, [&](int64_t begin, int64_t end, int) {
        reinterpret_cast<dsopt_kernel>(launch.kernel)(begin, end, pointers.data() + launch.args);
      });
    }
    if (seesNorms(action) && action.direction)
      ratios->measure(prepared.norm);
    return;
  case ActionKind::Fold:
    fold(action, args);
    return;
  case ActionKind::Copy:
    if (DiskTransfer *transfer = prepared.transfer) {
      transfer->from = static_cast<const char *>(args[0]);
      transfer->to = static_cast<char *>(args[1]);
      transfer->bytes = action.bytes;
      disk->submit(*transfer);
      return;
    }
    pool.split(0, action.bytes, 1 << 18, [&](int64_t begin, int64_t end, int) {
      std::memcpy(static_cast<char *>(args[1]) + begin, static_cast<char *>(args[0]) + begin, end - begin);
    });
    return;
  case ActionKind::Gather:
    engine.startGather(slot, *prepared.communicator, args[0], args[1], action.bytes, prepared.traffic);
    return;
  case ActionKind::Reduce:
    engine.startReduce(slot, *prepared.communicator, prepared.type, args[0], args[1], action.elements,
                       action.accumulate);
    return;
  case ActionKind::AllToAll:
    engine.startAllToAll(slot, *prepared.communicator, args[0], args[1], action.bytes, prepared.traffic);
    return;
  case ActionKind::Shift:
    engine.startShift(slot, *prepared.communicator, args[0], args[1], action.bytes, prepared.traffic);
    return;
  case ActionKind::Send:
    engine.startSend(slot, prepared.peer, args[0], action.bytes, prepared.tag, prepared.traffic);
    return;
  case ActionKind::Recv:
    engine.startRecv(slot, prepared.peer, args[0], action.bytes, prepared.tag);
    return;
  case ActionKind::Agree:
    fault::point("agree");
    agreement->prepare(stopRequest->load(std::memory_order_relaxed), save && save->isWriting(), step, list);
    engine.startAgreement(slot, *prepared.communicator, agreement->record(), agreement->shape());
    return;
  }
}

/// In the order of the micro-batches' indices, on every rank alike; f32, one rounding after the other.
void Executor::fold(const Action &action, void **args) const {
  if (!applies)
    return;
  const char *statistics = static_cast<const char *>(args[0]);
  for (size_t i = 0; i < action.folds.size(); ++i) {
    const Folded &folded = action.folds[i];
    auto *running = static_cast<float *>(args[1 + i]);
    float keep = static_cast<float>(folded.momentum), take = static_cast<float>(1 - folded.momentum);
    for (int64_t microBatch : microBatches) {
      auto *statistic =
          reinterpret_cast<const float *>(statistics + microBatch * action.bytes + folded.place);
      for (int64_t e = 0; e < folded.elements; ++e) {
        float kept = keep * running[e];
        float taken = take * statistic[e];
        running[e] = kept + taken;
      }
    }
  }
}

/// What random numbers of the micro-batch follow from: nothing that depends on the layout, but which elements
/// of whole values are this rank's.
void Executor::fillContext(const Prepared &prepared, uint32_t *context) const {
  uint64_t seed = static_cast<uint64_t>(options.seed);
  context[DSOPT_SEED_LOW] = static_cast<uint32_t>(seed);
  context[DSOPT_SEED_HIGH] = static_cast<uint32_t>(seed >> 32);
  context[DSOPT_STEP] = static_cast<uint32_t>(step);
  context[DSOPT_MICRO_BATCH] = static_cast<uint32_t>(prepared.microBatch);
  context[DSOPT_TRAINING] = !evaluates;
  context[DSOPT_TENSOR_RANK] = static_cast<uint32_t>(info.coordinates[static_cast<size_t>(Axis::tp)]);
  context[DSOPT_SEQUENCE_RANK] = static_cast<uint32_t>(info.coordinates[static_cast<size_t>(Axis::sp)]);
}

/// What a report counts for an action that is no call.
int64_t Executor::bytesMoved(const Prepared &prepared) const {
  const Action &action = *prepared.action;
  int64_t width = bytesOf(elementNamed(action.type));
  switch (action.kind) {
  case ActionKind::Gather:
  case ActionKind::AllToAll:
    return 2 * action.bytes * prepared.communicator->size();
  case ActionKind::Reduce:
    return (prepared.communicator->size() + 1) * action.elements * width;
  case ActionKind::Add:
    return 3 * action.elements * width;
  case ActionKind::Norm:
    return program.sliceOf(program.buckets[action.bucket]) * width;
  case ActionKind::Copy:
  case ActionKind::Shift:
    return 2 * action.bytes;
  default:
    return action.bytes;
  }
}

void Executor::stuck() const {
  std::string text = "no action of step " + std::to_string(step) + " can start: ";
  for (const std::unique_ptr<ActionQueue> &queue : queues)
    if (int64_t index = queue->waiting(); index >= 0) {
      text += "'" + describeAction(program, info.rank, firstAction + index) + "' waits for";
      for (int64_t wait : actions[index].action->waits)
        if (!done[wait])
          text += " '" + describeAction(program, info.rank, firstAction + wait) + "'";
      text += "; ";
    }
  throw Error(StatusFailure, text + "the program is wrong");
}

std::string Executor::whereIs(int64_t index) const {
  std::string text = "in step " + std::to_string(step) + ", in '" +
                     describeAction(program, info.rank, firstAction + index) + "'";
  if (!ncclActions.empty() && ncclActions[index].group)
    text += " on stream '" + position.queues[actions[index].action->queue].name + "'";
  return text;
}

Error Executor::failed(int64_t index, const std::string &what) const {
  return engine.noticed(
      Error(StatusFailure, describeRank(program, info.rank) + " " + whereIs(index) + ": " + what));
}

void Executor::stalled(int64_t index) const {
  const Prepared &prepared = actions[index];
  if (prepared.transfer)
    throw engine.noticed(Error(StatusFailure, describeRank(program, info.rank) + " has waited " +
                                                  std::to_string(engine.stallSeconds()) +
                                                  " s for its disk in step " + std::to_string(step) +
                                                  ", in '" +
                                                  describeAction(program, info.rank, firstAction + index) +
                                                  "', and nothing moved (-stall-timeout)"));
  std::vector<int> ranks = engine.awaited(slots[prepared.action->queue]);
  if (ranks.empty() &&
      (prepared.action->kind == ActionKind::Send || prepared.action->kind == ActionKind::Recv))
    ranks = {prepared.peer};
  if (ranks.empty())
    std::copy_if(prepared.communicator->ranks.begin(), prepared.communicator->ranks.end(),
                 std::back_inserter(ranks), [&](int rank) { return rank != info.rank; });
  Error error(StatusFailure, describeRank(program, info.rank) + " has waited " +
                                 std::to_string(engine.stallSeconds()) + " s for " + describeRanks(ranks) +
                                 " " + whereIs(index) + ", and nothing moved (-stall-timeout)");
  error.rank = ranks.front();
  throw engine.noticed(error);
}

/// The learning rate that a step's data says.
static double streamedRate(InputSource &inputs, int64_t step) {
  if (std::optional<double> rate = inputs.rateOf(step))
    return *rate;
  throw Error(StatusInput, "option -lr-schedule=stream: the data says no learning rates; those of "
                           "-data=stream:DIR may");
}

void Executor::run(int64_t newStep, int64_t &applied, const std::atomic<bool> &stop, StepResult &stepResult) {
  step = newStep;
  appliedSteps = &applied;
  stopRequest = &stop;
  result = &stepResult;
  result->lr =
      options.schedule == LrSchedule::Stream ? streamedRate(inputs, step) : learningRate(options, applied);
  // Updates that start before the agreement read these.
  Decision early;
  early.appliedSteps = applied;
  early.lr = result->lr;
  early.apply = !pending;
  try {
    writeTables(pending && *pending ? **pending : early);
    writeSeed();
  } catch (const cuda::Failure &failure) {
    throw deviceFailed(failure);
  }
  result->breakdown = {};
  Clock::time_point begin = Clock::now();
  runActions(result->breakdown);
  if (trace)
    trace->note(step, Trace::Step, begin, Clock::now());
}

const Agreement &Executor::evaluate(int64_t group, std::atomic<bool> &stop, Evaluation &evaluation) {
  step = group;
  stopRequest = &stop;
  Breakdown times;
  Clock::time_point begin = Clock::now();
  runActions(times);
  evaluation.times.add(times, since(begin));
  evaluation.stop = agreement->stop();
  return *agreement;
}

void Executor::start(int64_t index, int slot, Clock::time_point begin) {
  const Prepared &prepared = actions[index];
  announce(index);
  if (prepared.trails) {
    actions[index].flies = true;
    actions[index].startedIn = step;
    ++trailing;
    --left;
  }
  if (ncclActions.empty() || !ncclActions[index].group)
    run(prepared, slot);
  issued();
  if (!isOnDevice(prepared))
    times->*prepared.timer += since(begin);
  // An agreement's own work is what comes before its exchange.
  if (rt.profile && prepared.action->kind == ActionKind::Agree)
    measured(prepared, {Clock::now() - begin});
}

void Executor::finish(int64_t index, Clock::time_point begin) {
  const Prepared &prepared = actions[index];
  if (isOnDevice(prepared))
    times->*prepared.timer += since(begin);
  if (rt.profile && prepared.action->kind != ActionKind::Agree && !isOnDevice(prepared))
    measured(prepared, {Clock::now() - begin});
  if (trace)
    trace->note(prepared.trails ? prepared.startedIn : step, firstAction + index, begin, Clock::now());
  if (prepared.trails) {
    actions[index].flies = false;
    --trailing;
    beat();
    return;
  }
  done[index] = 1;
  --left;
  if (checked)
    checked->awaited = 0;
  beat();
  if (prepared.action->kind == ActionKind::Agree)
    decide();
}

void Executor::communicated(Clock::time_point begin) { times->communication += since(begin); }

void Executor::measured(const Prepared &prepared, const Profile::Span &span) {
  const Action &action = *prepared.action;
  if (action.kind == ActionKind::Update && prepared.call >= 0)
    rt.profile->update(prepared.call, action.elements, span);
  else if (action.kind != ActionKind::Run)
    rt.profile->action(action.kind, bytesMoved(prepared), span);
}

void Executor::runActions(Breakdown &breakdown) {
  times = &breakdown;
  left = actions.size();
  // First what libraries and routines prepare when they are called; what is measured goes by itself.
  leaves = false;
  replays = hasRun && !rt.profile && !trace;
  std::fill(done.begin(), done.end(), 0);
  if (checked) {
    runChecked(breakdown);
    engine.publish(step, -1);
    return;
  }
  for (size_t index = 0; index < actions.size(); ++index)
    queues[actions[index].action->queue]->submit(static_cast<int64_t>(index), actions[index].action->waits);
  drive(left, breakdown);
  hasRun |= applies;
  if (rt.profile)
    rt.profile->settle();
  engine.publish(step, -1);
}

void Executor::settle() {
  Breakdown waited;
  drive(trailing, waited);
  if (device)
    order->settle();
}

void Executor::drive(const size_t &count, Breakdown &breakdown) {
  try {
    driveQueues(count, breakdown);
  } catch (const cuda::Failure &failure) {
    throw deviceFailed(failure);
  }
}

void Executor::driveQueues(const size_t &count, Breakdown &breakdown) {
  while (count > 0) {
    uint32_t seen = engine.waker().count();
    bool progress = false;
    held = -1;
    for (ActionQueue *queue : polled)
      progress |= queue->poll();
    if (leaves && &count == &left)
      leaveRest();
    if (!progress && held >= 0)
      progress = save->take(actions[held].regions);
    if (progress || count == 0) {
      clock.restart();
      deviceWaits.reset();
      continue;
    }
    if (device && awaitDevice())
      continue;
    int64_t waitsFor = -1;
    for (ActionQueue *queue : polled) {
      int64_t flying = queue->inFlight();
      // The disk is no peer's affair.
      if (flying >= 0 &&
          (waitsFor < 0 || (!actions[waitsFor].transfer && (actions[flying].transfer || flying > waitsFor))))
        waitsFor = flying;
    }
    if (waitsFor < 0 && held < 0)
      stuck();
    engine.publish(step, firstAction + (waitsFor >= 0 ? waitsFor : held));
    Clock::time_point begin = Clock::now();
    {
      std::optional<WaitsForPeers> waits;
      if (waitsFor >= 0 && !actions[waitsFor].transfer)
        waits.emplace();
      engine.waker().sleep(seen);
    }
    Clock::time_point end = Clock::now();
    breakdown.waiting += std::chrono::duration<double, std::milli>(end - begin).count();
    if (trace)
      trace->wait(step, begin, end);
    // The disk may take its time.
    if (held < 0 && clock.isOver(end, [this] { return engine.peerBeats(); }))
      stalled(waitsFor);
  }
}

} // namespace dsopt::runtime

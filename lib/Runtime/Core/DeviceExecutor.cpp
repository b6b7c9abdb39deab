//===- DeviceExecutor.cpp - what a step's actions are on a device -----------===//
//
// The device's actions are put on streams; what the host does for them, and what other
// ranks take, goes through the mirror.
//
//===----------------------------------------------------------------------===//

#include "Core/DeviceSums.h"
#include "Core/Executor.h"
#include "Kernels/CUDA/Routines.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <thread>

namespace dsopt::runtime {

void Executor::prepareDevice() {
  order = std::make_unique<DeviceOrder>(actions.size());
  order->join(device->copyStream(), /*computes=*/false);
  for (Prepared &prepared : actions) {
    const Action &action = *prepared.action;
    staged.push_back(communicates(action.kind) ? stage(prepared) : Staged());
    prepared.temp = device->memory.onDevice(prepared.temp);
    for (const Ref &ref : action.refs)
      if (isOnDevice(prepared) && action.kind != ActionKind::Copy &&
          position.memories[position.buffers[ref.buffer].memory].kind != MemoryKind::Device)
        throw Error(StatusInput, "program table: '" + action.name + "' is the device's, but has '" +
                                     position.buffers[ref.buffer].name + "' of another memory");
    if (action.kind == ActionKind::Norm && isOnDevice(prepared))
      prepared.pieces = piecesOnDevice(agreement->sums(), prepared.norm, prepared.type, device->memory);
  }
  prepareUploads();
  prepareGraphs();
  for (size_t index = 0; device->nccl && index < actions.size(); ++index)
    ncclActions.push_back(ncclAction(index));
  // Copies have one in the host's own memory.
  for (void *pointer : pointers)
    devicePointers.push_back(device->memory.contains(pointer) ? device->memory.onDevice(pointer) : pointer);
}

/// Streams keep the order on the device; in the mirror an input waits until what was there has left. Norms
/// that the host takes wait until all before them is done: while the host stood still for that, nothing would
/// be issued that peers wait for.
void Executor::prepareUploads() {
  uploads.resize(actions.size());
  std::vector<std::pair<int64_t, Staged::Range>> before; ///< with the action's number
  for (size_t index = 0; index < actions.size(); ++index) {
    const Action &action = *actions[index].action;
    if (action.kind == ActionKind::Norm && options.logNorms) {
      uploads[index] = action.waits;
      for (size_t other = 0; other < index; ++other)
        if (actions[other].action->queue == action.queue)
          uploads[index].push_back(static_cast<int64_t>(other));
    }
    if (action.kind != ActionKind::Input)
      continue;
    const Ref &ref = action.refs.front();
    Staged::Range range = {addresses.at(ref), position.buffers[ref.buffer].bytes};
    device->memory.pin(range.begin, range.bytes);
    for (const auto &[other, its] : before)
      if (its.begin < range.begin + range.bytes && range.begin < its.begin + its.bytes)
        uploads[index].push_back(other);
    before.emplace_back(static_cast<int64_t>(index), range);
  }
}

void Executor::prepareGraphs() {
  if (options.cudaGraph == "off")
    return;
  std::vector<GraphPart> parts;
  std::vector<double Breakdown::*> phases;
  for (const Prepared &prepared : actions) {
    const Action &action = *prepared.action;
    GraphPart part;
    part.isRecordable = isOnDevice(prepared) && isDevicesAlone(prepared);
    part.isMuch = action.kind == ActionKind::Run || action.kind == ActionKind::Norm;
    // Times of phases are measured between graphs.
    if (options.breakdown) {
      auto known = std::find(phases.begin(), phases.end(), prepared.timer);
      part.phase = static_cast<int>(known - phases.begin());
      if (known == phases.end())
        phases.push_back(prepared.timer);
    }
    parts.push_back(part);
  }
  graphPlan = planGraphs(position.actions, parts);
  followsDecision.resize(actions.size());
  for (size_t index = 0; index < actions.size(); ++index)
    for (int64_t at = static_cast<int64_t>(index), left = graphPlan.lengths[index]; left > 0; ++at)
      if (actions[at].action->queue == actions[index].action->queue) {
        followsDecision[index] |= actions[at].action->kind == ActionKind::Fold;
        --left;
      }
}

/// Inputs are the host's, and sums that it adds; its own memory need not be pinned, so that it waits for
/// copies from there and to there.
bool Executor::isDevicesAlone(const Prepared &prepared) const {
  switch (prepared.action->kind) {
  case ActionKind::Input:
    return false;
  case ActionKind::Norm:
    return !options.logNorms;
  case ActionKind::Copy:
    return device->memory.contains(pointers[prepared.args]) &&
           device->memory.contains(pointers[prepared.args + 1]);
  default:
    return true;
  }
}

/// Once the step is decided on, what is left of it may be the device's alone, which then does it beside what
/// the host does next.
void Executor::leaveRest() {
  size_t leavable = 0;
  for (ActionQueue *queue : polled)
    leavable += queue->leavable();
  if (leavable == left)
    for (ActionQueue *queue : polled)
      queue->leave();
}

void Executor::uploadTables() {
  constexpr size_t kBytes = DSOPT_SCALARS * sizeof(float);
  if (!tableCopies)
    tableCopies = std::make_unique<cuda::Pinned>(2 * tables.size() * kBytes);
  bool any = false;
  float *copy = tableCopies->as<float>() + tableTurn * tables.size() * DSOPT_SCALARS;
  for (ScalarTable &table : tables) {
    // Updates that started before a decision read what it says again.
    if (!std::equal(table.uploaded.begin(), table.uploaded.end(), table.values,
                    table.values + DSOPT_SCALARS)) {
      std::copy_n(table.values, DSOPT_SCALARS, copy);
      DSOPT_CUDA(cuMemcpyHtoDAsync_v2, cuda::addressOf(device->memory.onDevice(table.values)), copy, kBytes,
                 device->copyStream());
      table.uploaded.assign(table.values, table.values + DSOPT_SCALARS);
      any = true;
    }
    copy += DSOPT_SCALARS;
  }
  if (!any)
    return;
  tableTurn = 1 - tableTurn;
  order->putFirst(device->copyStream());
}

void Executor::uploadSeed(const float *seed) {
  if (uploadedSeed == *seed)
    return;
  if (!seedCopy)
    seedCopy = std::make_unique<cuda::Pinned>(sizeof(float));
  *seedCopy->as<float>() = *seed;
  DSOPT_CUDA(cuMemcpyHtoDAsync_v2, cuda::addressOf(device->memory.onDevice(seed)), seedCopy->as<float>(),
             sizeof(float), device->copyStream());
  uploadedSeed = *seed;
  order->putFirst(device->copyStream());
}

void Executor::takeOver() {
  uploadedSeed.reset();
  for (ScalarTable &table : tables)
    table.uploaded.clear();
}

void Executor::announce(int64_t index) {
  starting = index;
  engine.publish(step, firstAction + index);
  beat();
  if (fault::active.load(std::memory_order_relaxed))
    fault::point("action", describeAction(program, info.rank, firstAction + index).c_str());
}

GraphCounts Executor::graphs() const {
  return {graphPlan.graphs, graphPlan.actions,
          std::count_if(actions.begin(), actions.end(),
                        [this](const Prepared &prepared) { return isOnDevice(prepared); })};
}

int64_t Executor::together(int64_t index) const {
  if (!replays || graphPlan.lengths.empty() || (followsDecision[index] && !applies))
    return 0;
  return graphPlan.lengths[index];
}

bool Executor::isOnDevice(const Prepared &prepared) const {
  QueueKind kind = position.queues[prepared.action->queue].kind;
  return device && (kind == QueueKind::Compute || kind == QueueKind::Copy);
}

/// Bytes behind one of an agreement's references that it takes to the host: none of outputs, which a stage
/// may be sending meanwhile; they come when all is done (DeliverOutputs.h).
static int64_t agreedBytes(const Program &program, const Action &action, int64_t ref) {
  int64_t outputs = action.refs.size() - action.outputs.size() * program.M;
  int64_t measures = outputs - action.places.size() * program.M;
  if (ref >= outputs)
    return 0;
  int64_t width = ref < action.norms ? sizeof(int64_t) : sizeof(float);
  return width * (ref < action.norms ? kNormWords
                  : ref < measures   ? 1
                                     : action.lengths[(ref - measures) / program.M]);
}

Staged Executor::stage(const Prepared &prepared) const {
  const Action &action = *prepared.action;
  void *const *args = pointers.data() + prepared.args;
  int64_t members = prepared.communicator ? prepared.communicator->size() : 1;
  // What is in the host's own memory is where it is taken from.
  auto range = [&](size_t argument, int64_t bytes) {
    return Staged::Range{static_cast<char *>(args[argument]),
                         !device || device->memory.contains(args[argument]) ? bytes : 0};
  };
  int64_t slice = action.elements * bytesOf(prepared.type);
  Staged staged;
  switch (action.kind) {
  case ActionKind::Gather:
    return {{range(0, action.bytes)}, {range(1, members * action.bytes)}};
  case ActionKind::AllToAll:
    return {{range(0, members * action.bytes)}, {range(1, members * action.bytes)}};
  case ActionKind::Reduce:
    staged = {{range(0, members * slice)}, {range(1, slice)}};
    if (action.accumulate)
      staged.taken.push_back(range(1, slice));
    return staged;
  case ActionKind::Shift:
    return {{range(0, action.bytes)}, {range(1, action.bytes)}};
  case ActionKind::Send:
    return {{range(0, action.bytes)}, {}};
  case ActionKind::Recv:
    return {{}, {range(0, action.bytes)}};
  default: // Agree
    for (size_t i = 0; i < action.refs.size(); ++i)
      staged.taken.push_back(range(i, agreedBytes(program, action, i)));
    return staged;
  }
}

NcclAction Executor::ncclAction(size_t index) const {
  const Prepared &prepared = actions[index];
  const Action &action = *prepared.action;
  NcclAction made;
  made.group = communicates(action.kind) ? device->nccl->groupOf(list, index) : nullptr;
  if (!made.group)
    return made;
  auto address = [&](size_t argument) { return device->memory.onDevice(pointers[prepared.args + argument]); };
  made.kind = action.kind;
  made.type = prepared.type;
  made.bytes = action.kind == ActionKind::Reduce ? action.elements * bytesOf(prepared.type) : action.bytes;
  made.accumulate = action.accumulate;
  made.fast = action.fast;
  made.traffic = action.kind == ActionKind::Reduce ? TrafficClass::ReduceScatter : prepared.traffic;
  if (action.kind != ActionKind::Recv)
    made.source = address(0);
  if (action.kind != ActionKind::Send)
    made.target = address(action.kind == ActionKind::Recv ? 0 : 1);
  int64_t receivers = action.kind == ActionKind::Shift ? made.group->size() > 1 : made.group->size() - 1;
  made.sent = action.kind == ActionKind::Recv ? 0 : made.bytes * receivers;
  return made;
}

NcclPlace Executor::ncclPlace() const {
  const Buffer *staging = addresses.find("staging");
  return {*device->nccl, device->memory, staging ? device->memory.onDevice(addresses.at(*staging)) : nullptr,
          staging ? staging->bytes : 0};
}

void Executor::runOnDevice(const Prepared &prepared) {
  const Action &action = *prepared.action;
  void *const *args = devicePointers.data() + prepared.args;
  cuda::StreamHandle stream = device->calls.currentStream();
  switch (action.kind) {
  case ActionKind::Input: {
    void *mirrored = pointers[prepared.args];
    fillInput(prepared, mirrored);
    device->memory.upload(mirrored, position.buffers[action.refs.front().buffer].bytes, stream);
    return;
  }
  case ActionKind::Run:
    if (prepared.isIdle)
      return;
    if (rt.profile)
      rt.profile->startSegment(prepared.calls);
    reinterpret_cast<dsopt_segment>(prepared.function)(&rt, args, prepared.temp, action.accumulate);
    return;
  case ActionKind::Map:
  case ActionKind::Update:
    if (seesNorms(action) && !action.direction)
      ratios->writeTables(action, prepared.norm, prepared.norm + prepared.lastLaunch - prepared.firstLaunch,
                          *device, stream);
    for (size_t i = prepared.firstLaunch; i < prepared.lastLaunch; ++i) {
      const Launch &launch = launches[i];
      device->calls.launch(*static_cast<const dsopt_device_kernel *>(launch.kernel), launch.begin, launch.end,
                           devicePointers.data() + launch.args);
    }
    if (seesNorms(action) && action.direction)
      ratios->measure(prepared.norm, *device, stream);
    return;
  case ActionKind::Copy: {
    const void *source = pointers[prepared.args];
    void *target = pointers[prepared.args + 1];
    if (!device->memory.contains(source))
      DSOPT_CUDA(cuMemcpyHtoDAsync_v2, cuda::addressOf(args[1]), source, action.bytes, stream);
    else if (!device->memory.contains(target))
      DSOPT_CUDA(cuMemcpyDtoHAsync_v2, target, cuda::addressOf(args[0]), action.bytes, stream);
    else
      DSOPT_CUDA(cuMemcpyDtoDAsync_v2, cuda::addressOf(args[1]), cuda::addressOf(args[0]), action.bytes,
                 stream);
    return;
  }
  case ActionKind::Add:
    cuda::addInto(device->device, stream, args[0], args[1], action.elements,
                  static_cast<int64_t>(prepared.type));
    return;
  case ActionKind::Norm:
    if (options.logNorms)
      sumByParameter(prepared);
    else
      cuda::squareSums(device->device, stream, prepared.pieces.data(), prepared.pieces.size(),
                       static_cast<int64_t>(prepared.type), static_cast<int64_t *>(args[1]), nullptr, 0);
    return;
  case ActionKind::Fold:
    if (applies)
      for (size_t i = 0; i < action.folds.size(); ++i)
        cuda::fold(device->device, stream, static_cast<float *>(args[1 + i]),
                   static_cast<char *>(args[0]) + action.folds[i].place, action.bytes,
                   action.folds[i].elements, microBatches.data(), microBatches.size(),
                   action.folds[i].momentum);
    return;
  default:
    throw Error(StatusInput, "program table: '" + action.name + "' is no action of a device");
  }
}

/// The norm and each parameter's own, by the host.
void Executor::sumByParameter(const Prepared &prepared) {
  void **args = pointers.data() + prepared.args;
  DSOPT_CUDA(cuStreamSynchronize, device->calls.currentStream());
  agreement->sums().eachPiece(prepared.norm, [&](const void *values, int64_t elements, int64_t) {
    device->download(const_cast<void *>(values), elements * bytesOf(prepared.type));
  });
  agreement->computeNorm(prepared.norm);
  device->upload(args[1], kNormWords * static_cast<int64_t>(sizeof(int64_t)));
}

/// A call also says what went wrong in work that was issued before.
Error Executor::deviceFailed(const cuda::Failure &failure) const {
  int64_t first = 0, end = static_cast<int64_t>(actions.size());
  while (first < end && (done[first] || !order->isIssued(first)))
    ++first;
  std::string where = "in step " + std::to_string(step);
  if (starting >= 0)
    where = whereIs(starting) + " or before it";
  else if (first < end)
    where = whereIs(first) + " or behind it";
  return engine.noticed(device->failed(where, failure));
}

bool Executor::awaitDevice() {
  bool isWorking = false;
  int64_t waitsFor = -1; ///< what peers have a part in
  for (ActionQueue *queue : polled)
    if (queue->isWorking()) {
      isWorking = true;
      waitsFor = std::max(waitsFor, queue->inFlight());
    }
  if (!isWorking)
    return false;
  if (waitsFor >= 0 && !deviceWaits) {
    engine.publish(step, firstAction + waitsFor);
    deviceWaits.emplace();
  }
  // What it completes rings nothing.
  std::this_thread::yield();
  if (waitsFor >= 0 && clock.isOver(Clock::now(), [this] { return engine.peerBeats(); }))
    stalled(waitsFor);
  return true;
}

} // namespace dsopt::runtime

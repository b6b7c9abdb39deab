//===- DeviceExecutor.cpp - what a step's actions are on a device -----------===//
//
// The device's actions are put on streams; what the host does for them, and what other
// ranks take, goes through the mirror.
//
//===----------------------------------------------------------------------===//

#include "Core/Executor.h"
#include "Kernels/CPU/Elementwise.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <thread>

namespace dsopt::runtime {

void Executor::prepareDevice() {
  order = std::make_unique<DeviceOrder>(actions.size());
  for (Prepared &prepared : actions) {
    const Action &action = *prepared.action;
    staged.push_back(communicates(action.kind) ? stage(prepared) : Staged());
    byHost.push_back(action.kind == ActionKind::Input);
    prepared.temp = device->memory.onDevice(prepared.temp);
    for (const Ref &ref : action.refs)
      if (isOnDevice(prepared) && action.kind != ActionKind::Copy &&
          position.memories[position.buffers[ref.buffer].memory].kind != MemoryKind::Device)
        throw Error(StatusInput, "program table: '" + action.name + "' is the device's, but has '" +
                                     position.buffers[ref.buffer].name + "' of another memory");
  }
  // Copies have one in the host's own memory.
  for (void *pointer : pointers)
    devicePointers.push_back(device->memory.contains(pointer) ? device->memory.onDevice(pointer) : pointer);
}

bool Executor::isOnDevice(const Prepared &prepared) const {
  QueueKind kind = position.queues[prepared.action->queue].kind;
  return device && (kind == QueueKind::Compute || kind == QueueKind::Copy);
}

Staged Executor::stage(const Prepared &prepared) const {
  const Action &action = *prepared.action;
  void *const *args = pointers.data() + prepared.args;
  int64_t members = prepared.communicator ? prepared.communicator->size() : 1;
  // What is in the host's own memory is where it is taken from.
  auto range = [&](size_t argument, int64_t bytes) {
    return Staged::Range{static_cast<char *>(args[argument]),
                         device->memory.contains(args[argument]) ? bytes : 0};
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
  case ActionKind::Send:
    return {{range(0, action.bytes)}, {}};
  case ActionKind::Recv:
    return {{}, {range(0, action.bytes)}};
  default: // Agree
    for (size_t i = 0; i < action.refs.size(); ++i)
      staged.taken.push_back(range(i, static_cast<int64_t>(i) < action.norms
                                          ? kNormWords * static_cast<int64_t>(sizeof(int64_t))
                                          : static_cast<int64_t>(sizeof(float))));
    return staged;
  }
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
    if (rt.profile)
      rt.profile->startSegment(prepared.calls);
    reinterpret_cast<dsopt_segment>(prepared.function)(&rt, args, prepared.temp, action.accumulate);
    return;
  case ActionKind::Map:
  case ActionKind::Update:
    for (size_t i = prepared.firstLaunch; i < prepared.lastLaunch; ++i) {
      const Launch &launch = launches[i];
      device->calls.launch(*static_cast<const dsopt_device_kernel *>(launch.kernel), launch.begin, launch.end,
                           devicePointers.data() + launch.args);
    }
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
  default:
    runByHost(prepared);
    return;
  }
}

/// In the mirror, while the device waits.
void Executor::runByHost(const Prepared &prepared) {
  const Action &action = *prepared.action;
  void **args = pointers.data() + prepared.args;
  int64_t width = bytesOf(prepared.type);
  auto take = [&](size_t argument, int64_t bytes) { device->download(args[argument], bytes); };
  auto give = [&](size_t argument, int64_t bytes) { device->upload(args[argument], bytes); };
  DSOPT_CUDA(cuStreamSynchronize, device->calls.currentStream());
  switch (action.kind) {
  case ActionKind::Add:
    take(0, action.elements * width);
    take(1, action.elements * width);
    withElement(prepared.type, [&](auto element) {
      addInto(static_cast<decltype(element) *>(args[0]), static_cast<decltype(element) *>(args[1]),
              action.elements);
    });
    give(0, action.elements * width);
    return;
  case ActionKind::Norm:
    take(0, program.buckets[action.bucket].padded / program.dp * width);
    agreement->computeNorm(prepared.norm);
    give(1, kNormWords * static_cast<int64_t>(sizeof(int64_t)));
    return;
  case ActionKind::Fold:
    take(0, program.K * action.bytes);
    for (size_t i = 0; i < action.folds.size(); ++i)
      take(1 + i, action.folds[i].elements * static_cast<int64_t>(sizeof(float)));
    fold(action, args);
    for (size_t i = 0; i < action.folds.size(); ++i)
      give(1 + i, action.folds[i].elements * static_cast<int64_t>(sizeof(float)));
    return;
  default:
    throw Error(StatusInput, "program table: an action '" + action.name + "' that a device does not do");
  }
}

bool Executor::awaitDevice() {
  if (std::none_of(polled.begin(), polled.end(), [](ActionQueue *queue) { return queue->isWorking(); }))
    return false;
  // What it completes rings nothing.
  std::this_thread::yield();
  return true;
}

} // namespace dsopt::runtime

//===- State.cpp - what the driver's calls work on ------------------------===//

#include "State.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace softdevice {

State &State::get() {
  // Never freed: threads and handlers at the end of a process may still call.
  static State *state = new State();
  return *state;
}

State::State() { configure(); }

void State::configure() {
  uint64_t seed = 1;
  const char *text = std::getenv("SOFT_DEVICE");
  for (std::string rest = text ? text : ""; !rest.empty();) {
    std::string item = rest.substr(0, rest.find(','));
    rest = rest.size() > item.size() ? rest.substr(item.size() + 1) : "";
    std::string name = item.substr(0, item.find('='));
    uint64_t value = std::strtoull(item.c_str() + std::min(item.size(), name.size() + 1), nullptr, 0);
    if (name == "devices")
      devices = static_cast<int>(value);
    else if (name == "arch")
      arch = static_cast<int>(value);
    else if (name == "memory")
      memoryBytes = value;
    else if (name == "lockable")
      lockable = value;
    else if (name == "driver")
      version = static_cast<int>(value);
    else if (name == "seed")
      seed = value;
    else if (name == "init")
      init = static_cast<CUresult>(value);
    else if (name == "issues")
      saysIssues = value;
    else if (name == "fault" && planted.parse(item.substr(6)))
      continue;
    else
      std::fprintf(
          stderr,
          "software device: SOFT_DEVICE has '%s', expected devices, arch, memory, lockable, driver, init, "
          "seed, issues or fault=KIND@DEVICE:NTH\n",
          item.c_str());
  }
  restart(seed);
}

void State::restart(uint64_t seed) {
  timeline = std::make_unique<Timeline>(seed);
  memories.clear();
  contexts.clear();
  for (int device = 0; device < devices; ++device) {
    memories.push_back(std::make_unique<Memory>(memoryBytes));
    contexts.push_back({device});
  }
  isInitialized = false;
  issues = 0;
  contextUsers = 0;
  sticky = CUDA_SUCCESS;
  fault.clear();
  defaultStream = CUstream_st{};
  lastStream = 0;
  streams.clear(), events.clear(), modules.clear(), graphs.clear(), executables.clear(), hostMemory.clear();
  currentContext() = nullptr;
}

CUctx_st *&currentContext() {
  static thread_local CUctx_st *current = nullptr;
  return current;
}

CUctx_st *State::context() {
  require(currentContext() != nullptr, CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
  return currentContext();
}

Memory &State::memoryOf(uint64_t address) {
  for (const auto &one : memories)
    if (one->find(address))
      return *one;
  return memory();
}

void State::lock(uint64_t bytes) {
  require(bytes <= lockable, CUDA_ERROR_OUT_OF_MEMORY, "");
  lockable -= lockable == UINT64_MAX ? 0 : bytes;
}

CUstream State::stream(CUstream handle) {
  // 1 is the default stream by its other name.
  if (handle == nullptr || handle == reinterpret_cast<CUstream>(1)) {
    defaultStream.context = context();
    return &defaultStream;
  }
  require(streams.count(handle), CUDA_ERROR_INVALID_HANDLE, "this is no stream");
  return handle;
}

void State::submit(CUstream handle, const std::string &what, Work work, Ready isReady) {
  CUstream to = stream(handle);
  if (to->capture) {
    require(!isReady, CUDA_ERROR_NOT_SUPPORTED, what + " cannot be recorded");
    int number = static_cast<int>(to->capture->members.size());
    to->capture->members.push_back({what, std::move(work), to->members, to->number});
    to->members = {number};
    return;
  }
  ++issues;
  std::vector<NodeRef> after = std::move(to->waits);
  to->waits.clear();
  after.push_back(to->last);
  // The default stream waits for the others, and they for it.
  if (to == &defaultStream) {
    for (CUstream other : streams)
      if (other->isBlocking)
        after.push_back(other->last);
  } else if (to->isBlocking) {
    after.push_back(defaultStream.last);
  }
  to->last = timeline->append(what, after, to->number, std::move(work), std::move(isReady));
}

void State::submitWork(CUstream handle, const std::string &what, Work work, Ready isReady) {
  int device = stream(handle)->context->device;
  planted.ask(device);
  submit(handle, what, planted.wrap(device, std::move(work)), std::move(isReady));
}

void State::refuseCapture(bool byOthers) {
  auto refuses = [&](const Graph &graph) {
    return byOthers || graph.recorder == std::thread::id() || graph.recorder == std::this_thread::get_id();
  };
  for (CUstream one : streams)
    if (one->capture && refuses(*one->capture)) {
      one->capture->isBroken = true;
      throw CallError{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "a call that waits while a stream's work is recorded"};
    }
}

CUresult call(const std::function<void(State &)> &work, bool needsContext) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  if (state.sticky != CUDA_SUCCESS)
    return state.sticky;
  if (!state.isInitialized && needsContext)
    return CUDA_ERROR_NOT_INITIALIZED;
  try {
    if (needsContext)
      state.context();
    work(state);
    return CUDA_SUCCESS;
  } catch (const CallError &error) {
    if (!error.text.empty()) {
      state.fault = error.text;
      std::fprintf(stderr, "software device: %s\n", error.text.c_str());
    }
    return error.status;
  } catch (const SyntaxError &error) {
    state.fault = error.what();
    std::fprintf(stderr, "software device: %s\n", error.what());
    return CUDA_ERROR_INVALID_PTX;
  } catch (const DeviceFailure &failure) {
    state.fault = failure.text;
    if (failure.status != CUDA_ERROR_OUT_OF_MEMORY)
      state.sticky = failure.status;
    return failure.status;
  } catch (const Fault &fault) {
    state.fault = fault.what();
    std::fprintf(stderr, "software device: %s\n", fault.what());
    return state.sticky = std::strstr(fault.what(), "bytes past the end") ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                                          : CUDA_ERROR_LAUNCH_FAILED;
  }
}

} // namespace softdevice

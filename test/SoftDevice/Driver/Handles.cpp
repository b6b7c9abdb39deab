//===- Handles.cpp - what is open -------------------------------*- C++ -*-===//

#include "LibraryWork.h"
#include "State.h"

#include <cstdio>
#include <cstdlib>

namespace softdevice {

static std::map<std::string, std::function<size_t()>> &libraries() {
  static auto *all = new std::map<std::string, std::function<size_t()>>();
  return *all;
}

void watchHandles(const std::string &what, std::function<size_t()> count) {
  libraries()[what] = std::move(count);
}

/// Who gives back the context closes what was open in it.
void State::checkHandles() {
  std::string open;
  auto add = [&](size_t count, const std::string &what) {
    if (count)
      open += (open.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  int allocations, streamCount, eventCount, moduleCount, graphCount;
  softDeviceOpenHandles(&allocations, &streamCount, &eventCount, &moduleCount, &graphCount);
  add(allocations, "allocations");
  add(streamCount, "streams");
  add(eventCount, "events");
  add(moduleCount, "modules");
  add(graphCount, "graphs");
  for (const auto &[what, count] : libraries())
    add(count(), what);
  if (open.empty())
    return;
  std::fprintf(stderr, "software device: leaked handles: %s are still open as the context is given back\n",
               open.c_str());
  std::abort();
}

} // namespace softdevice

using namespace softdevice;

void softDeviceOpenHandles(int *allocations, int *streams, int *events, int *modules, int *graphs) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  // Memory of the host is in all of them.
  *allocations = 0;
  std::set<uint64_t> host;
  for (const auto &memory : state.memories)
    for (const auto &[address, allocation] : memory->list())
      *allocations += allocation.isHost ? host.insert(address).second : allocation.what == "an allocation";
  *streams = static_cast<int>(state.streams.size());
  *events = static_cast<int>(state.events.size());
  *modules = static_cast<int>(state.modules.size());
  *graphs = static_cast<int>(state.graphs.size() + state.executables.size());
}

//===- Copies.cpp - memory and copies -------------------------------------===//

#include "State.h"

#include <cstdlib>
#include <cstring>

using namespace softdevice;

static uint64_t asAddress(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

/// A copy whose host side is read and written when it runs, not when it is asked for.
static Work toDevice(State &state, CUdeviceptr to, const void *from, size_t bytes) {
  Memory &memory = state.memoryOf(to);
  return [=, &memory](std::mt19937_64 &) {
    Footprint touched;
    if (bytes) {
      std::memcpy(memory.reach(to, bytes, false, true, "a copy to the device"), from, bytes);
      touched.add(to, bytes, true);
      touched.add(asAddress(from), bytes, false);
    }
    return touched;
  };
}
static Work toHost(State &state, void *to, CUdeviceptr from, size_t bytes) {
  Memory &memory = state.memoryOf(from);
  return [=, &memory](std::mt19937_64 &) {
    Footprint touched;
    if (bytes) {
      std::memcpy(to, memory.reach(from, bytes, true, false, "a copy to the host"), bytes);
      touched.add(from, bytes, false);
      touched.add(asAddress(to), bytes, true);
    }
    return touched;
  };
}

static void waitOnDefault(State &state) {
  // Streams that record may be those that it waits for.
  state.refuseCapture(/*byOthers=*/true);
  state.timeline->wait(state.defaultStream.last);
}

template <class T> static CUresult fill(CUdeviceptr to, T value, size_t count, CUstream stream) {
  return call([&](State &state) {
    Memory &memory = state.memoryOf(to);
    require(to % sizeof(T) == 0, CUDA_ERROR_INVALID_VALUE,
            "a fill of values at an address that is no multiple of one");
    state.submit(stream, "a fill", [=, &memory](std::mt19937_64 &) {
      Footprint touched;
      if (count) {
        char *place = memory.reach(to, count * sizeof(T), false, true, "a fill");
        for (size_t i = 0; i < count; ++i)
          std::memcpy(place + i * sizeof(T), &value, sizeof(T));
        touched.add(to, count * sizeof(T), true);
      }
      return touched;
    });
  });
}

extern "C" {

CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
  return call([&](State &state) {
    *left = state.memory().left();
    *total = state.memory().total();
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  return call([&](State &state) {
    state.refuseCapture();
    require(bytes > 0, CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
    *address = state.memory().allocate(bytes, "an allocation");
    require(*address != 0, CUDA_ERROR_OUT_OF_MEMORY, "");
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return call([&](State &state) {
    state.refuseCapture();
    state.timeline->waitForAll();
    if (address)
      state.memoryOf(address).free(address);
  });
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  return call([&](State &state) {
    state.lock(bytes);
    *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    require(*address != nullptr, CUDA_ERROR_OUT_OF_MEMORY, "");
    state.hostMemory[*address] = bytes;
    for (const auto &memory : state.memories)
      memory->addHost(*address, bytes);
  });
}

CUresult cuMemFreeHost(void *address) {
  return call([&](State &state) {
    require(state.hostMemory.erase(address), CUDA_ERROR_INVALID_VALUE,
            "this is no host memory of the driver's");
    state.timeline->waitForAll();
    for (const auto &memory : state.memories)
      memory->free(asAddress(address));
    std::free(address);
  });
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned) {
  return call([&](State &state) {
    require(bytes > 0, CUDA_ERROR_INVALID_VALUE, "registered memory of 0 bytes");
    state.lock(bytes);
    for (const auto &memory : state.memories)
      memory->addHost(address, bytes);
  });
}

CUresult cuMemHostUnregister(void *address) {
  return call([&](State &state) {
    state.timeline->waitForAll();
    for (const auto &memory : state.memories) {
      Allocation *found = memory->find(asAddress(address));
      require(found && found->isHost && found->storage == address, CUDA_ERROR_INVALID_VALUE,
              "this host memory is not registered");
      memory->free(asAddress(address));
    }
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *address, unsigned) {
  return call([&](State &state) {
    Allocation *found = state.memory().find(asAddress(address));
    require(found && found->isHost, CUDA_ERROR_INVALID_VALUE, "this is no host memory of the driver's");
    *device = asAddress(address);
  });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return call([&](State &state) {
    state.submit(nullptr, "a copy to the device", toDevice(state, to, from, bytes));
    waitOnDefault(state);
  });
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return call([&](State &state) {
    state.submit(nullptr, "a copy to the host", toHost(state, to, from, bytes));
    waitOnDefault(state);
  });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return call(
      [&](State &state) { state.submit(stream, "a copy to the device", toDevice(state, to, from, bytes)); });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call(
      [&](State &state) { state.submit(stream, "a copy to the host", toHost(state, to, from, bytes)); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call([&](State &state) {
    Memory &source = state.memoryOf(from), &target = state.memoryOf(to);
    state.submit(stream, "a copy on the device", [=, &source, &target](std::mt19937_64 &) {
      Footprint touched;
      if (bytes) {
        const char *read = source.reach(from, bytes, true, false, "a copy on the device");
        std::memmove(target.reach(to, bytes, false, true, "a copy on the device"), read, bytes);
        touched.add(from, bytes, false);
        touched.add(to, bytes, true);
      }
      return touched;
    });
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill(to, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return fill(to, value, count, stream);
}
}

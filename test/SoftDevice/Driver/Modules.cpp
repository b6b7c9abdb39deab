//===- Modules.cpp - modules, functions and launches ----------------------===//

#include "Machine/Warp.h"
#include "State.h"

#include <cstring>

using namespace softdevice;

/// Without asking for more.
static constexpr int64_t kSharedBytes = 48 << 10;

/// Whether code for "sm_90a" runs on a device: PTX runs on later ones, too, but not what is for one alone.
static bool runsOn(const std::string &target, int arch) {
  if (target.rfind("sm_", 0) != 0)
    return false;
  char *end = nullptr;
  long wanted = std::strtol(target.c_str() + 3, &end, 10);
  return *end == 'a'   ? arch == wanted
         : *end == 'f' ? arch / 10 == wanted / 10 && arch >= wanted
                       : arch >= wanted;
}

static CUfunction functionOf(State &state, CUfunction function) {
  for (CUmodule module : state.modules)
    for (auto &[name, one] : module->functions)
      if (&one == function)
        return function;
  throw CallError{CUDA_ERROR_INVALID_HANDLE, "this is no function of a module that is loaded"};
}

extern "C" {

CUresult cuModuleLoadData(CUmodule *made, const void *image) {
  return call([&](State &state) {
    const char *text = static_cast<const char *>(image);
    uint32_t magic;
    std::memcpy(&magic, text, sizeof(magic));
    // An ELF image, and one or several of them in a container.
    require(std::memcmp(text, "\177ELF", 4) != 0 && magic != 0xba55ed50 && magic != 0x466243b1,
            CUDA_ERROR_NO_BINARY_FOR_GPU, "the software device runs PTX, not cubin images");
    auto program = std::make_shared<Program>(state.memory(), text);
    if (std::string target = program->target(); !runsOn(target, state.arch))
      throw CallError{CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "a module for " + target + " does not run on sm_" + std::to_string(state.arch)};
    *made = new CUmod_st{std::move(program), state.context(), {}};
    state.modules.insert(*made);
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return call([&](State &state) {
    require(state.modules.erase(module), CUDA_ERROR_INVALID_HANDLE, "this is no module");
    state.timeline->waitForAll();
    delete module;
  });
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  return call([&](State &state) {
    require(state.modules.count(module), CUDA_ERROR_INVALID_HANDLE, "this is no module");
    const Kernel *kernel = module->program->kernel(name);
    require(kernel != nullptr, CUDA_ERROR_NOT_FOUND, "");
    *function = &module->functions.try_emplace(name, CUfunc_st{module->program, kernel, module->context})
                     .first->second;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
  return call([&](State &state) {
    require(state.modules.count(module), CUDA_ERROR_INVALID_HANDLE, "this is no module");
    auto [place, size] = module->program->variable(name);
    require(place != 0, CUDA_ERROR_NOT_FOUND, "");
    if (address)
      *address = place;
    if (bytes)
      *bytes = size;
  });
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction handle) {
  return call([&](State &state) {
    CUfunction function = functionOf(state, handle);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->kernel->sharedBytes);
      return;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(function->kernel->localBytes);
      return;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value =
          static_cast<int>(std::max(function->dynamicShared, kSharedBytes - function->kernel->sharedBytes));
      return;
    default:
      throw CallError{CUDA_ERROR_INVALID_VALUE, "the software device does not have attribute " +
                                                    std::to_string(attribute) + " of functions"};
    }
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  return call([&](State &state) {
    require(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CUDA_ERROR_INVALID_VALUE,
            "attribute " + std::to_string(attribute) + " of functions cannot be set");
    functionOf(state, handle)->dynamicShared = value;
  });
}

CUresult cuLaunchKernel(CUfunction handle, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void **parameters, void **extra) {
  return call([&](State &state) {
    CUfunction function = functionOf(state, handle);
    const Kernel &kernel = *function->kernel;
    require(extra == nullptr, CUDA_ERROR_NOT_SUPPORTED, "parameters in one buffer are not supported");
    require(sharedBytes <= std::max(function->dynamicShared, kSharedBytes - kernel.sharedBytes),
            CUDA_ERROR_INVALID_VALUE,
            "kernel " + kernel.name + " gets " + std::to_string(sharedBytes) +
                " bytes of dynamic shared memory, more than it was allowed");
    // The parameters are copied now.
    std::string bytes(kernel.parameterBytes, 0);
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      require(parameters && parameters[i], CUDA_ERROR_INVALID_VALUE,
              "kernel " + kernel.name + " lacks parameter " + std::to_string(i));
      std::memcpy(&bytes[kernel.parameterOffsets[i]], parameters[i], kernel.parameters[i].bytes);
    }
    Memory &memory = *state.memories[function->context->device];
    std::mt19937_64 none;
    Grid shape{kernel,      memory, bytes.data(), {gridX, gridY, gridZ}, {blockX, blockY, blockZ},
               sharedBytes, none};
    try {
      checkShape(shape);
    } catch (const Fault &fault) {
      throw CallError{CUDA_ERROR_INVALID_VALUE, fault.what()};
    }
    state.submitWork(stream, "kernel " + kernel.name,
                     [=, &memory, program = function->program, &kernel](std::mt19937_64 &random) {
                       Grid grid{
                           kernel,      memory, bytes.data(), {gridX, gridY, gridZ}, {blockX, blockY, blockZ},
                           sharedBytes, random};
                       runGrid(grid);
                       return grid.footprint();
                     });
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument) {
  return call([&](State &state) {
    state.submit(stream, "a function of the host", [=](std::mt19937_64 &) {
      function(argument);
      return Footprint();
    });
  });
}
}

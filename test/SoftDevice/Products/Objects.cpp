//===- Objects.cpp - the library, its objects and their attributes --------===//

#include "Objects.h"
#include "Driver/LibraryWork.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace softdevice {

Objects &Objects::get() {
  // Never freed: threads and handlers at the end of a process may still call.
  static Objects *objects = [] {
    auto *all = new Objects();
    watchHandles("objects of cuBLASLt", [all] {
      return all->handles.size() + all->operations.size() + all->layouts.size() + all->preferences.size();
    });
    return all;
  }();
  return *objects;
}

cublasStatus_t callProducts(const std::function<void(Objects &)> &work) {
  Objects &objects = Objects::get();
  std::lock_guard<std::mutex> lock(objects.mutex);
  try {
    work(objects);
    return CUBLAS_STATUS_SUCCESS;
  } catch (const ProductError &error) {
    objects.fault = error.text;
    std::fprintf(stderr, "software device: cuBLASLt: %s\n", error.text.c_str());
    return error.status;
  }
}

uint64_t bytesOfType(uint32_t type) {
  switch (type) {
  case CUDA_R_32F:
    return 4;
  case CUDA_R_64F:
    return 8;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  default:
    throw ProductError{CUBLAS_STATUS_NOT_SUPPORTED,
                       "the software device does not multiply type " + std::to_string(type)};
  }
}

/// Where an attribute is kept.
struct Field {
  void *place;
  size_t bytes;
};

static void setField(const char *kind, int attribute, Field field, const void *value, size_t bytes) {
  std::string name = "attribute " + std::to_string(attribute) + " of " + kind;
  expect(field.place != nullptr, CUBLAS_STATUS_INVALID_VALUE, "the software device does not have " + name);
  expect(value != nullptr && bytes == field.bytes, CUBLAS_STATUS_INVALID_VALUE,
         name + " has " + std::to_string(bytes) + " bytes, expected " + std::to_string(field.bytes));
  std::memcpy(field.place, value, bytes);
}

template <class Object> static void destroy(std::set<const void *> &all, Object *object, const char *kind) {
  delete known(all, object, kind);
  all.erase(object);
}

} // namespace softdevice

using namespace softdevice;

extern "C" {

size_t cublasLtGetVersion() {
  const char *text = std::getenv("SOFT_PRODUCTS_VERSION");
  return text ? std::strtoul(text, nullptr, 10) : 130100;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "CUBLAS_STATUS_UNKNOWN";
  }
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "success";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "the library was not initialized";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "an unsupported value or parameter was passed to the function";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "the operation is not there for the device's architecture";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "the device failed to execute";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "the functionality requested is not supported";
  default:
    return "unknown status";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  return callProducts([&](Objects &objects) {
    CUcontext context = nullptr;
    int major = 0, minor = 0;
    expect(cuCtxGetCurrent(&context) == CUDA_SUCCESS && context, CUBLAS_STATUS_NOT_INITIALIZED,
           "no context is current in this thread");
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    *handle = new cublasLtContext{10 * major + minor};
    objects.handles.insert(*handle);
  });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return callProducts([&](Objects &objects) { destroy(objects.handles, handle, "handle"); });
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, int compute, int scaleType) {
  return callProducts([&](Objects &objects) {
    expect(compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_64F ||
               compute == CUBLAS_COMPUTE_32F_FAST_TF32,
           CUBLAS_STATUS_NOT_SUPPORTED,
           "the software device does not have compute type " + std::to_string(compute));
    *made = new softOperation{compute, scaleType};
    objects.operations.insert(*made);
  });
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  return callProducts([&](Objects &objects) { destroy(objects.operations, operation, "operation"); });
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, int attribute, const void *value,
                                              size_t bytes) {
  return callProducts([&](Objects &objects) {
    softOperation *operation = known(objects.operations, handle, "operation");
    Field field = attribute == 3    ? Field{&operation->transposeA, 4}
                  : attribute == 4  ? Field{&operation->transposeB, 4}
                  : attribute == 7  ? Field{&operation->epilogue, 4}
                  : attribute == 8  ? Field{&operation->bias, 8}
                  : attribute == 11 ? Field{&operation->aux, 8}
                  : attribute == 12 ? Field{&operation->auxLeading, 8}
                                    : Field{nullptr, 0};
    setField("operations", attribute, field, value, bytes);
    // Conjugates are of complex numbers.
    for (int32_t transpose : {operation->transposeA, operation->transposeB})
      expect(transpose == 0 || transpose == 1, CUBLAS_STATUS_NOT_SUPPORTED,
             "the software device does not have transpose " + std::to_string(transpose));
  });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, int type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return callProducts([&](Objects &objects) {
    *made = new softLayout{static_cast<uint32_t>(type), rows, columns, leading};
    objects.layouts.insert(*made);
  });
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return callProducts([&](Objects &objects) { destroy(objects.layouts, layout, "layout"); });
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, int attribute,
                                                const void *value, size_t bytes) {
  return callProducts([&](Objects &objects) {
    softLayout *layout = known(objects.layouts, handle, "layout");
    Field field = attribute == 5   ? Field{&layout->count, 4}
                  : attribute == 6 ? Field{&layout->stride, 8}
                                   : Field{nullptr, 0};
    setField("layouts", attribute, field, value, bytes);
  });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
  return callProducts([&](Objects &objects) {
    *made = new softPreference{};
    objects.preferences.insert(*made);
  });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return callProducts([&](Objects &objects) { destroy(objects.preferences, preference, "preference"); });
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle, int attribute,
                                                    const void *value, size_t bytes) {
  return callProducts([&](Objects &objects) {
    softPreference *preference = known(objects.preferences, handle, "preference");
    Field field = attribute == 1                     ? Field{&preference->workspaceBytes, 8}
                  : attribute == 3                   ? Field{&preference->reductionSchemes, 4}
                  : attribute >= 5 && attribute <= 8 ? Field{&preference->alignments[attribute - 5], 4}
                                                     : Field{nullptr, 0};
    setField("preferences", attribute, field, value, bytes);
  });
}

const char *softProductsFault() { return Objects::get().fault.c_str(); }

void softProductsOpenObjects(int *handles, int *operations, int *layouts, int *preferences) {
  Objects &objects = Objects::get();
  std::lock_guard<std::mutex> lock(objects.mutex);
  *handles = static_cast<int>(objects.handles.size());
  *operations = static_cast<int>(objects.operations.size());
  *layouts = static_cast<int>(objects.layouts.size());
  *preferences = static_cast<int>(objects.preferences.size());
}
}

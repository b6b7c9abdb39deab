//===- Driver.h - the CUDA driver, opened at run time -----------*- C++ -*-===//
//
// `Driver` is the library, `Device` one of its devices with the kernels that were loaded
// to it, `Stream` and `Event` what orders work. Each owns what it opens. Every call that
// fails is an Error of status 2 that names the call and what the driver says.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DRIVER_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DRIVER_H

#include "Kernels/CUDA/DriverApi.h"
#include "dsopt/Runtime/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dsopt::runtime::cuda {

/// The oldest driver that programs run on, as cuDriverGetVersion counts: 12.0.
inline constexpr int kOldestDriver = 12000;

/// Of status 2: what a call says, of itself or of work that was issued before.
struct Failure : Error {
  explicit Failure(const std::string &message) : Error(StatusFailure, message) {}
};

struct Driver {
#define DSOPT_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  DSOPT_CUDA_DRIVER(DSOPT_MEMBER)
#undef DSOPT_MEMBER

  /// The library, opened and initialized when first asked for. An Error of status 2 says what is missing:
  /// no driver, one that is too old, no device.
  static const Driver &get();
  /// What the driver says of a result: "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  std::string describe(Result result) const;
  /// Fails unless the result is success.
  void check(Result result, const char *call) const {
    if (result != kSuccess)
      fail(result, call);
  }

private:
  [[noreturn]] void fail(Result result, const char *call) const;
};

/// Calls a function of the driver: DSOPT_CUDA(cuMemFree_v2, address).
#define DSOPT_CUDA(name, ...)                                                                                \
  ::dsopt::runtime::cuda::Driver::get().check(::dsopt::runtime::cuda::Driver::get().name(__VA_ARGS__), #name)

/// Work in the order of its issue; all of this process's streams go beside each other.
class Stream {
public:
  Stream() { DSOPT_CUDA(cuStreamCreate, &handle, kStreamNonBlocking); }
  ~Stream() { Driver::get().cuStreamDestroy_v2(handle); }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  operator StreamHandle() const { return handle; }

  /// What is issued from now on waits for the event's last record.
  void wait(EventHandle event) { DSOPT_CUDA(cuStreamWaitEvent, handle, event, 0); }
  void synchronize() { DSOPT_CUDA(cuStreamSynchronize, handle); }

private:
  StreamHandle handle = nullptr;
};

/// A place in a stream. Those of kEventDefault know when the device came by.
class Event {
public:
  explicit Event(unsigned flags = kEventDisableTiming) { DSOPT_CUDA(cuEventCreate, &handle, flags); }
  ~Event() {
    if (handle)
      Driver::get().cuEventDestroy_v2(handle);
  }
  Event(Event &&other) : handle(other.handle) { other.handle = nullptr; }
  Event(const Event &) = delete;
  operator EventHandle() const { return handle; }

  void record(StreamHandle stream) { DSOPT_CUDA(cuEventRecord, handle, stream); }
  /// Whether all that was in the stream is done.
  bool isReached() const;

private:
  EventHandle handle = nullptr;
};

/// What a device is, for which it need not be started.
struct DeviceKind {
  explicit DeviceKind(int ordinal);
  DeviceNumber device = 0;
  int arch = 0; ///< as sm_90 names it: 90
  std::string name;
};

/// A device and its kernels. Its context is the constructing thread's from there on.
class Device {
public:
  explicit Device(int ordinal);
  ~Device();
  Device(const Device &) = delete;
  /// What the calling thread calls from now on goes there.
  void use() const { DSOPT_CUDA(cuCtxSetCurrent, context); }

  /// Of an architecture as sm_90 names it: 90.
  int architecture() const { return kind.arch; }
  const std::string &name() const { return kind.name; }
  /// "GPU 1 (NVIDIA H100)", for messages.
  std::string describe() const { return "GPU " + std::to_string(kind.device) + " (" + kind.name + ")"; }
  int multiprocessors() const { return processors; }
  /// No other device of any machine has it.
  Uuid uuid() const;
  int64_t bytes() const { return memory; }
  /// What is not taken by anybody.
  int64_t freeBytes() const;

  /// Loads PTX, ended by a zero, or a cubin. Its kernels are found by name.
  void load(const void *image);
  /// An Error of status 1 where no image has it.
  Function find(const std::string &kernel);

private:
  DeviceKind kind;
  Context context = nullptr;
  int processors = 0;
  int64_t memory = 0;
  std::vector<Module> modules;
  std::map<std::string, Function> known;
};

inline Address addressOf(const void *pointer) { return reinterpret_cast<Address>(pointer); }

/// Puts `kernel(arguments...)` on a stream. Arguments have the types that the kernel takes, pointers as such.
template <typename... Arguments>
void launch(StreamHandle stream, Function kernel, int64_t blocks, int64_t threads, int64_t sharedBytes,
            Arguments... arguments) {
  void *parameters[] = {&arguments...};
  DSOPT_CUDA(cuLaunchKernel, kernel, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads), 1,
             1, static_cast<unsigned>(sharedBytes), stream, parameters, nullptr);
}

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DRIVER_H

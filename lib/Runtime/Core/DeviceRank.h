//===- DeviceRank.h - a rank's device ---------------------------*- C++ -*-===//
//
// What a rank of a program for a device has there: the device with the program's kernels,
// the planned memory, and what goes between it and its mirror, the rank's arena.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DEVICERANK_H
#define DSOPT_LIB_RUNTIME_CORE_DEVICERANK_H

#include "Core/NcclWorld.h"
#include "Core/StateStream.h"
#include "Kernels/CUDA/Calls.h"
#include "Kernels/CUDA/Memory.h"
#include "Kernels/CUDA/Meter.h"
#include "dsopt/Runtime/Session.h"

#include <mutex>
#include <optional>

namespace dsopt::runtime {

/// What of a rank's state its device has.
class DeviceState final : public RemoteState {
public:
  DeviceState(const cuda::Device &device, const cuda::Memory &memory) : device(device), memory(memory) {}

  bool has(const char *address) const override { return memory.contains(address); }
  void fetch(char *to, const char *from, int64_t bytes) override;
  void bringTo(char *begin, int64_t bytes) override;

private:
  const cuda::Device &device;
  const cuda::Memory &memory;
  std::mutex mutex; ///< of the stream
  cuda::Stream stream;
  std::optional<cuda::PinnedRange> pinned;
};

class DeviceRank {
public:
  /// Opens the device that is this rank's among its host's, takes its memory and loads what the program has
  /// for its architecture. `memories` are where those of `info`'s position begin: the first one's mirror, and
  /// the host's own, which the device copies from and to by itself. `fills`: no byte of it is as it was
  /// found, so that all may be read.
  DeviceRank(const Program &program, const RankInfo &info, int localRank, const SymbolResolver &resolve,
             const std::vector<char *> &memories, bool fills = false);

  /// Bytes of the mirror to the device or back; returns when they are there.
  void upload(const void *mirrored, int64_t bytes);
  void download(void *mirrored, int64_t bytes);
  /// What these go by.
  cuda::StreamHandle copyStream() const { return copies; }
  /// What is to be thrown where a call of the driver fails while something is done.
  Error failed(const std::string &where, const cuda::Failure &failure) const;

  /// All that outlives a step, of the list's buffers.
  void uploadState(const Position &position);
  void downloadState(const Position &position);

  cuda::Device device;

private:
  std::vector<const Image *> images; ///< chosen before anything is taken

public:
  cuda::Memory memory;
  cuda::Calls calls;
  cuda::Meter meter;
  DeviceState state;
  std::unique_ptr<NcclWorld> nccl; ///< null: ranks talk by way of their hosts

private:
  template <typename Body> void eachState(const Position &position, Body body);
  void loadImages(const SymbolResolver &resolve);
  void clearPadding(const Position &position);
  void loadConstants(const Position &position, const SymbolResolver &resolve);

  std::string rank; ///< for messages
  char *mirror;
  cuda::Stream copies;
  std::vector<std::unique_ptr<cuda::PinnedRange>> hostMemories;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DEVICERANK_H

//===- DeviceRank.cpp - a rank's device -----------------------------------===//

#include "Core/DeviceRank.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dsopt::runtime {

/// Ranks take their host's devices in turn.
static int ordinalOf(int localRank) {
  int count = 0;
  DSOPT_CUDA(cuDeviceGetCount, &count);
  return localRank % count;
}

/// Of sm_90 or sm_90a: 90, and whether it is for that architecture alone.
static std::pair<int, bool> parseArchitecture(const std::string &name) {
  char *end = nullptr;
  long number = name.rfind("sm_", 0) == 0 ? std::strtol(name.c_str() + 3, &end, 10) : 0;
  if (number <= 0 || (*end && std::strcmp(end, "a") != 0))
    throw Error(StatusInput, "program table: unknown architecture '" + name + "' of a device");
  return {static_cast<int>(number), *end == 'a'};
}

/// The image of a routine, or of the program's kernels, for a device: machine code of its architecture, else
/// the newest PTX that it can compile.
static const Image *imageFor(const Program &program, const std::string &routine, int arch,
                             const std::string &name) {
  const Image *chosen = nullptr;
  int best = -1;
  std::string names;
  for (const Image &image : program.images) {
    if (image.routine != routine)
      continue;
    auto [made, isOnly] = parseArchitecture(image.arch);
    bool isCode = image.kind == "cubin";
    // Machine code runs on later devices of its generation, too; PTX on all later ones.
    bool isLater = arch > made && (!isCode || arch / 10 == made / 10);
    int worth = 2 * made + isCode;
    if ((arch == made || (isLater && !isOnly)) && worth > best) {
      chosen = &image;
      best = worth;
    }
    if (names.find(image.arch) == std::string::npos)
      names += (names.empty() ? "" : ", ") + image.arch;
  }
  if (chosen)
    return chosen;
  std::string have = "sm_" + std::to_string(arch);
  throw Error(StatusInput, "the program was compiled for " + names + ", but this machine's " + name + " is " +
                               have + ": compile it with -arch=" + have);
}

/// The program's, then one for each routine that it uses.
static std::vector<const Image *> imagesFor(const Program &program, int arch, const std::string &name) {
  std::vector<const Image *> images = {imageFor(program, "", arch, name)};
  for (const Image &image : program.images)
    if (!image.routine.empty() && image.routine != images.back()->routine)
      images.push_back(imageFor(program, image.routine, arch, name));
  return images;
}

std::string deviceObstacle(const Program &program, int ranks) {
  try {
    int count = 0;
    DSOPT_CUDA(cuDeviceGetCount, &count);
    for (int ordinal = 0; ordinal < std::min(count, ranks); ++ordinal) {
      cuda::DeviceKind kind(ordinal);
      imagesFor(program, kind.arch, kind.name);
    }
    cuda::CublasLt::get();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

void DeviceState::fetch(char *to, const char *from, int64_t bytes) {
  device.use();
  std::lock_guard<std::mutex> lock(mutex);
  DSOPT_CUDA(cuMemcpyDtoHAsync_v2, to, cuda::addressOf(memory.onDevice(from)), bytes, stream);
  stream.synchronize();
}

void DeviceState::bringTo(char *begin, int64_t bytes) {
  pinned.reset();
  if (begin)
    pinned.emplace(begin, bytes);
}

DeviceRank::DeviceRank(const Program &program, const RankInfo &info, int localRank,
                       const SymbolResolver &resolve, const std::vector<char *> &memories, bool fills)
    : device(ordinalOf(localRank)), images(imagesFor(program, device.architecture(), device.name())),
      memory(device, memories.front(), program.positions[info.position].memories.front().bytes),
      calls(device, program.matmul_precision == "high"), meter(calls), state(device, memory),
      rank(describeRank(program, info.rank)), mirror(memories.front()) {
  loadImages(resolve);
  const std::vector<Memory> &planned = program.positions[info.position].memories;
  if (fills && planned.front().bytes > 0)
    DSOPT_CUDA(cuMemsetD8Async, cuda::addressOf(memory.onDevice(mirror)), 0xff, planned.front().bytes,
               copies);
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].kind != MemoryKind::Host || planned[i].bytes == 0)
      continue;
    hostMemories.push_back(std::make_unique<cuda::PinnedRange>(memories[i], pages(planned[i].bytes)));
    if (const std::string &obstacle = hostMemories.back()->obstacle; !obstacle.empty())
      std::fprintf(stderr, "dsopt: warning: %s: %s\n", rank.c_str(), obstacle.c_str());
  }
  for (size_t list = 0; list < countLists(program); ++list)
    if (const std::vector<Position> &positions = positionsOf(program, list); !positions.empty()) {
      clearPadding(positions[info.position]);
      loadConstants(positions[info.position], resolve);
    }
  copies.synchronize();
}

/// Updates, norms and sums go through what lies between gradients, and behind values that ranks add, which
/// nothing writes.
void DeviceRank::clearPadding(const Position &position) {
  auto clear = [&](int64_t offset, int64_t bytes) {
    DSOPT_CUDA(cuMemsetD8Async, cuda::addressOf(memory.onDevice(mirror + offset)), 0, bytes, copies);
  };
  constexpr const char *kKinds[] = {"gradients", "reduction", "tied", "buffers"};
  for (const Buffer &buffer : position.buffers) {
    if (position.memories[buffer.memory].kind != MemoryKind::Device)
      continue;
    if (std::find(std::begin(kKinds), std::end(kKinds), buffer.kind) != std::end(kKinds))
      clear(buffer.offset, (buffer.slots - 1) * buffer.stride + buffer.bytes);
    else if (buffer.payload > 0 && buffer.payload < buffer.bytes)
      for (int64_t slot = 0; slot < buffer.slots; ++slot)
        clear(buffer.offset + slot * buffer.stride + buffer.payload, buffer.bytes - buffer.payload);
  }
}

void DeviceRank::loadImages(const SymbolResolver &resolve) {
  auto *bytes = static_cast<const char *>(resolve("dsopt_images"));
  if (!bytes)
    throw Error(StatusInput, "the program has no images for its device");
  for (const Image *image : images)
    device.load(bytes + image->offset);
}

void DeviceRank::loadConstants(const Position &position, const SymbolResolver &resolve) {
  for (const Buffer &buffer : position.buffers)
    if (!buffer.symbol.empty()) {
      const void *value = resolve(buffer.symbol);
      if (!value)
        throw Error(StatusInput, "the program has no constant '" + buffer.symbol + "'");
      std::memcpy(mirror + buffer.offset, value, buffer.bytes);
      upload(mirror + buffer.offset, buffer.bytes);
    }
}

Error DeviceRank::failed(const std::string &where, const cuda::Failure &failure) const {
  return Error(StatusFailure, rank + " on " + device.describe() + " " + where + ": " + failure.what());
}

void DeviceRank::upload(const void *mirrored, int64_t bytes) {
  memory.upload(mirrored, bytes, copies);
  copies.synchronize();
}
void DeviceRank::download(void *mirrored, int64_t bytes) {
  memory.download(mirrored, bytes, copies);
  copies.synchronize();
}

template <typename Body> void DeviceRank::eachState(const Position &position, Body body) {
  for (const Buffer &buffer : position.buffers)
    if (buffer.persistent && buffer.symbol.empty() && buffer.bytes > 0 &&
        position.memories[buffer.memory].kind == MemoryKind::Device)
      body(mirror + buffer.offset, (buffer.slots - 1) * buffer.stride + buffer.bytes);
  copies.synchronize();
}

void DeviceRank::uploadState(const Position &position) {
  eachState(position, [&](char *begin, int64_t bytes) { memory.upload(begin, bytes, copies); });
}
void DeviceRank::downloadState(const Position &position) {
  eachState(position, [&](char *begin, int64_t bytes) { memory.download(begin, bytes, copies); });
}

} // namespace dsopt::runtime

//===- Executable.cpp - a program and its runtime in one file -------------===//

#include "dsopt/Runtime/Executable.h"
#include "Descriptor.h"
#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Footer.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;

namespace {
/// XXH3 of bytes that come piece by piece.
class Hash {
public:
  Hash() : state(XXH3_createState()) { XXH3_64bits_reset(state); }
  ~Hash() { XXH3_freeState(state); }
  Hash(const Hash &) = delete;
  void add(const void *bytes, size_t count) { XXH3_64bits_update(state, bytes, count); }
  uint64_t value() const { return XXH3_64bits_digest(state); }

private:
  XXH3_state_t *state;
};
} // namespace

static constexpr uint64_t kPiece = 1 << 20;
static constexpr size_t kNumbers = offsetof(dsopt_footer, footer);

static uint64_t hashOf(const dsopt_footer &footer) { return XXH3_64bits(&footer, kNumbers); }

/// Shows the bytes [begin, end) of a file, piece by piece.
template <typename Take> static void readPieces(int fd, uint64_t begin, uint64_t end, Take take) {
  std::vector<char> piece(std::min(kPiece, end - begin));
  while (begin < end) {
    uint64_t bytes = std::min(kPiece, end - begin);
    if (!readFully(fd, static_cast<int64_t>(begin), piece.data(), static_cast<int64_t>(bytes)))
      throw Error(StatusFailure, std::string("the executable cannot be read: ") +
                                     (errno ? std::strerror(errno) : "it became shorter"));
    take(piece.data(), bytes);
    begin += bytes;
  }
}

[[noreturn]] static void refuseDamaged(const std::string &what) {
  throw Error(StatusInput,
              "this executable is damaged (" + what + " is not what was written); compile it again");
}

/// Whether programs begin at their boundaries and fill all up to the footer, but for what aligns the next.
static bool lieInOrder(const dsopt_footer &footer, size_t count, uint64_t end) {
  for (size_t i = count; i-- > 0;) {
    const dsopt_footer_program &program = footer.programs[i];
    uint64_t slack = i + 1 < count ? DSOPT_FOOTER_ALIGNMENT - 1 : 0;
    if (program.offset % DSOPT_FOOTER_ALIGNMENT || program.offset > end ||
        program.size > end - program.offset || end - program.offset - program.size > slack)
      return false;
    end = program.offset;
  }
  return true;
}

void dsopt::runtime::writeExecutable(const std::string &runtime,
                                     const std::vector<std::string_view> &programs, const std::string &path) {
  Descriptor source(sys::open(runtime.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (source.fd < 0 || sys::fstat(source.fd, &info) != 0)
    throw Error(StatusFailure, "cannot read " + runtime + ": " + std::strerror(errno));
  AtomicFile file(path, 0777);
  auto pad = [&](Hash &hash) {
    std::string padding(
        (DSOPT_FOOTER_ALIGNMENT - file.position() % DSOPT_FOOTER_ALIGNMENT) % DSOPT_FOOTER_ALIGNMENT, '\0');
    file.append(padding.data(), padding.size());
    hash.add(padding.data(), padding.size());
  };
  dsopt_footer footer{};
  Hash hash;
  readPieces(source.fd, 0, info.st_size, [&](const char *bytes, uint64_t count) {
    file.append(bytes, count);
    hash.add(bytes, count);
  });
  pad(hash);
  footer.runtime = hash.value();
  for (size_t i = 0; i < programs.size(); ++i) {
    Hash own;
    footer.programs[i].offset = file.position();
    footer.programs[i].size = programs[i].size();
    file.append(programs[i].data(), programs[i].size());
    own.add(programs[i].data(), programs[i].size());
    if (i + 1 < programs.size())
      pad(own);
    footer.programs[i].hash = own.value();
  }
  footer.footer = hashOf(footer);
  std::memcpy(footer.magic, DSOPT_FOOTER_MAGIC, sizeof footer.magic);
  footer.version = DSOPT_FOOTER_VERSION;
  file.append(&footer, sizeof footer);
  file.commit();
}

/// A sealed file in memory with the bytes [begin, end) of an executable: a program, and what aligns the next.
static int copyProgram(int executable, uint64_t begin, uint64_t end, uint64_t hash) {
  // What is hashed is what runs, whatever becomes of the file.
  Descriptor memory(sys::memfd("dsopt-program", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  int64_t at = 0;
  bool kept = memory.fd >= 0;
  readPieces(executable, begin, end, [&](const char *bytes, uint64_t count) {
    kept = kept && writeFully(memory.fd, at, bytes, static_cast<int64_t>(count));
    at += static_cast<int64_t>(count);
    if (!kept)
      throw Error(StatusFailure,
                  std::string("the program cannot be kept in memory: ") + std::strerror(errno));
  });
  fcntl(memory.fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  Hash own;
  readPieces(memory.fd, 0, at, [&](const char *bytes, uint64_t count) { own.add(bytes, count); });
  if (own.value() != hash)
    refuseDamaged("the program in it");
  return memory.release();
}

std::vector<int> dsopt::runtime::openEmbedded(int executable) {
  struct stat info;
  if (sys::fstat(executable, &info) != 0)
    throw Error(StatusFailure, std::string("the executable cannot be read: ") + std::strerror(errno));
  dsopt_footer footer;
  if (info.st_size < static_cast<off_t>(sizeof footer))
    return {};
  uint64_t end = info.st_size - sizeof footer;
  readPieces(executable, end, end + sizeof footer,
             [&](const char *bytes, uint64_t count) { std::memcpy(&footer, bytes, count); });
  // One damaged byte leaves the hash or the magic.
  bool magic = std::memcmp(footer.magic, DSOPT_FOOTER_MAGIC, sizeof footer.magic) == 0;
  bool numbers = footer.footer == hashOf(footer);
  if (!magic && !numbers)
    return {};
  size_t count = footer.programs[1].size ? 2 : 1;
  if (!magic || !numbers || footer.version != DSOPT_FOOTER_VERSION || !lieInOrder(footer, count, end))
    refuseDamaged("the footer at its end");
  Hash runtime;
  readPieces(executable, 0, footer.programs[0].offset,
             [&](const char *bytes, uint64_t count) { runtime.add(bytes, count); });
  if (runtime.value() != footer.runtime)
    refuseDamaged("the runtime in it");
  std::vector<Descriptor> programs;
  for (size_t i = 0; i < count; ++i)
    programs.emplace_back(copyProgram(executable, footer.programs[i].offset,
                                      i + 1 < count ? footer.programs[i + 1].offset : end,
                                      footer.programs[i].hash));
  std::vector<int> opened;
  for (Descriptor &program : programs)
    opened.push_back(program.release());
  return opened;
}

//===- Executable.cpp - a program and its runtime in one file -------------===//

#include "dsopt/Runtime/Executable.h"
#include "Descriptor.h"
#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Footer.h"

#include <algorithm>
#include <cerrno>
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
static constexpr size_t kNumbers = 4 * sizeof(uint64_t);

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

void dsopt::runtime::writeExecutable(const std::string &runtime, std::string_view program,
                                     const std::string &path) {
  Descriptor source(sys::open(runtime.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (source.fd < 0 || sys::fstat(source.fd, &info) != 0)
    throw Error(StatusFailure, "cannot read " + runtime + ": " + std::strerror(errno));
  AtomicFile file(path, 0777);
  Hash hash;
  auto add = [&](const char *bytes, uint64_t count) {
    file.append(bytes, count);
    hash.add(bytes, count);
  };
  readPieces(source.fd, 0, info.st_size, add);
  std::string padding(
      (DSOPT_FOOTER_ALIGNMENT - file.position() % DSOPT_FOOTER_ALIGNMENT) % DSOPT_FOOTER_ALIGNMENT, '\0');
  add(padding.data(), padding.size());
  dsopt_footer footer;
  footer.offset = file.position();
  footer.size = program.size();
  footer.runtime = hash.value();
  footer.program = XXH3_64bits(program.data(), program.size());
  footer.footer = hashOf(footer);
  std::memcpy(footer.magic, DSOPT_FOOTER_MAGIC, sizeof footer.magic);
  footer.version = DSOPT_FOOTER_VERSION;
  file.append(program.data(), program.size());
  file.append(&footer, sizeof footer);
  file.commit();
}

int dsopt::runtime::openEmbedded(int executable) {
  struct stat info;
  if (sys::fstat(executable, &info) != 0)
    throw Error(StatusFailure, std::string("the executable cannot be read: ") + std::strerror(errno));
  dsopt_footer footer;
  if (info.st_size < static_cast<off_t>(sizeof footer))
    return -1;
  uint64_t end = info.st_size - sizeof footer;
  readPieces(executable, end, end + sizeof footer,
             [&](const char *bytes, uint64_t count) { std::memcpy(&footer, bytes, count); });
  auto damaged = [](const std::string &what) {
    throw Error(StatusInput,
                "this executable is damaged (" + what + " is not what was written); compile it again");
  };
  // One damaged byte leaves the hash or the magic.
  bool magic = std::memcmp(footer.magic, DSOPT_FOOTER_MAGIC, sizeof footer.magic) == 0;
  bool numbers = footer.footer == hashOf(footer);
  if (!magic && !numbers)
    return -1;
  if (!magic || !numbers || footer.version != DSOPT_FOOTER_VERSION ||
      footer.offset % DSOPT_FOOTER_ALIGNMENT || footer.offset > end || footer.size != end - footer.offset)
    damaged("the footer at its end");
  Hash runtime, program;
  readPieces(executable, 0, footer.offset,
             [&](const char *bytes, uint64_t count) { runtime.add(bytes, count); });
  if (runtime.value() != footer.runtime)
    damaged("the runtime in it");
  // What is hashed is what runs, whatever becomes of the file.
  Descriptor memory(sys::memfd("dsopt-program", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  int64_t at = 0;
  bool kept = memory.fd >= 0;
  readPieces(executable, footer.offset, end, [&](const char *bytes, uint64_t count) {
    kept = kept && writeFully(memory.fd, at, bytes, static_cast<int64_t>(count));
    at += static_cast<int64_t>(count);
    if (!kept)
      throw Error(StatusFailure,
                  std::string("the program cannot be kept in memory: ") + std::strerror(errno));
  });
  fcntl(memory.fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  readPieces(memory.fd, 0, at, [&](const char *bytes, uint64_t count) { program.add(bytes, count); });
  if (program.value() != footer.program)
    damaged("the program in it");
  return memory.release();
}

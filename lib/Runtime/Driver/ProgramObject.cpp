//===- ProgramObject.cpp - loads a program by path or out of the executable ===//

#include "ProgramObject.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Footer.h"
#include "dsopt/Runtime/Mappings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;

namespace {
/// A file descriptor that closes itself.
struct Descriptor {
  int fd;
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
  Descriptor(const Descriptor &) = delete;
};
} // namespace

std::unique_ptr<ProgramObject> ProgramObject::fromExecutable() {
  Descriptor self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  struct stat info;
  dsopt_footer footer;
  if (self.fd < 0 || fstat(self.fd, &info) != 0)
    throw Error(StatusFailure, std::string("/proc/self/exe cannot be read: ") + std::strerror(errno));
  off_t end = info.st_size - static_cast<off_t>(sizeof footer);
  if (end < 0 || pread(self.fd, &footer, sizeof footer, end) != static_cast<ssize_t>(sizeof footer) ||
      std::memcmp(footer.magic, DSOPT_FOOTER_MAGIC, sizeof footer.magic) != 0)
    return nullptr;
  if (footer.version != DSOPT_FOOTER_VERSION || footer.offset % DSOPT_FOOTER_ALIGNMENT ||
      footer.size > static_cast<uint64_t>(end) || footer.offset > static_cast<uint64_t>(end) - footer.size)
    throw Error(StatusInput, "the program at the end of this executable is damaged; compile it again");
  Descriptor memory(memfd_create("dsopt-program", MFD_CLOEXEC));
  if (memory.fd < 0)
    throw Error(StatusFailure, std::string("memfd_create failed: ") + std::strerror(errno));
  off_t from = static_cast<off_t>(footer.offset);
  for (uint64_t left = footer.size; left;) {
    ssize_t copied = sendfile(memory.fd, self.fd, &from, std::min<uint64_t>(left, 1u << 30));
    if (copied <= 0)
      throw Error(StatusFailure,
                  std::string("the program cannot be copied to memory: ") + std::strerror(errno));
    left -= copied;
  }
  auto object = std::make_unique<ProgramObject>();
  object->open("/proc/self/fd/" + std::to_string(memory.fd), "the program at the end of this executable");
  return object;
}

std::unique_ptr<ProgramObject> ProgramObject::fromFile(const std::string &path) {
  if (access(path.c_str(), R_OK) != 0)
    throw Error(StatusInput, path + ": cannot be read: " + std::strerror(errno));
  auto object = std::make_unique<ProgramObject>();
  object->file = path;
  object->open(path.find('/') == std::string::npos ? "./" + path : path, path);
  return object;
}

/// Its pages are read as they are needed: a program that is cut while it runs is named.
static void registerProgram(void *handle, const std::string &path) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
    return;
  struct Search {
    ElfW(Addr) base;
    size_t bytes = 0;
  } search{map->l_addr};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        auto &search = *static_cast<Search *>(data);
        for (int i = 0; info->dlpi_addr == search.base && i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_LOAD)
            search.bytes =
                std::max<size_t>(search.bytes, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
        return 0;
      },
      &search);
  registerMapping(reinterpret_cast<const void *>(search.base), search.bytes, path);
}

void ProgramObject::open(const std::string &path, const std::string &shownAs) {
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    throw Error(StatusInput, shownAs + ": cannot be loaded as a dsopt program: " + (why ? why : "unknown"));
  }
  registerProgram(handle, shownAs);
  auto *text = static_cast<const char *>(symbol("dsopt_program"));
  auto *bytes = static_cast<const uint64_t *>(symbol("dsopt_program_bytes"));
  if (!text || !bytes)
    throw Error(StatusInput, shownAs + ": is not a dsopt program (it has no program table)");
  program = parseProgram(text, *bytes);
  if (program.version != DSOPT_ABI_VERSION)
    throw Error(StatusInput, shownAs + ": has program version " + std::to_string(program.version) +
                                 ", this runtime expects " + std::to_string(DSOPT_ABI_VERSION) +
                                 "; compile it again");
}

void *ProgramObject::symbol(const std::string &name) const { return dlsym(handle, name.c_str()); }

const char *ProgramObject::model() const { return static_cast<const char *>(symbol("dsopt_model")); }

uint64_t ProgramObject::modelBytes() const {
  auto *bytes = static_cast<const uint64_t *>(symbol("dsopt_model_bytes"));
  return bytes ? *bytes : 0;
}

static uint64_t hashFile(const std::string &path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || info.st_size == 0)
    return 0;
  void *bytes = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (bytes == MAP_FAILED)
    return 0;
  uint64_t hash = XXH3_64bits(bytes, info.st_size);
  munmap(bytes, info.st_size);
  return hash;
}

ProgramObject::Identity ProgramObject::identity() const {
  Identity identity;
  identity.table =
      XXH3_64bits(symbol("dsopt_program"), *static_cast<const uint64_t *>(symbol("dsopt_program_bytes")));
  uint64_t files[] = {hashFile("/proc/self/exe"), file.empty() ? 0 : hashFile(file)};
  identity.code = XXH3_64bits(files, sizeof files);
  return identity;
}

//===- ProgramObject.cpp - loads a program by path or out of the executable ===//

#include "ProgramObject.h"
#include "Descriptor.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Executable.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Mappings.h"

#include <cerrno>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;

std::vector<std::unique_ptr<ProgramObject>> ProgramObject::fromExecutable() {
  fault::point("load.program");
  Descriptor self(sys::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (self.fd < 0)
    throw Error(StatusFailure, std::string("/proc/self/exe cannot be read: ") + std::strerror(errno));
  std::vector<Descriptor> files;
  for (int file : openEmbedded(self.fd))
    files.emplace_back(file);
  std::vector<std::unique_ptr<ProgramObject>> objects;
  for (const Descriptor &file : files) {
    auto object = std::make_unique<ProgramObject>();
    object->open("/proc/self/fd/" + std::to_string(file.fd), "the program at the end of this executable");
    objects.push_back(std::move(object));
  }
  return objects;
}

std::unique_ptr<ProgramObject> ProgramObject::fromFile(const std::string &path) {
  fault::point("load.program");
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
  std::string lacks;
  if (!handle) {
    const char *why = dlerror();
    lacks = shownAs + ": cannot be loaded as a dsopt program: " + (why ? why : "unknown");
    // A program of another version may call what this runtime does not have; its table says which it is.
    handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
      throw Error(StatusInput, lacks);
  }
  registerProgram(handle, shownAs);
  auto *text = static_cast<const char *>(symbol("dsopt_program"));
  auto *bytes = static_cast<const uint64_t *>(symbol("dsopt_program_bytes"));
  if (!text || !bytes)
    throw Error(StatusInput, shownAs + ": is not a dsopt program (it has no program table)");
  try {
    program = parseProgram(text, *bytes, actions());
  } catch (const Error &error) {
    throw Error(error.status, shownAs + ": " + error.what());
  }
  if (auto *size = static_cast<const uint64_t *>(symbol("dsopt_texts_bytes")))
    program.texts = {static_cast<const char *>(symbol("dsopt_texts")), *size};
  if (!lacks.empty())
    throw Error(StatusInput, lacks);
}

void *ProgramObject::symbol(const std::string &name) const { return dlsym(handle, name.c_str()); }

std::string_view ProgramObject::actions() const {
  auto *bytes = static_cast<const uint64_t *>(symbol("dsopt_actions_bytes"));
  return {static_cast<const char *>(symbol("dsopt_actions")), bytes ? *bytes : 0};
}

const char *ProgramObject::model() const { return static_cast<const char *>(symbol("dsopt_model")); }

uint64_t ProgramObject::modelBytes() const {
  auto *bytes = static_cast<const uint64_t *>(symbol("dsopt_model_bytes"));
  return bytes ? *bytes : 0;
}

static uint64_t hashFile(const std::string &path) {
  Descriptor file(sys::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (file.fd < 0 || sys::fstat(file.fd, &info) != 0 || info.st_size == 0)
    return 0;
  void *bytes = sys::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (bytes == MAP_FAILED)
    return 0;
  uint64_t hash = XXH3_64bits(bytes, info.st_size);
  sys::munmap(bytes, info.st_size);
  return hash;
}

ProgramObject::Identity ProgramObject::identity() const {
  Identity identity;
  std::string_view later = actions();
  uint64_t tables[] = {
      XXH3_64bits(symbol("dsopt_program"), *static_cast<const uint64_t *>(symbol("dsopt_program_bytes"))),
      XXH3_64bits(later.data(), later.size())};
  identity.table = XXH3_64bits(tables, sizeof tables);
  uint64_t files[] = {hashFile("/proc/self/exe"), file.empty() ? 0 : hashFile(file)};
  identity.code = XXH3_64bits(files, sizeof files);
  return identity;
}

//===- BuildIds.cpp - which libraries this process has --------------------===//

#include "BuildIds.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <elf.h>
#include <link.h>

using namespace llvm;

/// The build ID among the notes of a loaded library; empty if there is none.
static StringRef findBuildId(const dl_phdr_info &library) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const auto &header = library.dlpi_phdr[i];
    if (header.p_type != PT_NOTE)
      continue;
    StringRef notes(reinterpret_cast<const char *>(library.dlpi_addr + header.p_vaddr), header.p_memsz);
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      const auto &note = *reinterpret_cast<const ElfW(Nhdr) *>(notes.data());
      size_t name = alignTo(note.n_namesz, 4), all = sizeof(note) + name + alignTo(note.n_descsz, 4);
      if (all > notes.size())
        break;
      if (note.n_type == NT_GNU_BUILD_ID &&
          notes.substr(sizeof(note), note.n_namesz) == StringRef("GNU\0", 4))
        return notes.substr(sizeof(note) + name, note.n_descsz);
      notes = notes.drop_front(all);
    }
  }
  return "";
}

std::string dsopt::collectBuildIds() {
  std::string ids;
  auto append = [](dl_phdr_info *library, size_t, void *to) {
    StringRef id = findBuildId(*library);
    auto &ids = *static_cast<std::string *>(to);
    ids = id.empty() ? "" : ids + id.str();
    return int(id.empty());
  };
  dl_iterate_phdr(append, &ids);
  return ids;
}

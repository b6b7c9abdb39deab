//===- Link.cpp - objects to shared objects -------------------------------===//
//
// lld runs as a process of its own. What it reads and writes are files in memory:
// it finds the objects as members of one archive.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Target/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace {
/// The linker: of the LLVM that dsopt was built with, else from PATH.
llvm::Expected<std::string> findLinker() {
  for (const char *name : {"ld.lld-22", "ld.lld"}) {
    if (auto found = llvm::sys::findProgramByName(name, {DSOPT_LLVM_TOOLS}))
      return *found;
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  }
  return llvm::createStringError("no linker, expected ld.lld-22 or ld.lld in PATH (Debian's package lld-22)");
}

/// A file in memory, which a process started from here finds under the same name.
class MemoryFile {
public:
  explicit MemoryFile(StringRef content = "") : fd(memfd_create("dsopt-link", 0)) {
    while (fd >= 0 && !content.empty()) {
      ssize_t written = ::write(fd, content.data(), content.size());
      if (written < 0 && errno == EINTR)
        continue;
      if (written <= 0) {
        int error = written < 0 ? errno : ENOSPC;
        close(fd);
        errno = error;
        fd = -1;
        break;
      }
      content = content.drop_front(written);
    }
    error = std::error_code(fd < 0 ? errno : 0, std::generic_category());
  }
  ~MemoryFile() {
    if (fd >= 0)
      close(fd);
  }
  MemoryFile(const MemoryFile &) = delete;

  std::string name() const { return "/proc/self/fd/" + std::to_string(fd); }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> read() const {
    return llvm::MemoryBuffer::getFile(name(), /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                       /*IsVolatile=*/true);
  }

  std::error_code error;

private:
  int fd;
};

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> archive(const dsopt::ObjectBuffers &objects) {
  std::vector<llvm::NewArchiveMember> members;
  std::vector<std::string> names;
  for (size_t index = 0; index < objects.size(); ++index)
    names.push_back(std::to_string(index) + ".o");
  for (auto [object, name] : llvm::zip_equal(objects, names))
    members.emplace_back(llvm::MemoryBufferRef(object->getBuffer(), name));
  return llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
                                    /*Deterministic=*/true, /*Thin=*/false);
}
} // namespace

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> dsopt::linkObjects(const ObjectBuffers &objects,
                                                                       bool relocatable) {
  auto linker = findLinker();
  if (!linker)
    return linker.takeError();
  auto bytes = archive(objects);
  if (!bytes)
    return llvm::createStringError("cannot link: " + llvm::toString(bytes.takeError()));
  MemoryFile input((*bytes)->getBuffer()), output, log;
  for (const MemoryFile *file : {&input, &output, &log})
    if (file->error)
      return llvm::createStringError("cannot link: no file in memory: " + file->error.message());

  // "-" is the standard output.
  std::vector<std::string> arguments = {*linker, "-o", "-"};
  if (relocatable)
    arguments.push_back("-r");
  else
    // What a routine of the runtime throws goes through segments.
    arguments.insert(arguments.end(),
                     {"-shared", "-Bsymbolic", "--build-id=none", "--eh-frame-hdr", "-z", "noexecstack"});
  arguments.insert(arguments.end(), {"--whole-archive", input.name()});
  std::string to = output.name(), said = log.name(), error;
  SmallVector<StringRef> refs(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(to), StringRef(said)};
  int status = llvm::sys::ExecuteAndWait(*linker, refs, std::nullopt, redirects, 0, 0, &error);
  if (status != 0) {
    if (auto text = log.read(); text && error.empty())
      error = (*text)->getBuffer().trim().str();
    // Negative: it could not be started, or a signal ended it.
    return llvm::createStringError("cannot link: " + *linker +
                                   (status < 0
                                        ? " did not come to its end: " + error +
                                              " (is a limit of memory, processes or open files too "
                                              "small? ulimit -a shows them)"
                                        : " ended with status " + std::to_string(status) + ": " + error));
  }
  auto linked = output.read();
  if (!linked)
    return llvm::createStringError("cannot read what " + *linker + " linked: " + linked.getError().message());
  return std::move(*linked);
}

//===- Link.cpp - objects to shared objects and executables ---------------===//
//
// lld runs as a process of its own. Files appear under a temporary name beside
// their place and are renamed when they are complete.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Runtime/Footer.h"
#include "dsopt/Target/Target.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace mlir;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {
/// The linker: of the LLVM that dsopt was built with, else from PATH.
llvm::FailureOr<std::string> findLinker(Location loc) {
  for (const char *name : {"ld.lld-22", "ld.lld"}) {
    if (auto found = llvm::sys::findProgramByName(name, {DSOPT_LLVM_TOOLS}))
      return *found;
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  }
  return emitError(loc) << "no linker, expected ld.lld-22 or ld.lld in PATH (Debian's package lld-22)";
}

/// A new empty file beside `file`.
llvm::FailureOr<std::string> createBeside(Location loc, StringRef file) {
  SmallString<128> name;
  if (std::error_code error = fs::createUniqueFile(file + ".%%%%%%%%", name))
    return emitError(loc) << "cannot write " << file << ": " << error.message();
  return name.str().str();
}

/// Gives a complete file its mode and its name.
LogicalResult publish(Location loc, StringRef temporary, StringRef file, bool executable) {
  std::error_code error = fs::setPermissions(temporary, fs::perms(executable ? 0755 : 0644));
  if (!error)
    error = fs::rename(temporary, file);
  if (error)
    return emitError(loc) << "cannot write " << file << ": " << error.message();
  return success();
}

LogicalResult writeFile(Location loc, StringRef file, ArrayRef<StringRef> pieces) {
  std::error_code error;
  llvm::raw_fd_ostream os(file, error);
  if (!error) {
    for (StringRef piece : pieces)
      os << piece;
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return emitError(loc) << "cannot write " << file << ": " << error.message();
  return success();
}
} // namespace

LogicalResult dsopt::linkObjects(Location loc, const ObjectBuffers &objects, StringRef file,
                                 bool relocatable) {
  auto linker = findLinker(loc);
  if (failed(linker))
    return failure();
  auto output = createBeside(loc, file);
  if (failed(output))
    return failure();
  llvm::scope_exit removeOutput([&] { fs::remove(*output); });
  SmallString<128> folder;
  if (std::error_code error = fs::createUniqueDirectory("dsopt", folder))
    return emitError(loc) << "cannot create a temporary folder: " << error.message();
  llvm::scope_exit removeFolder([&] { fs::remove_directories(folder); });

  std::vector<std::string> arguments = {*linker, "-o", *output};
  if (relocatable)
    arguments.push_back("-r");
  else
    arguments.insert(arguments.end(), {"-shared", "-Bsymbolic", "--build-id=none", "-z", "noexecstack"});
  for (auto [index, object] : llvm::enumerate(objects)) {
    SmallString<128> name(folder);
    path::append(name, std::to_string(index) + ".o");
    if (failed(writeFile(loc, name, object->getBuffer())))
      return failure();
    arguments.push_back(name.str().str());
  }

  SmallString<128> log(folder);
  path::append(log, "log");
  SmallVector<StringRef> refs(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log), StringRef(log)};
  std::string error;
  int status = llvm::sys::ExecuteAndWait(*linker, refs, std::nullopt, redirects, 0, 0, &error);
  if (status != 0) {
    if (auto text = llvm::MemoryBuffer::getFile(log); text && error.empty())
      error = (*text)->getBuffer().trim().str();
    return emitError(loc) << "cannot link " << file << ": " << *linker << " ended with status " << status
                          << ": " << error;
  }
  return publish(loc, *output, file, /*executable=*/!relocatable);
}

LogicalResult dsopt::writeExecutable(Location loc, StringRef runtime, StringRef sharedObject,
                                     StringRef file) {
  auto read = [&](StringRef name) -> std::unique_ptr<llvm::MemoryBuffer> {
    auto buffer = llvm::MemoryBuffer::getFile(name, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!buffer) {
      emitError(loc) << "cannot read " << name << ": " << buffer.getError().message();
      return nullptr;
    }
    return std::move(*buffer);
  };
  auto program = read(runtime);
  auto object = program ? read(sharedObject) : nullptr;
  if (!object)
    return failure();
  dsopt_footer footer;
  footer.offset = llvm::alignTo(program->getBufferSize(), DSOPT_FOOTER_ALIGNMENT);
  footer.size = object->getBufferSize();
  std::memcpy(footer.magic, DSOPT_FOOTER_MAGIC, sizeof(footer.magic));
  footer.version = DSOPT_FOOTER_VERSION;
  std::string padding(footer.offset - program->getBufferSize(), '\0');

  auto output = createBeside(loc, file);
  if (failed(output))
    return failure();
  llvm::scope_exit removeOutput([&] { fs::remove(*output); });
  if (failed(writeFile(loc, *output,
                       {program->getBuffer(), padding, object->getBuffer(),
                        StringRef(reinterpret_cast<const char *>(&footer), sizeof(footer))})))
    return failure();
  return publish(loc, *output, file, /*executable=*/true);
}

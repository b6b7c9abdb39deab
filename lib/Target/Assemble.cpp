//===- Assemble.cpp - PTX to a cubin by NVIDIA's ptxas --------------------===//
//
// It is a program that reads a file and writes one: they are in a folder of their own, which goes with what
// is in it.
//
//===----------------------------------------------------------------------===//

#include "Assemble.h"
#include "ObjectCache.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace llvm;
using namespace dsopt;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// The first `FOLDER/*/REST` that can be run.
static std::string findBelow(const Twine &folder, StringRef rest) {
  std::error_code error;
  SmallVector<std::string> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (std::string file = it->path() + "/" + rest.str(); fs::can_execute(file))
      found.push_back(file);
  sort(found);
  return found.empty() ? "" : found.front();
}

std::string dsopt::findAssembler(StringRef folder) {
  if (const char *given = std::getenv("DSOPT_PTXAS"))
    return StringRef(given) == "off" ? "" : given;
  if (auto found = sys::findProgramByName("ptxas"))
    return *found;
  if (fs::can_execute("/usr/local/cuda/bin/ptxas"))
    return "/usr/local/cuda/bin/ptxas";
  // VENV/lib/pythonX.Y/site-packages/nvidia/cuXY/bin/ptxas
  std::error_code error;
  for (fs::directory_iterator it(folder + "/../venv/lib", error), end; !error && it != end;
       it.increment(error))
    if (std::string file = findBelow(it->path() + "/site-packages/nvidia", "bin/ptxas"); !file.empty())
      return file;
  return "";
}

/// The number that stands before `unit` in a line, 0 if there is none.
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at).rtrim();
  int64_t number = 0;
  (void)before.drop_front(before.find_last_of(" ,") + 1).getAsInteger(10, number);
  return number;
}

static void readFigures(StringRef said, Assembled &made) {
  made.said = said;
  for (StringRef line : llvm::split(said, '\n')) {
    made.registers = std::max(made.registers, numberBefore(line, " registers"));
    made.shared = std::max(made.shared, numberBefore(line, " bytes smem"));
    made.spills += numberBefore(line, " bytes spill stores");
  }
}

static std::string readFile(const Twine &name) {
  auto buffer = MemoryBuffer::getFile(name, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

Assembled dsopt::assemble(StringRef assembler, StringRef ptx, TargetAttr target,
                          const ObjectOptions &options) {
  Assembled made;
  // Kept: what it said, a zero, the cubin. Other versions of ptxas are other files, or of other sizes.
  fs::file_status status;
  (void)fs::status(assembler, status);
  std::string what = assembler.str() + " " + std::to_string(status.getSize()) + "\n" + ptx.str();
  ObjectCache cache(options.cache, options.cacheBytes);
  std::string key = ObjectCache::key({what.data(), what.size()}, target, options.optLevel);
  if (auto known = cache.find(key)) {
    auto [said, cubin] = known->getBuffer().split('\0');
    readFigures(said, made);
    made.cubin = cubin;
    return made;
  }
  SmallString<128> folder;
  if (std::error_code error = fs::createUniqueDirectory("dsopt-ptxas", folder)) {
    made.error = "no folder for it can be made: " + error.message();
    return made;
  }
  scope_exit remove([&] { fs::remove_directories(folder); });
  std::string input = (folder + "/kernels.ptx").str(), output = (folder + "/kernels.cubin").str(),
              log = (folder + "/log").str();
  {
    std::error_code error;
    raw_fd_ostream os(input, error);
    os << ptx;
    os.close();
    if (error || os.has_error()) {
      made.error = input + ": cannot be written";
      os.clear_error();
      return made;
    }
  }
  std::string arch = ("-arch=" + target.getArch()).str();
  StringRef arguments[] = {assembler, arch, "-v", "-O3", input, "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  std::string problem;
  int ended = sys::ExecuteAndWait(assembler, arguments, std::nullopt, redirects, 0, 0, &problem);
  std::string said = readFile(log);
  if (ended) {
    made.error = assembler.str() + " ended with status " + std::to_string(ended) + ": " +
                 (problem.empty() ? StringRef(said).take_front(400).rtrim().str() : problem);
    return made;
  }
  made.cubin = readFile(output);
  readFigures(said, made);
  cache.store(key, said + std::string(1, '\0') + made.cubin);
  return made;
}

//===- Draft.cpp - checkpoints that appear and go as wholes ---------------===//

#include "FolderNames.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/SaveFolder.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>

using namespace dsopt::runtime;
namespace fs = std::filesystem;

[[noreturn]] static void failed(const std::string &path, const char *what) {
  throw Error(StatusFailure, path + ": " + what + ": " + std::strerror(errno));
}

bool dsopt::runtime::removeCheckpoint(const std::string &path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename());
  if (error) {
    errno = error.value();
    return false;
  }
  // As long as there is a manifest or the mark of a draft, the rest is known to be ours.
  auto rank = [](const std::string &name) {
    bool isData = name.size() > 12 && name.compare(name.size() - 12, 12, ".safetensors") == 0;
    bool isManifest = name.rfind("manifest.json", 0) == 0;
    return isData ? 1 : isManifest ? 2 : name == "draft" ? 3 : 0;
  };
  std::sort(names.begin(), names.end(), [&](auto &a, auto &b) { return rank(a) < rank(b); });
  for (const std::string &name : names)
    if (rank(name) > 0 && sys::unlink((path + "/" + name).c_str()) != 0 && errno != ENOENT)
      return false;
  return sys::rmdir(path.c_str()) == 0;
}

Draft::Draft(const std::string &target, const std::string &run, bool isMine)
    : target(target), path(target + ".tmp"), isMine(isMine) {
  if (!isMine)
    return;
  // One that an earlier save of this run could not remove.
  if (exists(path + "/draft"))
    removeCheckpoint(path);
  if (sys::mkdir(path.c_str()) != 0)
    failed(path,
           errno == EEXIST ? "is in the way and no draft of a checkpoint, move it away" : "cannot be made");
  std::string mark = path + "/draft";
  int file = sys::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
  bool written = file >= 0 && sys::write(file, run.data(), run.size()) >= 0;
  int error = errno;
  if (file >= 0)
    sys::close(file);
  if (!written) {
    removeCheckpoint(path);
    errno = error;
    failed(mark, "writing failed");
  }
}

Draft::~Draft() {
  // What cannot be removed here is when the next run starts.
  if (isMine && !done)
    removeCheckpoint(path);
}

void Draft::commit() {
  std::string parent = fs::path(target).parent_path();
  syncNames(path);
  fault::point("save.exchange");
  std::string replaced = path;
  bool replaces = exists(target), exchanged = replaces && sys::exchange(path.c_str(), target.c_str()) == 0;
  if (replaces && !exchanged) {
    if (errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP)
      failed(target, "cannot be put in place");
    replaced = target + ".old";
    renamePath(target, replaced);
  }
  if (!exchanged && sys::rename(path.c_str(), target.c_str()) != 0) {
    int error = errno;
    if (replaces)
      renamePath(replaced, target);
    errno = error;
    failed(target, "cannot be put in place");
  }
  done = true;
  fault::point("save.rename");
  syncNames(parent);
  if (sys::unlink((target + "/draft").c_str()) != 0)
    failed(target + "/draft", "cannot be removed");
  // What is no part of a checkpoint stays under that name.
  if (replaces && !removeCheckpoint(replaced) && errno != ENOTEMPTY && errno != EEXIST)
    failed(replaced, "cannot be removed");
}

//===- RecoverFolder.cpp - what killed runs left among checkpoints --------===//

#include "FolderNames.h"
#include "dsopt/Runtime/SaveFolder.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

using namespace dsopt::runtime;
namespace fs = std::filesystem;

/// Whether it is a checkpoint whose files are all there. An Error if that cannot be known: what a disk does
/// not give now may be whole.
static bool isComplete(const std::string &path) {
  try {
    inspectCheckpoint(path);
    return true;
  } catch (const Unreadable &error) {
    if (error.status != StatusInput)
      throw;
    return false;
  }
}

static bool isCheckpoint(const std::string &name) {
  return checkpointStep(name) >= 0 || name == kBestCheckpoint;
}

/// "step-00000008" of "step-00000008.tmp" and ending ".tmp", empty for other names.
static std::string stepBefore(const std::string &name, const std::string &ending) {
  size_t length = name.size() - std::min(name.size(), ending.size());
  bool ends = name.compare(length, ending.size(), ending) == 0;
  return ends && isCheckpoint(name.substr(0, length)) ? name.substr(0, length) : "";
}

// Draft::commit and prune in all their moments.
void SaveFolder::recover(std::vector<std::string> &said) {
  auto at = [&](const std::string &name) { return folder + "/" + name; };
  auto removed = [&](const std::string &path, bool success) {
    if (!success)
      said.push_back(path + ": cannot be removed: " + std::strerror(errno));
  };
  std::vector<std::string> rests; // of what was replaced
  for (const std::string &name : namesIn(folder)) {
    std::string path = at(name), step = stepBefore(name, ".tmp");
    if (step.empty() || fs::is_symlink(path))
      continue;
    bool marked = exists(path + "/draft");
    if (!marked && !exists(path + "/manifest.json")) {
      // Nothing says that it is ours, unless there is nothing in it.
      if (sys::rmdir(path.c_str()) != 0)
        said.push_back(path + " is no draft of a checkpoint and stays as it is");
      continue;
    }
    // A whole draft is newer than what it was to replace; without its mark it was replaced, or pruned.
    if (!isComplete(path) || (!marked && isComplete(at(step)))) {
      removed(path, removeCheckpoint(path));
      continue;
    }
    if (exists(at(step))) {
      if (sys::exchange(path.c_str(), at(step).c_str()) == 0)
        rests.push_back(path);
      else
        renamePath(at(step), at(step) + ".old");
    }
    if (!exists(at(step)))
      renamePath(path, at(step));
    said.push_back(at(step) + " was complete but for its name, and has it now");
  }
  for (const std::string &name : namesIn(folder)) {
    std::string path = at(name), step = stepBefore(name, ".old");
    if (step.empty() || fs::is_symlink(path))
      continue;
    if (!exists(path + "/manifest.json")) {
      sys::rmdir(path.c_str()); // what was replaced is gone but for its folder, or it is somebody's
      continue;
    }
    if (exists(at(step))) {
      rests.push_back(path);
      continue;
    }
    renamePath(path, at(step));
    said.push_back(at(step) + " has its name again");
  }
  // Their files may go before the names last: what replaced them is whole under either.
  for (const std::string &path : rests)
    removed(path, removeCheckpoint(path));
  for (const std::string &name : namesIn(folder)) {
    bool isShared = name.size() == 7 + 32 && name.rfind("shared-", 0) == 0 &&
                    name.find_first_not_of("0123456789abcdef", 7) == std::string::npos;
    std::string left = isShared ? at(name) : at(name) + "/draft";
    if (isShared || (isCheckpoint(name) && exists(left)))
      removed(left, sys::unlink(left.c_str()) == 0);
  }
}

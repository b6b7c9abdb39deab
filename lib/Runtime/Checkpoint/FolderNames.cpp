//===- FolderNames.cpp - names in a folder of checkpoints -----------------===//

#include "FolderNames.h"
#include "dsopt/Runtime/SaveFolder.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

using namespace dsopt::runtime;
namespace fs = std::filesystem;

bool dsopt::runtime::exists(const std::string &path) {
  struct stat info;
  if (sys::stat(path.c_str(), &info) == 0)
    return true;
  if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
    throw Error(readStatus(errno), path + ": cannot be read: " + std::strerror(errno));
  return false;
}

void dsopt::runtime::syncNames(const std::string &folder) {
  if (sys::syncFolder(folder.c_str()) != 0 && errno != EINVAL)
    throw Error(StatusFailure, folder + ": cannot be written to disk: " + std::strerror(errno));
}

void dsopt::runtime::renamePath(const std::string &from, const std::string &to) {
  if (sys::rename(from.c_str(), to.c_str()) != 0)
    throw Error(StatusFailure, from + ": cannot be renamed to " + to + ": " + std::strerror(errno));
}

std::string dsopt::runtime::checkpointName(int64_t step) {
  char text[40];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

int64_t dsopt::runtime::checkpointStep(const std::string &path) {
  std::string name = fs::path(path).filename();
  // 18 digits are less than 2^63.
  if (name.rfind("step-", 0) != 0 || name.size() < 6 || name.size() > 5 + 18 ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return -1;
  return std::stoll(name.substr(5));
}

std::vector<std::string> dsopt::runtime::namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename());
  if (error && error.value() != ENOENT && error.value() != ENOTDIR)
    throw Error(readStatus(error.value()), folder + ": cannot be listed: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> dsopt::runtime::listCheckpoints(const std::string &folder) {
  std::vector<std::string> found;
  for (const std::string &name : namesIn(folder))
    if (checkpointStep(name) >= 0 && exists(folder + "/" + name + "/manifest.json"))
      found.push_back(folder + "/" + name);
  auto order = [](const std::string &path) { return std::make_pair(checkpointStep(path), path); };
  std::sort(found.begin(), found.end(), [&](auto &a, auto &b) { return order(a) < order(b); });
  return found;
}

std::vector<std::string> dsopt::runtime::findCheckpoints(const std::string &given) {
  if (!given.empty() && exists(given + "/manifest.json"))
    return {given};
  return listCheckpoints(given);
}

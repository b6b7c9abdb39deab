//===- SaveFolder.cpp - a folder of checkpoints ---------------------------===//

#include "dsopt/Runtime/SaveFolder.h"
#include "FolderNames.h"
#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace dsopt::runtime;
namespace fs = std::filesystem;

/// Makes a folder and those above it, each on disk before the next.
static void makeFolders(const fs::path &path) {
  if (path.empty() || exists(path))
    return;
  makeFolders(path.parent_path());
  if (sys::mkdir(path.c_str()) != 0 && errno != EEXIST)
    throw Error(statusOfCreating(errno), path.string() + ": " + std::strerror(errno));
  syncNames(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

SaveFolder::SaveFolder(std::string path, std::vector<std::string> &said, double patience)
    : folder(std::move(path)) {
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  std::string why;
  int status = StatusInput;
  try {
    makeFolders(folder);
  } catch (const Error &error) {
    status = error.status;
    why = std::string(": ") + error.what();
  }
  std::error_code ignored;
  if (why.empty() && !fs::is_directory(folder, ignored))
    why = std::string(": ") + std::strerror(ENOTDIR);
  else if (why.empty() && access(folder.c_str(), W_OK | X_OK) != 0)
    why = std::string(": ") + std::strerror(errno);
  if (!why.empty())
    throw Error(status, "option -save: cannot write into the folder " + folder + why);
  lock(patience, said);
  try {
    recover(said);
  } catch (...) {
    sys::unlink((folder + "/lock").c_str());
    sys::close(lockFile);
    throw;
  }
}

SaveFolder::~SaveFolder() {
  if (lockFile < 0)
    return;
  // Whoever opened it meanwhile sees that the name is gone, and makes it anew.
  sys::unlink((folder + "/lock").c_str());
  sys::close(lockFile);
}

void SaveFolder::lock(double patience, std::vector<std::string> &said) {
  std::string path = folder + "/lock";
  auto until = sys::now() + std::chrono::duration<double>(patience);
  while (true) {
    int file = sys::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
      throw Error(statusOfCreating(errno), "option -save: cannot write into the folder " + folder + ": " +
                                               path + ": " + std::strerror(errno));
    if (sys::flock(file, LOCK_EX | LOCK_NB) == 0) {
      struct stat mine{}, named{};
      if (sys::fstat(file, &mine) == 0 && sys::stat(path.c_str(), &named) == 0 &&
          mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
        lockFile = file;
        char host[256] = "";
        gethostname(host, sizeof host - 1);
        std::string text = "process " + std::to_string(getpid()) + " on " + host + "\n";
        // Only for the message of who finds it locked.
        if (sys::ftruncate(file, 0) != 0 || sys::pwrite(file, text.data(), text.size(), 0) < 0)
          said.push_back(path + ": cannot be written: " + std::strerror(errno));
        return;
      }
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      said.push_back("the folder " + folder + " cannot be locked (" + std::strerror(errno) +
                     "): see to it that no other run saves there");
      sys::close(file);
      return;
    } else if (sys::now() >= until) {
      char holder[300] = "";
      ssize_t got = sys::pread(file, holder, sizeof holder - 1, 0);
      std::string who(holder, std::max<ssize_t>(got, 0));
      sys::close(file);
      throw Error(StatusInput, "option -save: another run saves into " + folder +
                                   (who.empty() ? "" : " (" + who.substr(0, who.find('\n')) + ")") +
                                   ": wait for its end, or choose another folder");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    sys::close(file);
  }
}

std::vector<std::string> SaveFolder::strangers(const Lineage &mine, int64_t after,
                                               const std::vector<std::string> &leftOut) {
  struct Entry {
    std::string path;
    int64_t step;
    std::optional<Lineage> lineage; ///< none: it cannot be read
  };
  std::vector<Entry> entries;
  std::map<std::string, Lineage> lineages; // by run
  for (const std::string &path : listCheckpoints(folder)) {
    if (std::find(leftOut.begin(), leftOut.end(), path) != leftOut.end())
      continue;
    Entry entry{path, checkpointStep(path), std::nullopt};
    try {
      Manifest manifest = readManifest(path);
      entry.lineage = manifest.lineage;
      lineages[manifest.lineage.run] = manifest.lineage;
    } catch (const Error &) {
    }
    entries.push_back(entry);
  }
  // Up to which step each run belongs to the line: this one's, its parent's up to where it was left, ...
  std::map<std::string, int64_t> belongs{{mine.run, INT64_MAX}};
  for (Lineage at = mine; at.parentStep >= 0;) {
    if (!belongs.emplace(at.parent, at.parentStep).second)
      break;
    auto found = lineages.find(at.parent);
    if (found == lineages.end())
      break;
    at = found->second;
  }
  line.clear();
  std::vector<std::string> others;
  for (const Entry &entry : entries) {
    auto known = entry.lineage ? belongs.find(entry.lineage->run) : belongs.end();
    if (known != belongs.end() && entry.step <= known->second)
      line.push_back(entry.step);
    else if (entry.step > after)
      others.push_back(entry.path);
  }
  return others;
}

std::string SaveFolder::enter(const Lineage &mine, int64_t after, const std::vector<std::string> &leftOut,
                              bool aside) {
  std::vector<std::string> others = strangers(mine, after, leftOut);
  if (others.empty())
    return "";
  auto nameOf = [](const std::string &path) { return path.substr(path.rfind('/') + 1); };
  std::string which = nameOf(others.front());
  if (others.size() > 1)
    which += (others.size() > 2 ? " to " : " and ") + nameOf(others.back());
  bool fresh = mine.parentStep < 0;
  if (!aside)
    throw Error(StatusInput, "option -save: " + folder + " holds " + which + " of another run" +
                                 (fresh ? ", this one starts from nothing: -resume=auto goes on from there"
                                        : ", this one goes on from step " + std::to_string(mine.parentStep) +
                                              ": -resume=auto goes on from the newest") +
                                 ", -save-existing=aside gives them other names, or choose another folder");
  for (const std::string &path : others) {
    std::string identity = "unreadable";
    try {
      identity = readManifest(path).identity;
    } catch (const Error &) {
    }
    renamePath(path, path + "." + identity);
  }
  return "set aside " + which + " of another run in " + folder + ": they are called " +
         nameOf(others.front()) + ".HASH now, and -resume takes them by that name";
}

void SaveFolder::wrote(int64_t step) {
  line.erase(std::remove(line.begin(), line.end(), step), line.end());
  line.push_back(step);
}

std::string SaveFolder::prune(int64_t keep) {
  std::string trouble;
  keep = std::max<int64_t>(keep, 1);
  while (static_cast<int64_t>(line.size()) > keep) {
    std::string path = folder + "/" + checkpointName(line.front());
    line.erase(line.begin());
    fault::point("save.prune");
    // Under another name, on disk before its files go, it is no checkpoint any more, should this be cut
    // short.
    std::string gone = path + ".tmp";
    if ((sys::rename(path.c_str(), gone.c_str()) != 0 || sys::syncFolder(folder.c_str()) != 0 ||
         !removeCheckpoint(gone)) &&
        errno != ENOENT)
      trouble = path + ": cannot be removed: " + std::strerror(errno);
  }
  return trouble;
}

//===- SaveFolder.h - a folder of checkpoints -------------------*- C++ -*-===//
//
// What lies in the folder of -save, besides what is somebody else's:
//
//   step-00001000        a checkpoint
//   step-00001000.tmp    a draft, one that was replaced, or one that is being removed
//   step-00001000.old    one that was replaced where names cannot be exchanged
//   step-00001000.HASH   one that was set aside (-save-existing=aside)
//   best                 the checkpoint of the best evaluation (-keep-best), which is never removed
//   best.json            its metric, value and step
//   lock                 while a run saves there
//   shared-RUN           while the ranks of a run see whether they share the folder
//
// A draft holds a file `draft` until it has its name, so that a killed run's drafts,
// which are completed or removed when the next one starts, are told from others'.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_SAVEFOLDER_H
#define DSOPT_RUNTIME_SAVEFOLDER_H

#include "dsopt/Runtime/Manifest.h"

#include <memory>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// "step-00001000".
std::string checkpointName(int64_t step);
/// The checkpoint of the best evaluation.
inline constexpr char kBestCheckpoint[] = "best";
/// The step of a path whose last part is such a name; -1 for others.
int64_t checkpointStep(const std::string &path);

/// What looks like a checkpoint (it has a manifest.json) in a folder, oldest first; none where there is no
/// such folder.
std::vector<std::string> listCheckpoints(const std::string &folder);

/// What `-resume=given` may mean: `given` itself, or those in it, oldest first.
std::vector<std::string> findCheckpoints(const std::string &given);

/// Removes the files of a checkpoint or draft, its manifest last, then the folder. False, with errno, if
/// something could not be removed or does not belong to a checkpoint.
bool removeCheckpoint(const std::string &path);

/// A folder that becomes a checkpoint; removed unless it does. Only rank 0's does anything.
class Draft {
public:
  Draft(const std::string &target, const std::string &run, bool isMine);
  ~Draft();
  Draft(const Draft &) = delete;
  /// Folder to disk, then its name, in exchange for what had it; that is removed.
  void commit();
  const std::string target, path;

private:
  bool isMine, done = false;
};

/// The folder of -save, made, locked and put right as long as this lives.
class SaveFolder {
public:
  /// Errors of status 1 if it cannot be written into, or if another run saves there; `patience` is for
  /// one that is about to end. What was done to it, and what the user should know, goes to `said`.
  SaveFolder(std::string path, std::vector<std::string> &said, double patience = 5);
  ~SaveFolder();
  SaveFolder(const SaveFolder &) = delete;
  const std::string &path() const { return folder; }

  /// Puts right what runs that were killed left: completes, puts back or removes drafts and what was
  /// replaced.
  void recover(std::vector<std::string> &said);

  /// Before the first save of a run: checkpoints of steps after `after` that are not of this run's line, but
  /// for those it could not read, are an Error of status 1, or with `aside` get other names. Returns what was
  /// done, empty if nothing.
  std::string enter(const Lineage &mine, int64_t after, const std::vector<std::string> &leftOut, bool aside);

  /// This run has written the checkpoint of `step`.
  void wrote(int64_t step);
  /// Removes the oldest of this run's line until `keep` are left, at least the last. Returns what went
  /// wrong, empty if nothing.
  std::string prune(int64_t keep);

private:
  void lock(double patience, std::vector<std::string> &said);
  std::vector<std::string> strangers(const Lineage &mine, int64_t after,
                                     const std::vector<std::string> &leftOut);
  std::string folder;
  int lockFile = -1;
  std::vector<int64_t> line; ///< steps of this run's line, in order
};

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_SAVEFOLDER_H

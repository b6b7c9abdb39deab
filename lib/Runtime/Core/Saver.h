//===- Saver.h - the saves of a rank ----------------------------*- C++ -*-===//
//
// A save in its parts, so that steps can go on between them (AsyncSave.h): what ranks
// do together, what each writes of its own, and the checkpoint's name.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_SAVER_H
#define DSOPT_LIB_RUNTIME_CORE_SAVER_H

#include "Core/Replaced.h"
#include "Core/SavedState.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/SaveFolder.h"

namespace dsopt::runtime {

/// Bytes [begin, end) of a file, a part of one hashed chunk, which this rank has in memory. It writes
/// [writtenBegin, writtenEnd) of them alone, and hashes them where they are the whole chunk.
struct SavedPiece {
  size_t segment = 0;
  int64_t begin = 0, end = 0, writtenBegin = 0, writtenEnd = 0;
  bool hashed = false;
  const char *address = nullptr;
};

/// What is the same in all saves of a rank. The references outlive it.
struct SavePlan {
  /// `hasPending`: gradients wait for their update.
  SavePlan(const Program &program, const RankInfo &info, const Addresses &addresses, bool hasPending = false,
           bool hasErrors = false, bool isApart = false);

  const Program &program;
  const RankInfo &info;
  const Addresses &addresses;
  SavedTensors saved;
  std::map<std::string, std::string> headers; ///< by file
  std::vector<Segment> segments;
  std::vector<SharedRange> units, chunks;
  std::vector<SavedPiece> pieces; ///< all of this rank's but what is shared

  /// Where this rank has byte `at` of the file, in one of its segments.
  char *addressOf(const Segment &segment, int64_t at) const;
};

/// One save of one rank. An Error of status 2 leaves nothing.
class Saver {
public:
  /// The lineage is rank 0's. `replaced` are saved as they are when it begins.
  Saver(const SavePlan &plan, Engine &engine, const std::string &checkpoint, Manifest manifest,
        const Replaced &replaced);
  ~Saver();
  Saver(const Saver &) = delete;

  /// Collective: makes the files; writes and hashes what several ranks have parts of.
  void begin();
  /// Writes and hashes one of the plan's pieces, which lies at `bytes`. This and `finish` may be called by
  /// another thread than the others.
  void write(const SavedPiece &piece, const char *bytes);
  /// All are written: to disk.
  void finish();
  /// Collective: the manifest gets all ranks' hashes. What each has written is on disk.
  void agree();
  /// Rank 0 gives the checkpoint its name; by any thread.
  void commit();

private:
  class Files;
  /// A hash and which it is.
  struct Hash {
    int64_t tensor = -1, chunk = 0;
    uint64_t value = 0;
  };
  const std::string &fileOf(const Segment &segment) const;
  /// The bytes of a range at its owner, null elsewhere. Ranks come to all ranges in one order, so that each
  /// message finds its receiver.
  const char *bringTogether(const SharedRange &range);
  /// Those of rank 0, which reads them from where they come from.
  void writeReplaced();

  const SavePlan &plan;
  Engine &engine;
  Manifest manifest;
  const Replaced &replaced;
  std::vector<Parameter> beside; ///< those, with their hashes
  bool isFirst;
  Draft draft;
  std::unique_ptr<Files> files;
  std::vector<Hash> hashes; ///< of what this rank has alone or owns
  std::vector<char> together;
  uint64_t tag = 0;
};

/// Collective: writes the state to the new folder `checkpoint` and completes the manifest, whose facts are
/// given. The folder appears under its name when all of it is on disk.
void saveState(const SavePlan &plan, Engine &engine, const std::string &checkpoint, const Manifest &manifest,
               const Replaced &replaced = {});

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_SAVER_H

//===- SavedState.h - a run's state to and from a checkpoint ----*- C++ -*-===//
//
// Every rank writes its part of whole tensors into the same files, and reads its
// part of them, whatever layout wrote them. Files: Manifest.h.
//
// Ranks of different hosts write no byte of one unit of a file (a page, or what a
// file server takes for one): where the parts of two ranks meet in a unit, the one
// that has its first byte gets the rest from the others and writes it. So it is with
// hashes: what has one hash is brought together in memory, nothing is read back.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_SAVEDSTATE_H
#define DSOPT_LIB_RUNTIME_CORE_SAVEDSTATE_H

#include "Core/Addresses.h"
#include "Core/Parameters.h"
#include "Core/ThreadPool.h"
#include "dsopt/Runtime/Manifest.h"

namespace dsopt::runtime {

/// When the sizes and hashes of a checkpoint were taken, for messages.
inline constexpr const char *kCheckpointMoment = "the checkpoint was written";

/// Bytes of a file that one rank writes.
inline constexpr int64_t kWrittenBytes = 64 << 10;

/// A tensor of a checkpoint, or a part of one, as the ranks of a position have it: whole or sliced, in a
/// bucket.
struct HeldTensor {
  const Parameter *parameter = nullptr; ///< itself, or whose optimizer state it is
  Part part;                            ///< of the parameter
  int64_t position = 0;
  Ref buffer;
  bool sliced = false, isState = false;
  bool isOfParameter = false; ///< numbers of the whole parameter, of which `part` says how many and where
  int64_t dpRank = -1;        ///< that alone has it; -1: all have it, or a slice each
  int64_t writer = -1;        ///< of what ranks have alike that need it: the one that writes it
  size_t tensor = 0;          ///< that it is a part of
};

/// The tensors of a checkpoint of a program: parameters under their names, then each one's optimizer state
/// ("w.m", or of its rows "w.row_var"; each rank's own where they are apart, "w.m.0"), where gradients wait
/// for their update these
/// ("w.pending"), and what a compressed exchange left out, of each worker ("w.worker_error.0") and of the
/// servers' slices ("w.server_error"), or goes on from ("w.factor": columns, one after the other).
struct SavedTensors {
  explicit SavedTensors(const Program &program, bool hasPending = false, bool hasErrors = false,
                        bool isApart = false);
  bool hasPending, hasErrors, isApart;
  std::vector<Parameter> tensors; ///< without places in files, until layOut
  std::vector<HeldTensor> held;   ///< their parts, in order
  size_t parameters = 0;          ///< how many of them are, the first ones

  /// Gives them places in files, parameters and state apart, of some GiB each. Returns the files' headers.
  std::map<std::string, std::string> layOut();

private:
  void order();
};

inline constexpr const char *kWorkerError = "worker_error", *kServerError = "server_error",
                            *kFactor = "factor";
/// Whether applied steps have left errors: all where gradients are compressed, or those behind the
/// optimizer's freeze; some where steps are of several kinds.
inline bool leavesErrors(const Program &program, int64_t applied) {
  return program.local_policy.local_step_clipper > 0 || program.compress_gradients != "none" ||
         (program.freeze_step > 0 && applied > program.freeze_step);
}

/// Bytes [begin, end) of a file, which `rank` has in memory: a part of a tensor.
struct Segment {
  size_t tensor = 0;
  int64_t begin = 0, end = 0;
  int rank = 0;
  size_t held = 0;     ///< the part among SavedTensors::held
  int64_t element = 0; ///< of the part, that `begin` is
};

/// All parts of all tensors that were laid out, in the order of the files. Linear in tensors, ranks and runs
/// of shards.
std::vector<Segment> segmentsOf(const Program &program, const SavedTensors &saved);

/// Bytes [begin, end) of a file that several ranks have parts of, or one in several buffers, in segments
/// [first, last). `owner` brings them together.
struct SharedRange {
  size_t first = 0, last = 0;
  int64_t begin = 0, end = 0;
  int owner = 0;
};
/// The units of files that several ranks have parts of; headers are rank 0's. And the hashed chunks.
std::vector<SharedRange> sharedUnits(const SavedTensors &saved, const std::vector<Segment> &segments);
std::vector<SharedRange> sharedChunks(const SavedTensors &saved, const std::vector<Segment> &segments);

/// Of each segment, the bytes of the file that its rank writes without the others: what is in no shared unit.
std::vector<std::pair<int64_t, int64_t>> writtenAlone(const std::vector<Segment> &segments,
                                                      const std::vector<SharedRange> &units);

/// The ranks that rank `rank` hands state to or takes it from in saves, with gradients that wait and without:
/// each names this one as well.
std::vector<int> savePeers(const Program &program, int rank);

/// Reads this rank's state; an Error of status 1 if the checkpoint is of another model or optimizer, an
/// Unreadable if it is damaged where this rank reads it. Parameters that no checkpoint has come from `model`.
/// Errors of another number of workers are an Error, or with `newBatch` their mean is each worker's.
void loadState(const Program &program, const RankInfo &info, const Addresses &addresses, ThreadPool *pool,
               const std::string &checkpoint, const Manifest &manifest,
               const std::function<std::unique_ptr<ParameterValues>()> &model, bool newBatch = false);

/// Reads all of a checkpoint; an Unreadable says what is wrong with it.
void verifyState(const std::string &checkpoint, const Manifest &manifest, ThreadPool *pool);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_SAVEDSTATE_H

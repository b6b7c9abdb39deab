//===- Manifest.h - what a checkpoint holds ---------------------*- C++ -*-===//
//
// A checkpoint is a folder step-00001000: safetensors files of whole tensors and
// manifest.json, written last, which lists them with a hash for each MiB. They say
// nothing of ranks: any layout can read what any layout wrote. What only ranks of
// one layout can use lies beside them, in files of single ranks (RankState). Parameters
// that are not trained and lie on ranks in a narrow type alone are left to the model's
// files, but for those that a run has replaced (replaced.safetensors).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_MANIFEST_H
#define DSOPT_RUNTIME_MANIFEST_H

#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/LossScale.h"
#include "dsopt/Runtime/Program.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// Bytes of a tensor that have one hash (XXH3, 64 bits), in manifests and program tables.
inline constexpr int64_t kHashedBytes = 1 << 20;

/// A checkpoint that is damaged, cannot be read (status 2) or is not there any more: another one may do.
class Unreadable : public Error {
public:
  using Error::Error;
};

/// The status of an error number that reading gave: 1 where the file is not there or not ours, 2 where the
/// disk or the system failed.
int readStatus(int error);

/// Which run wrote a checkpoint, and what that run went on from.
struct Lineage {
  std::string run;         ///< 32 hexadecimal digits; empty: written before runs had such names
  std::string parent;      ///< the run that wrote the checkpoint it was resumed from
  int64_t parentStep = -1; ///< that checkpoint's step; -1: the run started from nothing
};

/// The name of a new run: 128 random bits in hexadecimal.
std::string drawRunName();

/// State of single ranks, of no use to another layout, which drops it and says so.
struct RankState {
  std::string layout;             ///< names what it belongs to; empty: there is none
  std::vector<Parameter> tensors; ///< "3/NAME" is rank 3's, in a file that it alone writes
};

/// A training run between two steps.
struct Manifest {
  Lineage lineage;
  int64_t step = 0;    ///< steps done
  int64_t applied = 0; ///< updates applied
  /// Of the gradients that wait for their update: what the step that made them decided to multiply them by.
  /// None wait without it.
  std::optional<double> pendingFactor;
  /// Where ranks have moved apart: the sum of the learning rates since they met.
  std::optional<double> rates;
  std::optional<LossScaleState> lossScale; ///< of fp16
  int64_t microBatches = 0;                ///< of the data's stream, consumed
  int64_t K = 0, V = 0, T = 1, Q = 1;
  int64_t decaySteps = 0;  ///< resolved -lr-decay-steps
  bool decayGiven = false; ///< it was given, and does not follow from -steps
  std::string dataPlace;   ///< what the data's source wrote down of where it is (InputSource::placeAfter)
  int64_t kernelTable = 0;
  std::string accumulate, gradientType, precision, optimizer, arch, model, dsopt;
  /// Run options that change what a step computes, as text: to warn of differences.
  std::map<std::string, std::string> options;
  /// Parameters under their names, optimizer state as "NAME.m", gradients that wait
  /// for their update as "NAME.pending"; `file` is relative to the folder.
  std::vector<Parameter> tensors;
  RankState ranks;
  /// The hash of its text: two checkpoints of one identity are one.
  std::string identity;
};

/// An Unreadable names the file and says what is wrong with it.
Manifest readManifest(const std::string &checkpoint);
/// The same, and that all files are there in their sizes.
Manifest inspectCheckpoint(const std::string &checkpoint);

/// Writes manifest.json, which is not there yet, to disk.
void writeManifest(const Manifest &manifest, const std::string &checkpoint);

/// Data-parallel degrees under which a run of K micro-batches and V shards keeps its bits.
std::vector<int64_t> possibleDegrees(int64_t K, int64_t V);

/// A safetensors header (with its length before it) for these tensors, whose `offset` becomes their
/// place in the file and `file_bytes` the file's size.
std::string layOutSafetensors(std::vector<Parameter *> tensors);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_MANIFEST_H

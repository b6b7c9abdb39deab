//===- Manifest.h - what a checkpoint holds ---------------------*- C++ -*-===//
//
// A checkpoint is a folder step-00001000: safetensors files of whole tensors and
// manifest.json, written last, which lists them with a hash for each MiB. It says
// nothing of ranks: any layout can read what any layout wrote.
//
// Everything wrong with a checkpoint is an Error of status 1 that names the file.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_MANIFEST_H
#define DSOPT_RUNTIME_MANIFEST_H

#include "dsopt/Runtime/Program.h"

#include <map>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// Bytes of a tensor that have one hash (XXH3, 64 bits), in manifests and program tables.
inline constexpr int64_t kHashedBytes = 1 << 20;

/// A training run between two steps.
struct Manifest {
  int64_t step = 0;         ///< steps done
  int64_t applied = 0;      ///< updates applied
  int64_t microBatches = 0; ///< of the data's stream, consumed
  int64_t K = 0, V = 0;
  int64_t decaySteps = 0; ///< resolved -lr-decay-steps
  int64_t kernelTable = 0;
  std::string accumulate, gradientType, precision, optimizer, arch, model, dsopt;
  /// Run options that change what a step computes, as text: to warn of differences.
  std::map<std::string, std::string> options;
  /// Parameters under their names, optimizer state as "NAME.m"; `file` is relative to the folder.
  std::vector<Parameter> tensors;

  /// The tensor of that name, or null.
  const Parameter *find(const std::string &name) const;
};

/// "step-00001000".
std::string checkpointName(int64_t step);

/// Complete checkpoints in a folder, oldest first; none where there is no such folder.
std::vector<std::string> listCheckpoints(const std::string &folder);

/// The checkpoint that `-resume=given` means: `given` itself, or the newest in it; empty if there is none.
std::string findCheckpoint(const std::string &given);

Manifest readManifest(const std::string &checkpoint);

/// Puts manifest.json in place.
void writeManifest(const Manifest &manifest, const std::string &checkpoint);

/// Data-parallel degrees under which a run of K micro-batches and V shards keeps its bits.
std::vector<int64_t> possibleDegrees(int64_t K, int64_t V);

/// A safetensors header (with its length before it) for these tensors, whose `offset` becomes their
/// place in the file and `file_bytes` the file's size.
std::string layOutSafetensors(std::vector<Parameter *> tensors);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_MANIFEST_H

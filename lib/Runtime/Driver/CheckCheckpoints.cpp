//===- CheckCheckpoints.cpp - -check: are checkpoints as they were --------===//

#include "Core/SavedState.h"
#include "dsopt/Runtime/Cpus.h"
#include "dsopt/Runtime/RunMain.h"
#include "dsopt/Runtime/SaveFolder.h"

#include <algorithm>
#include <cstdio>

using namespace dsopt::runtime;

/// "12 tensors, 3.2 MB, run 1f.., on from step 4 of 2e..".
static std::string describe(const Manifest &manifest) {
  int64_t bytes = 0;
  for (const std::vector<Parameter> *tensors : {&manifest.tensors, &manifest.ranks.tensors})
    for (const Parameter &tensor : *tensors)
      bytes += tensor.bytes;
  auto run = [](const std::string &name) { return name.empty() ? "without a name" : name.substr(0, 8); };
  char text[64];
  std::snprintf(text, sizeof text, "%zu tensors, %.1f MB", manifest.tensors.size(), bytes / 1e6);
  const Lineage &lineage = manifest.lineage;
  return text + (", run " + run(lineage.run)) +
         (lineage.parentStep < 0
              ? ""
              : ", on from step " + std::to_string(lineage.parentStep) + " of run " + run(lineage.parent));
}

int dsopt::runtime::checkCheckpoints(const std::string &path) {
  std::vector<std::string> all = findCheckpoints(path);
  if (all.empty())
    throw Error(StatusInput, "option -check: there is no checkpoint in " + path +
                                 " (a folder step-N with its manifest.json)");
  ThreadPool pool(std::max(static_cast<int>(availableCpus()), 1), 0);
  int status = StatusOk;
  for (const std::string &checkpoint : all) {
    try {
      Manifest manifest = inspectCheckpoint(checkpoint);
      verifyState(checkpoint, manifest, &pool);
      std::printf("%s: good (%s)\n", checkpoint.c_str(), describe(manifest).c_str());
    } catch (const Error &error) {
      std::printf("%s: bad: %s\n", checkpoint.c_str(), error.what());
      status = std::max(status, error.status);
    }
  }
  return status;
}

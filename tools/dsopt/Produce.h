//===- Produce.h - from a lowered module to a file or a run -----*- C++ -*-===//
//
// The end of a compilation: an object, an executable, or this process becoming
// dsopt-run with the program. Under a launcher the lowest rank of each host
// compiles and the others wait for it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_PRODUCE_H
#define DSOPT_TOOLS_DSOPT_PRODUCE_H

#include "CompileOptions.h"
#include "Targets.h"
#include "dsopt/Runtime/Handover.h"
#include "dsopt/Target/Target.h"

namespace dsopt {

/// A lowered module and what it came from.
struct Product {
  mlir::ModuleOp module;       ///< at stage llvm
  const std::string &protobuf; ///< the model without its parameters, may be empty
  const std::string &path;     ///< the file the user named
  runtime::Handover *handover; ///< to the other ranks of this host, null without
  Targets &targets;            ///< with the programs that are made already
  KnownKernels known = {};     ///< of the module

  /// Writes or runs what the options ask for, an executable when it has the programs of all targets. A run
  /// does not return. Fails after a diagnostic; throws runtime::Error for files and processes.
  llvm::LogicalResult produce(const runtime::ParsedOptions &options);
};

/// How this machine compiles, with the user's cache.
ObjectOptions objectOptions();
/// Whether what the options ask for is made of objects.
bool makesObjects(const runtime::ParsedOptions &options);
/// NVIDIA's ptxas, as findAssembler finds it; empty if there is none.
std::string assemblerBesideTools();

/// The file that the options ask for; empty: a run, or text on standard output.
std::string outputFile(const std::string &path, const runtime::ParsedOptions &options);

/// A file in memory with the bytes of a program or library: nothing is left behind, however the process ends.
int inMemory(llvm::StringRef bytes);

/// Becomes dsopt-run with the program in an open file and the run options given here.
[[noreturn]] void becomeRuntime(int file, const runtime::ParsedOptions &options);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_PRODUCE_H

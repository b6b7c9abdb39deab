//===- Target.h - from the LLVM dialect to machine code ---------*- C++ -*-===//
//
// The last stage of the compiler: which processor, the program table, objects
// in memory, shared objects and executables on disk. Errors are diagnostics, but for
// the linker's.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TARGET_TARGET_H
#define DSOPT_TARGET_TARGET_H

#include "dsopt/Interfaces/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <vector>

namespace dsopt {
/// How objects are made.
struct ObjectOptions {
  unsigned threads = 1; ///< that compile
  unsigned optLevel = 3;
  std::string cache;                     ///< folder of compiled groups, empty: none
  int64_t cacheBytes = int64_t(1) << 28; ///< of it at most
};

/// Resolves an architecture's name: native, x86-64-v3 or a processor's; an unknown one is an error at `loc`.
llvm::FailureOr<TargetAttr> resolveTarget(mlir::Location loc, llvm::StringRef arch, int64_t threads);

/// The features that code for the target needs, as __builtin_cpu_supports names them (Program::features).
std::vector<std::string> statedFeatures(TargetAttr target);

/// All features as LLVM reads them: +avx2,-avx512f ...
std::string featureText(TargetAttr target);

/// Whether the target multiplies bf16 and rounds to it.
bool multipliesBF16(TargetAttr target);

/// A program as text.
struct ProgramTable {
  std::string text;    ///< JSON
  std::string actions; ///< of each position, one JSON array a line, which the text names by place
};

/// The module's programs as include/dsopt/Runtime/Program.h describes them. Reads exec.program, dist.bucket,
/// graph.parameter, the options and the module's `dsopt.target` and `exec.inputs`; segments give their flops,
/// lowered or not.
llvm::FailureOr<ProgramTable> emitProgram(mlir::ModuleOp module);

/// Prints the functions and constants of the LLVM dialect as one LLVM module,
/// before optimization.
llvm::LogicalResult emitLLVM(mlir::ModuleOp module, llvm::raw_ostream &os);

using ObjectBuffers = std::vector<std::unique_ptr<llvm::MemoryBuffer>>;

/// Compiles the functions and constants of the LLVM dialect, `options.threads`
/// at a time, and `program` and `model` as the object's tables. What is compiled
/// together does not depend on the number of threads.
llvm::LogicalResult emitObjects(mlir::ModuleOp module, const ObjectOptions &options,
                                const ProgramTable &program, llvm::StringRef model, ObjectBuffers &objects);

/// Links objects to a shared object, or, with `relocatable`, to one object. dsopt_rt_* stay undefined.
/// Nothing is written to disk, so that nothing stays there whenever this process ends. What fails is the
/// machine's, not the module's.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> linkObjects(const ObjectBuffers &objects,
                                                                bool relocatable = false);

/// Registers what translating the LLVM dialect to LLVM IR needs.
void registerTargetDialects(mlir::DialectRegistry &registry);
} // namespace dsopt

#endif // DSOPT_TARGET_TARGET_H

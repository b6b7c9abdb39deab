//===- Pipelines.h - flags to passes, top to bottom -------------*- C++ -*-===//
//
// The compiler's table of contents: which passes each stage runs, as text that
// dsopt-opt's -pass-pipeline accepts. Passes read their settings from the
// module's dsopt.options.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_PIPELINE_PIPELINES_H
#define DSOPT_PIPELINE_PIPELINES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace dsopt {

/// How far a module has come. Each is a form that can be printed, read back and
/// continued.
enum class Stage {
  Graph, ///< imported: parameters and @forward
  Dist,  ///< blocks of kernels, buckets, collectives
  Exec,  ///< programs with every byte placed
  LLVM,  ///< kernels and segments as LLVM functions
};

/// "graph", "dist", "exec" or "llvm".
llvm::StringRef stageName(Stage stage);

/// The stage a module is at, from what it holds.
Stage findStage(mlir::ModuleOp module);

/// What a program is made for.
enum class Purpose { Train, Evaluate, Generate };
/// That of a module, by its options.
Purpose purposeOf(mlir::ModuleOp module);

/// The passes that take a module from one stage to a later one, in order.
/// What runs on nested operations stands between "builtin.module(" or "func.func(" and ")".
std::vector<std::string> stagePasses(Stage from, Stage to, Purpose purpose = Purpose::Train,
                                     bool onDevice = false);

/// Those of kernels alone, from their functions to functions of the LLVM dialect: the pipeline lower-kernels.
llvm::ArrayRef<const char *> kernelPasses();

/// What opens them in a pipeline: all before sees kernels as they were formed.
inline constexpr llvm::StringLiteral kKernelPasses = "builtin.module(";

/// The same to functions for NVIDIA's devices: the pipeline lower-kernels-to-nvvm.
llvm::ArrayRef<const char *> deviceKernelPasses();

/// The first pass that sees all sizes of a dimension (Variants.h).
inline constexpr llvm::StringLiteral kFirstJointPass = "merge-variants";

/// Tells planners (Planner.h) by which of the passes' functions blocks become programs.
void registerProgramSteps();

/// Inserts passes: each request is "after:PASS:PASS-WITH-OPTIONS" or "before:...".
/// Returns an error text, empty on success.
std::string insertPasses(std::vector<std::string> &passes, llvm::ArrayRef<std::string> requests);

/// The passes as one pipeline text: builtin.module(a,b,c).
std::string pipelineText(llvm::ArrayRef<std::string> passes);

/// Runs a pipeline text on a module; messages go to the module's context. The module is verified at the end
/// (but for programs, whose actions verify-exec has seen), with `verifyEach` behind each pass: for pipelines
/// with passes of others.
llvm::LogicalResult runPipeline(mlir::ModuleOp module, llvm::StringRef text, bool verifyEach = false);

} // namespace dsopt

#endif // DSOPT_PIPELINE_PIPELINES_H

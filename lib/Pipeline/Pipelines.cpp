//===- Pipelines.cpp - flags to passes, top to bottom ---------------------===//

#include "dsopt/Pipeline/Pipelines.h"

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Planner/Planner.h"
#include "dsopt/Transforms/Arena/Passes.h"
#include "dsopt/Transforms/Offload/Passes.h"
#include "dsopt/Transforms/Order/Passes.h"
#include "dsopt/Transforms/Overlap/Passes.h"
#include "dsopt/Transforms/Step/Passes.h"
#include "dsopt/Transforms/Wire/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace dsopt {

/// Graph to dist: what is trained, as which kernels, and where it lives.
static const char *const kToDist[] = {
    // stage 2: autodiff
    "keep-logits", "canonicalize", "cse", "attach-metrics", "raise-normalizations", "raise-activations",
    "raise-rotary", "raise-attention", "raise-linear-nll", "raise-logarithms", "raise-norms", "find-blocks",
    "place-values", "cut-sequence", "cut-rows", "build-evaluation", "derive-decoding", "build-backward",
    "merge-loss-gradient", "append-optimizer", "build-matrix-updates", "verify-graph", "verify-places",
    // stage 3: kernels, for a target
    "attach-target", "raise-convolutions", "raise-epilogues", "decompose-composites", "flatten-rows",
    "canonicalize", "cse", "rematerialize-elementwise", "absorb-movements", "form-kernels", "apply-precision",
    "tile-products", "form-blocks", "verify-kernels",
    // stage 4: parallelize
    "declare-grid", "split-stages", "partition-zero", "offload-parameters", "place-collectives",
    "verify-dist"};

/// Those that nothing needs where nothing is trained.
static const char *const kForTraining[] = {"build-backward", "merge-loss-gradient", "append-optimizer",
                                           "build-matrix-updates", "rematerialize-elementwise"};

/// Those that make of a model one that generates, and those that such a one does without.
static const char *const kForGeneration[] = {"keep-logits", "derive-decoding"};
static const char *const kForSequences[] = {"cut-sequence", "cut-rows"};

/// Dist to exec: when everything runs and where every byte is.
static const char *const kMemory[] = {
    // stage 5: memory, of all sizes of a dimension
    "merge-variants", "offload-optimizer", "recompute", "choose-gather-window", "choose-prefetch"};
static const ProgramStep kToSegments[] = {
    // stage 6: schedule
    {"split-parts", splitParts},
    {"blocks-to-segments", blocksToSegments}};
static const ProgramStep kToPrograms[] = {
    {"order-pipeline", orderPipeline},
    {"share-gathers", shareGathers},
    {"place-reductions", placeReductions},
    {"delay-updates", delayUpdates},
    {"freeze-updates", freezeUpdates},
    {"finish-step", finishStep},
    {"merge-tied-gradients", mergeTiedGradients},
    {"prefetch-gathers", prefetchGathers},
    {"gather-by-node", gatherByNode},
    {"offload-gathers", offloadGathers},
    {"offload-updates", offloadUpdates},
    {"throttle-reductions", throttleReductions},
    {"offload-activations", [](ModuleOp module) { return offloadActivations(module); }},
    {"compress-gradients", compressGradients},
    {"expand-collectives", expandCollectives},
    {"pack-weights", packWeights},
    {"insert-waits", insertWaits}};
static const char *const kToPlaces[] = {"report-overlap", "dedupe-segments", "plan-memory", "verify-exec"};

void registerProgramSteps() { setProgramSteps(kToSegments, kToPrograms); }

/// Exec to LLVM: kernels, in the module of their target, and segments become functions; programs stay data.
static const char *const kToLLVM[] = {
    "describe-calls", "describe-changes",
    // stage 7: lower, kernels
    "compile-products", kKernelPasses.data(), "func.func(", "product-to-loops", "graph-to-linalg",
    "kernel-to-loops", "canonicalize", "cse", "approximate-math", "cse", "convert-scf-to-cf",
    "convert-math-to-llvm", ")",
    // what LLVM has no intrinsic for
    "convert-math-to-libm", "kernel-to-llvm", "reconcile-unrealized-casts", ")",
    // segments
    "segments-to-llvm"};

/// Kernels to functions for a device.
static const char *const kToNVVM[] = {"func.func(",
                                      "graph-to-linalg",
                                      "canonicalize",
                                      "cse",
                                      ")",
                                      "kernel-to-threads",
                                      "func.func(",
                                      "canonicalize",
                                      "cse",
                                      "approximate-math{all=true}",
                                      "cse",
                                      "convert-scf-to-cf",
                                      "convert-math-to-llvm",
                                      ")",
                                      "kernel-to-nvvm",
                                      "reconcile-unrealized-casts"};

llvm::ArrayRef<const char *> deviceKernelPasses() { return kToNVVM; }

llvm::ArrayRef<const char *> kernelPasses() {
  auto isNamed = [](llvm::StringRef name) {
    return llvm::find_if(kToLLVM, [&](llvm::StringRef pass) { return pass == name; });
  };
  return llvm::ArrayRef(isNamed(kKernelPasses) + 1, isNamed("reconcile-unrealized-casts") + 1);
}

llvm::StringRef stageName(Stage stage) {
  switch (stage) {
  case Stage::Graph:
    return "graph";
  case Stage::Dist:
    return "dist";
  case Stage::Exec:
    return "exec";
  case Stage::LLVM:
    return "llvm";
  }
  llvm_unreachable("not a stage");
}

Stage findStage(ModuleOp module) {
  if (!module.getOps<exec::ProgramOp>().empty())
    return module.getOps<LLVM::LLVMFuncOp>().empty() ? Stage::Exec : Stage::LLVM;
  return module.getOps<dist::BucketOp>().empty() ? Stage::Graph : Stage::Dist;
}

/// As kToLLVM, with a device's passes for kernels.
static std::vector<const char *> toLLVMForDevice() {
  std::vector<const char *> passes(kToLLVM, std::end(kToLLVM));
  llvm::ArrayRef<const char *> own = kernelPasses();
  auto begin = passes.begin() + (own.data() - kToLLVM);
  auto at = passes.erase(begin, begin + own.size());
  at = passes.insert(at, std::begin(kToNVVM), std::end(kToNVVM));
  // Before the device's kernels' module is opened, and before calls are described.
  passes.insert(at - 1, "lower-host-kernels");
  passes.insert(passes.begin(), "copy-host-kernels");
  return passes;
}

Purpose purposeOf(ModuleOp module) {
  if (getOption(module, "generate", 0) != 0)
    return Purpose::Generate;
  return getOption(module, "train", 1) != 0 ? Purpose::Train : Purpose::Evaluate;
}

std::vector<std::string> stagePasses(Stage from, Stage to, Purpose purpose, bool onDevice) {
  std::vector<std::string> passes;
  auto append = [&](Stage end, llvm::ArrayRef<const char *> names) {
    if (from < end && end <= to)
      passes.insert(passes.end(), names.begin(), names.end());
  };
  // What was read is checked as what was built is, before it becomes code.
  if (from == Stage::Exec && to > from)
    passes.push_back("verify-exec");
  append(Stage::Dist, kToDist);
  append(Stage::Exec, kMemory);
  for (const ProgramStep &step : kToSegments)
    append(Stage::Exec, step.pass);
  append(Stage::Exec, "nest-kernels");
  for (const ProgramStep &step : kToPrograms)
    append(Stage::Exec, step.pass);
  append(Stage::Exec, kToPlaces);
  if (onDevice)
    append(Stage::LLVM, toLLVMForDevice());
  else
    append(Stage::LLVM, kToLLVM);
  auto leaveOut = [&](llvm::ArrayRef<const char *> names) {
    llvm::erase_if(passes, [&](const std::string &pass) { return llvm::is_contained(names, pass); });
  };
  if (purpose != Purpose::Train)
    leaveOut(kForTraining);
  leaveOut(purpose == Purpose::Generate ? llvm::ArrayRef<const char *>(kForSequences)
                                        : llvm::ArrayRef<const char *>(kForGeneration));
  return passes;
}

std::string insertPasses(std::vector<std::string> &passes, llvm::ArrayRef<std::string> requests) {
  for (llvm::StringRef request : requests) {
    auto [where, rest] = request.split(':');
    auto [anchor, inserted] = rest.split(':');
    if ((where != "after" && where != "before") || anchor.empty() || inserted.empty())
      return ("-insert-pass got '" + request + "', expected after:PASS:NEW-PASS or before:PASS:NEW-PASS")
          .str();
    // The last of several equal passes, so that nothing of its kind follows; one of the module before
    // one of its kernels.
    std::optional<size_t> last;
    int64_t depth = 0, lastDepth = 0;
    for (auto [index, pass] : llvm::enumerate(passes)) {
      bool opens = llvm::StringRef(pass).ends_with("("), closes = pass == ")";
      depth += opens - closes;
      if (opens || closes || llvm::StringRef(pass).split('{').first != anchor ||
          (last && depth > 0 && lastDepth == 0))
        continue;
      last = index;
      lastDepth = depth;
    }
    if (!last)
      return ("-insert-pass names '" + anchor +
              "', which is no pass of this pipeline (-print-pipeline shows it)")
          .str();
    passes.insert(passes.begin() + *last + (where == "after"), inserted.str());
  }
  return "";
}

std::string pipelineText(llvm::ArrayRef<std::string> passes) {
  std::string text = "builtin.module(";
  for (llvm::StringRef pass : passes) {
    if (pass != ")" && text.back() != '(')
      text += ',';
    text += pass;
  }
  return text + ")";
}

LogicalResult runPipeline(ModuleOp module, llvm::StringRef text, bool verifyEach) {
  PassManager manager(module.getContext());
  manager.enableVerifier(verifyEach);
  std::string message;
  llvm::raw_string_ostream stream(message);
  FailureOr<OpPassManager> parsed = parsePassPipeline(text, stream);
  if (failed(parsed))
    return module.emitError("cannot use the pass pipeline: ") << message;
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  if (failed(manager.run(module)))
    return failure();
  return failure(!verifyEach && !llvm::all_of(module.getOps(), [](Operation &op) {
    return isa<exec::ProgramOp>(op) || succeeded(verify(&op));
  }));
}

} // namespace dsopt

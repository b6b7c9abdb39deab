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

/// Resolves a comma-separated list of NVIDIA's architectures, each of sm_80, sm_89, sm_90, sm_90a and sm_100a
/// (native: sm_90): the target's arch is the list in ascending order. Choices follow from the first alone.
llvm::FailureOr<TargetAttr> resolveDevice(mlir::Location loc, llvm::StringRef arch, int64_t threads);
/// By kind.
llvm::FailureOr<TargetAttr> resolveTarget(mlir::Location loc, TargetKind kind, llvm::StringRef arch,
                                          int64_t threads);

/// A device's target for each of its architectures alone, as LLVM takes it.
std::vector<TargetAttr> splitArchitectures(TargetAttr target);
/// What the module's own functions are compiled for: its target, and a baseline of the host if that is a
/// device.
llvm::FailureOr<TargetAttr> getHostTarget(mlir::ModuleOp module);

/// The features that code for the target needs, as __builtin_cpu_supports names them (Program::features).
std::vector<std::string> statedFeatures(TargetAttr target);

/// All features as LLVM reads them: +avx2,-avx512f ...
std::string featureText(TargetAttr target);

/// Whether the target converts f16.
bool convertsF16(TargetAttr target);

/// A program as text.
struct ProgramTable {
  std::string text;    ///< JSON
  std::string actions; ///< of each position, one JSON array a line, which the text names by place
  std::string texts;   ///< the tokenizer's files, packed; may be empty
};

/// A device's code for one architecture, and where it lies among all.
struct DeviceImage {
  std::string routine, arch, kind; ///< of the runtime, or empty: the program's kernels; ptx or cubin
  int64_t offset = 0, bytes = 0;
  int64_t registers = 0, shared = 0; ///< of a cubin: the most of a thread, bytes of a block
  int64_t spills = 0;                ///< bytes that threads keep in memory for want of registers
};
struct DeviceImages {
  std::vector<DeviceImage> list; ///< the program's by architecture, then those of each routine
  std::string bytes;             ///< each from a multiple of 64 on; PTX ends with a zero
};

/// What ptxas says of a kernel: registers of a thread, bytes of shared memory of a block, bytes spilled.
struct KernelFigure {
  int64_t registers = 0, shared = 0, spills = 0;
};
/// By the kernels' names in PTX.
using KernelFigures = llvm::StringMap<KernelFigure>;

/// PTX of a routine of the runtime, for all architectures; behind it there is a zero.
struct Routine {
  llvm::StringRef name, ptx;
};
/// Those that a device's module uses, by name.
std::vector<Routine> collectRoutines(mlir::ModuleOp module);
/// The names of those that a call of `exec.calls` takes kernels from.
llvm::SmallVector<llvm::StringRef, 2> routinesOf(mlir::DictionaryAttr call);
/// PTX of all kernels for each architecture, of them in ascending order; the target has to be a device.
llvm::FailureOr<std::vector<std::string>> emitPTX(mlir::ModuleOp module, const ObjectOptions &options);
/// As emitPTX, beside it that of the runtime's routines that the module uses, and a cubin of each for each
/// architecture where `assembler` (NVIDIA's ptxas) is not empty; nothing for a CPU.
llvm::FailureOr<DeviceImages> emitImages(mlir::ModuleOp module, const ObjectOptions &options,
                                         llvm::StringRef assembler);
/// What `assembler` says of each architecture's kernels, in ascending order; the target has to be a device.
llvm::FailureOr<std::vector<KernelFigures>>
assembleKernels(mlir::ModuleOp module, const ObjectOptions &options, llvm::StringRef assembler);
/// What it says of the kernels in a text for one architecture; an error at the module.
llvm::FailureOr<KernelFigures> assembleKernels(mlir::ModuleOp module, llvm::StringRef ptx, TargetAttr target,
                                               const ObjectOptions &options, llvm::StringRef assembler);
/// The ptxas that DSOPT_PTXAS names (off: none), or that of PATH, of the CUDA toolkit or of the Python
/// package nvidia-cuda-nvcc in the environment beside `folder`; empty if there is none.
std::string findAssembler(llvm::StringRef folder);

/// The module's programs as include/dsopt/Runtime/Program.h describes them. Reads exec.program, dist.bucket,
/// graph.parameter, the options and the module's `dsopt.target` and `exec.inputs`; segments give their flops,
/// lowered or not.
llvm::FailureOr<ProgramTable> emitProgram(mlir::ModuleOp module, llvm::ArrayRef<DeviceImage> images = {});

/// Prints the functions and constants of the LLVM dialect as one LLVM module,
/// before optimization.
llvm::LogicalResult emitLLVM(mlir::ModuleOp module, llvm::raw_ostream &os);

using ObjectBuffers = std::vector<std::unique_ptr<llvm::MemoryBuffer>>;

/// Objects of kernels that were compiled before, which need not be lowered again.
struct KnownKernels {
  llvm::StringMap<std::string> groups; ///< by kernel: the name under which the cache keeps its group
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> objects; ///< by that name, those that it has

  /// Empty if it has none.
  llvm::StringRef groupOf(llvm::StringRef kernel) const {
    auto found = groups.find(kernel);
    return found == groups.end() ? "" : llvm::StringRef(found->second);
  }
};

/// Groups a host's kernels, as they are before `passes` lower them, and looks in the cache for what that
/// becomes: a group's name is the hash of the kernels' text, their target, `passes`, and the build IDs of all
/// libraries here. Kernels whose object is found become declarations in the LLVM dialect. Nothing is known
/// for devices, without a cache, and where a library has no build ID.
KnownKernels findKnownKernels(mlir::ModuleOp module, llvm::StringRef passes, const ObjectOptions &options);

/// Compiles the functions and constants of the LLVM dialect, `options.threads`
/// at a time, and `program`, `model` and, if there are any, `images` as the object's tables; no kernels of a
/// device. What is compiled together, and the order of the objects, depend neither on the number of threads
/// nor on what is `known`.
llvm::LogicalResult emitObjects(mlir::ModuleOp module, const ObjectOptions &options,
                                const ProgramTable &program, llvm::StringRef model, ObjectBuffers &objects,
                                llvm::StringRef images = "", KnownKernels known = {});

/// Links objects to a shared object, or, with `relocatable`, to one object. dsopt_rt_* stay undefined.
/// Nothing is written to disk, so that nothing stays there whenever this process ends. What fails is the
/// machine's, not the module's.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> linkObjects(const ObjectBuffers &objects,
                                                                bool relocatable = false);

/// Registers what translating the LLVM dialect to LLVM IR needs.
void registerTargetDialects(mlir::DialectRegistry &registry);
} // namespace dsopt

#endif // DSOPT_TARGET_TARGET_H

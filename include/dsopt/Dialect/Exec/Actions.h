//===- Actions.h - what passes ask of actions and buffers -------*- C++ -*-===//
//
// Small helpers over the operations of a schedule: their stream, the bytes of a
// buffer, a program's parts and memories, addresses.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_EXEC_ACTIONS_H
#define DSOPT_DIALECT_EXEC_ACTIONS_H

#include "dsopt/Dialect/Exec/Exec.h"

#include "llvm/ADT/Sequence.h"

namespace dsopt::exec {
/// Buffers, slots and memories are multiples of this many bytes.
inline constexpr int64_t kAlignment = 64;

/// Words of 64 bits in the record of a norm: the digits of an exact sum and a parameter.
inline constexpr int64_t kNormWords = 21;
/// And of each trained parameter in the record of a direction.
inline constexpr int64_t kTrustWords = 40;

/// The communicators of a grid: the ranks that data and tokens are spread over, those that positions are,
/// all.
inline constexpr llvm::StringLiteral kDataParallel = "dp", kPipeline = "pp", kWorld = "world";
/// What the communicator over axes is called: one of these, else the axes in their order ("edp.sp").
std::string communicatorName(dist::AxesAttr axes);
/// The streams that programs are written for: what is computed, collectives, those on values between tensor
/// shards, transfers.
inline constexpr llvm::StringLiteral kComputeStream = "compute", kCommStream = "comm",
                                     kTensorStream = "tensor", kSendStream = "send", kRecvStream = "recv";
/// Those of what lies in the host's memory: what is computed there, copies from the device and to it.
inline constexpr llvm::StringLiteral kHostStream = "host", kDownloadStream = "download",
                                     kUploadStream = "upload";
/// That of what lies on disk: copies from there to the host's memory and back.
inline constexpr llvm::StringLiteral kDiskStream = "disk";
/// The memory that programs are written for, and those that they may put things aside in.
inline constexpr llvm::StringLiteral kDeviceMemory = "device", kHostMemory = "host", kDiskMemory = "disk";
/// Buffers in the memory of a device that is not the host start at multiples of so many bytes.
inline constexpr int64_t kDeviceAlignment = 256;
/// Where there is a disk, its buffers and the host's start at multiples of this many bytes: a disk is read
/// and written in whole blocks.
inline constexpr int64_t kDiskAlignment = 4096;

/// On a function of runs or a nested module (merge-variants): it is for this smaller size of the module's
/// dimension (i64).
inline constexpr llvm::StringLiteral kVariantAttr = "exec.variant";
/// On a module with variants: the dimension's `name` and the `size` of what is no variant.
inline constexpr llvm::StringLiteral kDimensionAttr = "exec.dimension";
/// On an action: the buffers that outlive the step and that it writes to (see describe-changes).
inline constexpr llvm::StringLiteral kChangesAttr = "exec.changes";
/// On an action: all bytes that it reads and writes on one rank (TouchAttr, see describe-changes).
inline constexpr llvm::StringLiteral kTouchesAttr = "exec.touches";
/// On the module: the graph's inputs (name, type, label, ignore_index, bound).
inline constexpr llvm::StringLiteral kInputsAttr = "exec.inputs";
/// On the module: the outputs that it computes instead of a loss, in order (name, type, and outputTypeAt each
/// other size of the dimension).
inline constexpr llvm::StringLiteral kOutputsAttr = "exec.outputs";
inline std::string outputTypeAt(int64_t size) { return "type." + std::to_string(size); }
/// On the module: the metrics that it logs beside the loss, in order (name, combine and the elements of each
/// part); exec.agree counts places on through them.
inline constexpr llvm::StringLiteral kMetricsAttr = "exec.metrics";
/// On the module: the options that its programs were built with (a dictionary); those of dsopt.options may
/// not differ from then on.
inline constexpr llvm::StringLiteral kBuiltWithAttr = "exec.built_with";
/// On a segment: floating-point operations of one run; on a call of it: its part of them (i64).
inline constexpr llvm::StringLiteral kFlopsAttr = "exec.flops";
/// On a segment for a device: what one run is predicted to take (i64).
inline constexpr llvm::StringLiteral kPicosecondsAttr = "exec.picoseconds";
/// On a segment's argument: the parameter, gradient state, cache or constant it is.
inline constexpr llvm::StringLiteral kParameterAttr = "exec.parameter";
inline constexpr llvm::StringLiteral kGradientAttr = "exec.gradient";
inline constexpr llvm::StringLiteral kCacheAttr = "exec.cache";
inline constexpr llvm::StringLiteral kConstantAttr = "exec.constant";

/// What is kept of a bucket beside what its rule keeps: what its exchange leaves out, at the worker and at
/// the server of a slice; which elements take part in it; the factors by which momenta are alike; the factor
/// that matrices of a bucket keep, by their first elements.
inline constexpr llvm::StringLiteral kWorkerError = "worker_error", kServerError = "server_error",
                                     kTakes = "takes", kCoefficients = "coefficients", kFactor = "factor";

/// Bytes of elements of a type; i1 takes one byte.
inline int64_t bytesOf(int64_t elements, mlir::Type element) {
  return elements * ((element.getIntOrFloatBitWidth() + 7) / 8);
}
/// Bytes of a memref or tensor of static shape.
int64_t bytesOf(mlir::Type type);
/// Rounds up to a multiple of `kAlignment`.
inline int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Whether the operation is an action (not a wait) of a schedule.
bool isAction(mlir::Operation *op);
/// Whether a collective stands for several actions, which expand-collectives writes.
bool isComposite(mlir::Operation *op);
/// The stream of an action or a wait.
mlir::FlatSymbolRefAttr getStream(mlir::Operation *op);
/// The communicator of an action, null where it has none.
mlir::FlatSymbolRefAttr getCommunicator(mlir::Operation *op);
/// The place of a collective among the program's, none for other actions.
std::optional<int64_t> getOrder(mlir::Operation *op);
/// Whether a run is given an address in a buffer.
bool usesBuffer(RunOp run, mlir::FlatSymbolRefAttr buffer);
/// Numbers the collectives of a schedule in the order in which they stand.
void renumberCollectives(ScheduleOp schedule);
/// "@b0.full[1]+64", as it is printed.
std::string describe(RefAttr ref);
/// "block 3 F", "block 3 F, part 1".
std::string describe(PartAttr part);
/// "run of @block0.F on micro-batch 3", "gather of @b0.full" ...: an action in a message.
std::string describe(mlir::Operation *op);

/// Keeps the module's options that programs follow from, as `exec.built_with`.
void keepOptions(mlir::ModuleOp module);
/// Micro-batches that programs run in a step.
int64_t getMicroBatches(llvm::ArrayRef<ProgramOp> programs);
/// The schedule of a program, null if it has none.
ScheduleOp getSchedule(ProgramOp program);
/// The memories of a program, in their order.
llvm::SmallVector<MemoryOp> getMemories(ProgramOp program);
/// Which of them a buffer lies in.
size_t memoryOf(BufferOp buffer, llvm::ArrayRef<MemoryOp> memories);
/// Emits an error where the memories of a position's programs differ.
llvm::LogicalResult verifySameMemories(ProgramOp first, ProgramOp other);
/// The sizes of the module's variants, ascending.
llvm::SmallVector<int64_t> getVariants(mlir::ModuleOp module);
/// The kinds of programs in their order, from one on.
inline auto programKinds(ProgramKind first = ProgramKind::Step) {
  return llvm::enum_seq_inclusive(first, static_cast<ProgramKind>(getMaxEnumValForProgramKind()),
                                  llvm::force_iteration_on_noniterable_enum);
}
/// Whether ranks keep their own gradients, which no step of that kind reduces.
inline bool hasOwnGradients(ProgramKind kind) { return kind >= ProgramKind::FrozenStep; }
/// The module's programs of a kind in order of position; of a variant where its size is given.
llvm::SmallVector<ProgramOp> getPrograms(mlir::ModuleOp module, ProgramKind kind = ProgramKind::Step,
                                         int64_t variant = 0);
/// All programs by what is run, in the order of ProgramKind, then the same of each variant; none is empty.
llvm::SmallVector<llvm::SmallVector<ProgramOp>> getProgramLists(mlir::ModuleOp module);
/// The programs of a step: those that train, or those that evaluate where there are none.
llvm::SmallVector<ProgramOp> getStepPrograms(mlir::ModuleOp module, int64_t variant = 0);
} // namespace dsopt::exec

#endif // DSOPT_DIALECT_EXEC_ACTIONS_H

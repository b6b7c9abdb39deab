//===- Program.h - the program table: what a compiled program says of itself -===//
//
// The compiler writes this table as one JSON document into the object, and the
// actions of each position, which only its own ranks need, as a document of their own
// (lib/Target/EmitProgram.cpp); the runtime reads the first at once and the others when
// it needs them (lib/Runtime/Core/Program.cpp). JSON keys are the members' names; what is
// absent has the default given here. Sizes and offsets are bytes unless named
// otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_PROGRAM_H
#define DSOPT_RUNTIME_PROGRAM_H

#include "dsopt/Runtime/Grid.h"
#include "dsopt/Runtime/Metrics.h"

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dsopt::runtime {

/// Element types are spelled as in MLIR: f32, i64, i32, i1 (one byte) ...
struct Input {
  std::string name, type;
  std::vector<int64_t> shape; ///< of one micro-batch
  bool label = false;         ///< feeds the loss: a micro-batch of only `ignore_index` is an error
  int64_t ignore_index = -100;
  std::string source{};   ///< the model's own element type, where `type` is a wider one
  int64_t bound = 0;      ///< values index into something of this size (0: no index)
  bool looked_up = false; ///< `ignore_index` is no index there
  int64_t least = 0;      ///< what is looked up: 0 in a parameter, else -bound (from the end)
};

/// What a program computes that has no loss.
struct Output {
  std::string name, type;
  std::vector<int64_t> shape; ///< of one micro-batch
};

/// Elements of a parameter, which lie in a bucket from element `bucket_offset` on: as many as follow each
/// other from `begin` on. Of a shard, runs of `run` elements that begin `stride` apart, the first at `begin`
/// and `step` more for each rank before along tp, which has others.
struct Part {
  int64_t bucket = 0, bucket_offset = 0, begin = 0, elements = 0;
  int64_t run = 0, stride = 0, step = 0;

  bool isShard() const { return run > 0; }
};

struct Parameter {
  std::string name, type;
  std::vector<int64_t> shape;
  bool trainable = true;
  bool constant = false; ///< no weight: not saved with them
  std::string file;      ///< relative to `model_folder`
  int64_t offset = 0, bytes = 0;
  std::string source;           ///< element type in the file, and where weights leave; empty: `type`
  int64_t file_bytes = 0;       ///< the whole file's size when it was compiled
  std::vector<uint64_t> chunks; ///< XXH3-64 of each 1 MiB chunk of the parameter
  int64_t bucket = 0;           ///< index into Program::buckets
  int64_t bucket_offset = 0;    ///< first element in the bucket, a multiple of 64
  std::vector<Part> parts; ///< ascending, of one that lies in several places; then the two above say nothing
};

/// Elements [begin, end) of a bucket that share factors of learning rate and weight decay.
struct Group {
  int64_t begin = 0, end = 0;
  double lr_scale = 1.0, decay_scale = 1.0;
};

struct Bucket {
  std::string name, type;
  int64_t elements = 0; ///< end of the last parameter, rounded up to 64
  int64_t padded = 0;   ///< elements of the whole with padding; slice = padded / dp
  bool trainable = true, tied = false;
  bool distinct = false; ///< ranks along tp have others in it; else they have the same
  int64_t owner = 0;     ///< the position that owns (updates) it
  std::vector<Group> groups;
};

enum class MemoryKind { Device, Host, Disk };
inline constexpr const char *const kMemoryKinds[] = {"device", "host", "disk"}; ///< by MemoryKind

/// An arena of each of a position's ranks.
struct Memory {
  MemoryKind kind = MemoryKind::Device;
  int64_t bytes = 0;
  int64_t alignment = 64; ///< of buffers
};

struct Buffer {
  std::string name;
  std::string kind;    ///< the plan's class: parameters, gradients, ...
  int64_t memory = 0;  ///< index into Position::memories
  int64_t offset = 0;  ///< in the memory
  int64_t bytes = 0;   ///< of one slot, without what lies between slots
  int64_t payload = 0; ///< of these, where ranks exchange more than is made, those that are; 0: all
  int64_t slots = 1, stride = 0;
  bool persistent = false;
  std::string symbol; ///< constants: where they lie in the object. A device has a copy of them here, which is
                      ///< made before step 0; on the host they have no other place.
};

/// An address: slot `slot` of a buffer plus `offset` plus `steps` for each rank before this one along axes.
struct Ref {
  int64_t buffer = -1, slot = 0, offset = 0;
  AxisSteps steps{}; ///< JSON: an array of these three and of the steps along edp, ep, sp and tp, of which
                     ///< those behind the first may be left out
};

/// Ranks that talk among themselves: those that differ along these axes alone, in the order of which their
/// parts lie.
struct RankGroups {
  std::string name;
  std::vector<AxisPart> axes; ///< JSON: an array for each of them: name, 1 for Inner and 2 for Outer, count
};

/// Words of 64 bits in the record of a norm.
inline constexpr int64_t kNormWords = 21;
/// Of each trainable parameter in the record of a direction: the digits of two sums.
inline constexpr int64_t kTrustWords = 40;

enum class QueueKind { Compute, Communication, Copy, Disk, Host };
inline constexpr const char *const kQueueKinds[] = {"compute", "communication", "copy", "disk",
                                                    "host"}; ///< by QueueKind

/// What runs actions in the order of their issue.
struct Queue {
  std::string name;
  QueueKind kind = QueueKind::Compute;
};

enum class ActionKind {
  Input,
  Run,
  Gather,
  Reduce,
  AllToAll,
  Add,
  Send,
  Recv,
  Norm,
  Agree,
  Update,
  Map,
  Fold,
  Copy,
  Shift
};
/// By ActionKind.
inline constexpr const char *const kActionKinds[] = {"input",  "run",  "gather", "reduce", "all_to_all",
                                                     "add",    "send", "recv",   "norm",   "agree",
                                                     "update", "map",  "fold",   "copy",   "shift"};
inline constexpr int kActionKindCount = static_cast<int>(ActionKind::Shift) + 1;
static_assert(sizeof kActionKinds / sizeof *kActionKinds == kActionKindCount);

/// What a run is of a block: forward, the part of backward that feeds other blocks, weight gradients, or
/// forward of an evaluation.
enum class Phase { Forward, Backward, Weights, Evaluation, Update };
/// By Phase.
inline constexpr const char *const kPhases[] = {"F", "B", "W", "E", "U"};

/// A running statistic, and where among a micro-batch's statistics lies what is folded into it.
struct Folded {
  int64_t place = 0, elements = 0; ///< bytes, f32
  double momentum = 0;             ///< what a micro-batch leaves of the running value
};

/// One entry of the schedule. JSON: `kind` by lower-case name, `phase` by letter.
struct Action {
  ActionKind kind = ActionKind::Run;
  int64_t queue = 0;            ///< index into Position::queues
  Phase phase = Phase::Forward; ///< Run
  std::string name;             ///< for messages and traces: "block 3 F", "gather b2"
  std::vector<int64_t> waits;   ///< indices of actions that must be complete before it starts
  std::vector<Ref> refs; ///< Input: target; Run: the segment's arguments; Gather: slice, target; Reduce:
                         ///< whole, target; AllToAll, Shift, Copy: source, target; Add: target, source; Send,
                         ///< Recv: the value; Norm: gradient,
  ///< record; Agree: norms' records, losses, parts of metrics, outputs; Update: parameter, gradient, states;
  ///< Map: what its kernel takes; Fold: all ranks' statistics, then a target for each of `folds`
  Ref temp; ///< Run: scratch, if any; Update: this rank's record of norms where it is a `direction`, else all
            ///< ranks', if any
  std::string symbol;      ///< Run: the segment; Update, Map: the kernel
  int64_t micro_batch = 0; ///< Input, Run: position in the rank's run order
  bool accumulate = false; ///< Run, Reduce
  bool fast = false;       ///< Reduce: in the engine's own order
  bool whole = false;      ///< Norm: of all that the rank has of the bucket's gradient, not of its slice
  int64_t bytes = 0; ///< Gather: of one slice; AllToAll: for one member; Shift, Send, Recv: of the value;
                     ///< Copy; Fold: of one micro-batch
  std::vector<Folded> folds;
  int64_t elements = 0;     ///< Reduce: of one slice; Add; Update; Map: of these or rows
  int64_t grain = 4096;     ///< Map: a thread takes a multiple of it
  std::string type = "f32"; ///< Reduce, Add, Norm: element type of the gradient, f32, bf16 or f16
  int64_t input = 0;        ///< Input: index into Program::inputs; -1: the micro-batch's context (Scalars.h)
  int64_t communicator =
      -1;           ///< Gather, Reduce, AllToAll, Shift, Send, Recv, Agree: index into Program::communicators
  int64_t peer = 0; ///< Send, Recv: place among the communicator's members
  std::string tag;  ///< Send, Recv: the value and micro-batch; equal on both ends
  std::string
      traffic; ///< Gather, Send, Recv: all_gather, send_recv, tied or an axis of values
               ///< (tensor_parallel, sequence_parallel); AllToAll, Shift: such an axis, absent: all_to_all
  int64_t bucket = -1; ///< Gather, Reduce, Norm, Update, Run of an update: index into Program::buckets
  int64_t norms = 0;   ///< Agree: how many of `refs` are records
  /// Agree: of each part of a metric that is measured here, where its elements begin among those that a
  /// micro-batch gives of all metrics, and how many they are; as many of the last `refs` as there are
  /// micro-batches are each part's.
  std::vector<int64_t> places, lengths;
  /// Agree: the outputs that are computed here (indices into Program::outputs) and bytes of each; their
  /// places are the last `refs`, as those of metrics.
  std::vector<int64_t> outputs, output_bytes;
  bool sliced = false; ///< Update: elements start at this rank's slice; Run: of those whose slices have some
  bool direction = false;       ///< Update: of states alone, with what another one of the bucket goes by
  bool unpadded = false;        ///< Update: of parameters alone, not of what lies between them
  int64_t from = 0;             ///< Update: so many elements behind that; Run: in the bucket
  std::vector<int64_t> changes; ///< buffers that outlive the step and that it writes to
  std::vector<Ref> others;      ///< what it touches beside `refs` and `temp`
  int64_t use =
      -1; ///< index into Program::uses: what it does with `refs`, `temp` and `others`, in this order
};

/// A position's actions in order of issue. Those of a table are read when somebody asks for them first, by
/// any thread; copies share what was read. An Error of status 1 then says what is wrong with them.
class Actions {
public:
  using Read = std::function<std::vector<Action>()>;

  const std::vector<Action> &get() const { return later ? readLater() : own; }
  operator const std::vector<Action> &() const { return get(); }
  size_t size() const { return get().size(); }
  const Action &operator[](size_t index) const { return get()[index]; }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }

  /// To build a program.
  std::vector<Action> &edit() { return own; }
  void setLater(Read read);

private:
  struct Later;
  const std::vector<Action> &readLater() const;
  std::vector<Action> own;
  std::shared_ptr<Later> later;
};

inline constexpr int64_t kProductNumbers = 7;

/// What a runtime call of a segment, or an update kernel, computes: for reports only.
struct Call {
  std::string kind;             ///< product, kernel, update or the routine's name
  std::string what;             ///< a product's shape, a kernel's operations
  std::string type;             ///< of the elements it computes with
  int64_t bytes = 0, flops = 0; ///< of one call; of an update, for 64 elements
  /// Matrix products in it, seven numbers each: how many, batch, m, n, k, whether a and b are transposed.
  std::vector<int64_t> products{};
  std::string place{}; ///< a module of the model that it is part of, and how many more
};

/// A device's code for one architecture, in what the object exports as dsopt_images. PTX ends with a zero.
struct Image {
  std::string arch;              ///< sm_90a
  std::string kind;              ///< ptx or cubin
  std::string routine;           ///< of the runtime, by RoutineImages.h; empty: the program's own kernels
  int64_t offset = 0, bytes = 0; ///< from a multiple of DSOPT_IMAGE_ALIGNMENT on
  /// What ptxas says of a cubin: registers of a thread and shared bytes of a block at most, and bytes that
  /// threads of all kernels keep in memory for want of registers.
  int64_t registers = 0, shared = 0, spills = 0;
};

/// Traffic of one rank in one step by logical class, in bytes sent.
struct Traffic {
  int64_t all_gather = 0, reduce_scatter = 0, all_reduce = 0, send_recv = 0, all_to_all = 0, tied = 0,
          tensor_parallel = 0, sequence_parallel = 0;
};

/// What the ranks of one pipeline position do.
struct Position {
  std::vector<Memory> memories; ///< the first one is the device's
  std::vector<Queue> queues;
  std::vector<int64_t> blocks;           ///< half-open range
  std::map<std::string, int64_t> memory; ///< the plan's classes at the peak, and total
  Traffic traffic;
  std::vector<Buffer> buffers;
  /// JSON: an array; or `section`, first byte and bytes of one among the actions that the object keeps apart.
  Actions actions;
  std::vector<Action> updates; ///< those among them that update: what state ranks have, of every position
  /// Parameter values each rank loads before step 0: bucket index, where its
  /// whole (`sliced` false) or this rank's slice of it lies.
  struct Load {
    int64_t bucket = 0;
    Ref target;
    bool sliced = false;
    bool master = false; ///< in f32, beside parameters that are stored in less
  };
  std::vector<Load> loads;
};

/// What a list of positions is run for: a step, an evaluation, a step whose updates lag one behind, a step
/// behind the optimizer's freeze; one that exchanges compressed gradients, one that each rank makes by
/// itself, and one in which ranks meet; the first step behind the freeze since the program was started.
enum class ListKind {
  Step,
  Evaluation,
  DelayedStep,
  FrozenStep,
  CompressedStep,
  LocalStep,
  JoinStep,
  FirstFrozenStep
};
/// In the program table.
inline constexpr const char *const kListNames[] = {"positions",  "evaluation", "delayed", "frozen",
                                                   "compressed", "local",      "join",    "first"};
inline constexpr size_t kListKinds = std::size(kListNames);
inline ListKind kindOfList(size_t list) { return static_cast<ListKind>(list % kListKinds); }

/// What the ranks do at one size of the program's dimension, all in the same arenas. Empty: there is none.
struct Lists {
  std::vector<Position> positions;                         ///< of a step
  std::vector<Position> evaluation;                        ///< of an evaluation; absent where a step is one
  std::array<std::vector<Position>, kListKinds - 2> later; ///< of other steps, by ListKind

  const std::vector<Position> &of(ListKind kind) const {
    return kind == ListKind::Step         ? positions
           : kind == ListKind::Evaluation ? evaluation
                                          : later[static_cast<size_t>(kind) - 2];
  }
  std::vector<Position> &of(ListKind kind) {
    return const_cast<std::vector<Position> &>(std::as_const(*this).of(kind));
  }
};

/// The program at a smaller size of its dimension.
struct Variant : Lists {
  int64_t size = 0;
  std::vector<std::vector<int64_t>> shapes;  ///< of a micro-batch, by input
  std::vector<std::vector<int64_t>> outputs; ///< the same by output
};

/// When steps of 0/1 Adam are of which kind (LocalSteps.h). No clipper: there are none of them.
struct LocalPolicy {
  int64_t var_update_scaler = 0, local_step_scaler = 0, local_step_clipper = 0;
};

struct Program : Lists {
  int64_t version = 0; ///< DSOPT_ABI_VERSION
  std::string dsopt;   ///< version of the compiler
  std::string command; ///< the compiler's command line
  std::string model, model_folder;
  std::string target = "cpu";        ///< or cuda: where the first memory and its kernels are
  std::string arch;                  ///< the host's, resolved: znver4, x86-64-v3 ...
  std::vector<std::string> features; ///< CPU features it needs, as __builtin_cpu_supports names them
  std::vector<Image> images;         ///< of a device's kernels and of the routines used; none for the host
  Grid grid;                         ///< JSON: the sizes of its axes
  int64_t zero = 0, threads = 1;
  int64_t K = 1, V = 1, M = 1; ///< micro-batches of a step, reduction shards, micro-batches a rank
  int64_t T = 1; ///< tensor shards: what is cut over tp is computed in as many pieces at every degree
  int64_t Q = 1; ///< sequence shards: the same of sp
  int64_t micro_batch_size = 0; ///< rows, 0 if the inputs have no common first dimension
  std::string accumulate;       ///< local or sharded
  std::string schedule, precision, gradient_type, optimizer;
  std::string matmul_precision = "highest"; ///< of a device's fp32 products; or high: by TF32
  std::string gather_type = "param", reduce_type = "gradient"; ///< what goes between ranks; or int8, int4
  std::string compress_gradients = "none";                     ///< the method that they travel by
  std::string gemm_table = "none"; ///< which products a table leaves to the library: a hash of them
  int64_t node_size = 0;           ///< where gradients are added in nodes first: ranks of one
  std::string init;                ///< initial values: model, or normal:DEVIATION
  bool clip = false;               ///< clipping is compiled in
  int64_t delayed_update = 0;      ///< the first step whose updates lag one behind; 0: none
  int64_t freeze_step = 0;         ///< applied steps before the frozen ones; 0: there are none
  LocalPolicy local_policy;        ///< of an optimizer whose ranks move apart behind that
  int64_t flops = 0;               ///< of one step over all ranks
  double bubble = 0;
  std::map<std::string, std::string> defaults; ///< run options given to the compiler, by name
  std::vector<Input> inputs;
  std::map<std::string, std::string> bound; ///< inputs of the model that are constants, and their values
  std::vector<Metric> metrics;              ///< that are logged beside the loss
  std::vector<Output> outputs;              ///< instead of a loss; then it does not train
  std::vector<Parameter> parameters;        ///< in the model's order
  std::vector<Bucket> buckets;
  std::vector<RankGroups> communicators;
  bool trains = true;             ///< else a step is an evaluation
  int64_t sequences = 0;          ///< of a program that generates: how many it keeps; 0: it does not
  int64_t context = 0, chunk = 0; ///< of such a one: positions of each, and most rows of a run
  std::string_view texts;         ///< its TokenizerFiles, packed; not of the table, empty: none are carried
  std::string dimension;          ///< that has variants, empty: none
  int64_t size = 0;               ///< of the dimension in what is no variant: the largest
  std::vector<Variant> variants;  ///< by size, ascending
  std::vector<Call> calls;
  std::map<std::string, std::vector<int64_t>> segment_calls; ///< of a segment, in order: indices into `calls`
  std::map<std::string, int64_t> update_calls;               ///< of an update kernel
  /// What actions touch, as DSOPT_CHECK_ACCESSES compares it with what they do. Three numbers for each range
  /// of bytes: which of the action's addresses, how many bytes, and 1 where it reads them, 2 where it writes
  /// them, 3 for both.
  std::vector<std::vector<int64_t>> uses;

  /// Pipeline positions, data-parallel ranks of one, which have other rows of the data, sequence-parallel
  /// ranks of one of these, and tensor-parallel ranks.
  int64_t pp() const { return grid.size(Axis::pp); }
  int64_t dp() const { return grid.dataParallel(); }
  int64_t sp() const { return grid.size(Axis::sp); }
  int64_t tp() const { return grid.size(Axis::tp); }
  int64_t ranks() const { return grid.size(); }
  /// Slices of a bucket, and the elements of one.
  int64_t slices() const { return grid.slices(); }
  int64_t sliceOf(const Bucket &bucket) const { return bucket.padded / slices(); }
  /// The rank of a position that has this slice of buckets, and is this one along tp.
  int rankAt(int64_t position, int64_t slice, int64_t tensorRank = 0) const {
    return static_cast<int>(position * grid.perPosition() + slice * grid.stride(Axis::sp) + tensorRank);
  }
};

/// Whole pages for so many bytes.
inline int64_t pages(int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
/// Bytes of the arena of each of a position's ranks: its memories but that on disk, each from a page on.
inline int64_t arenaOf(const Position &position) {
  int64_t bytes = 0;
  for (const Memory &memory : position.memories)
    if (memory.kind != MemoryKind::Disk)
      bytes = pages(bytes) + memory.bytes;
  return bytes;
}

/// Whether an action is the engine's, not the rank's own.
inline bool communicates(ActionKind kind) {
  return kind == ActionKind::Gather || kind == ActionKind::Reduce || kind == ActionKind::AllToAll ||
         kind == ActionKind::Shift || kind == ActionKind::Send || kind == ActionKind::Recv ||
         kind == ActionKind::Agree;
}

/// What the ranks do, by ListKind, at the largest size first and then at each variant's.
inline const std::vector<Position> &positionsOf(const Program &program, size_t list) {
  ListKind kind = kindOfList(list);
  return list < kListKinds ? program.of(kind) : program.variants[list / kListKinds - 1].of(kind);
}
inline size_t countLists(const Program &program) { return kListKinds * (1 + program.variants.size()); }

/// The micro-batch (0 <= index < K) that data-parallel rank `dpRank` runs at
/// position `p` of its run order (DESIGN 2.1 rule 4).
inline int64_t microBatchIndex(const Program &program, int64_t dpRank, int64_t p) {
  int64_t q = program.V / program.dp();
  if (program.accumulate == "local")
    return dpRank * program.M + p;
  return dpRank * program.M + (p % q) * (program.K / program.V) + p / q;
}

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_PROGRAM_H

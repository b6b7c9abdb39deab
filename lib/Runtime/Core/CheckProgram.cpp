//===- CheckProgram.cpp - what the runtime relies on without looking -------===//

#include "CheckProgram.h"
#include "Core/Addresses.h"
#include "Core/LocalSteps.h"

#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

void badProgram(const std::string &what) { throw Error(StatusInput, "program table: " + what); }

namespace {
[[noreturn]] void bad(const std::string &what) { badProgram(what); }

/// Ranks, micro-batches and the like: what is made of two of them fits into 64 bits.
constexpr int64_t kMost = 1 << 28;

void checkIndex(int64_t index, size_t size, const std::string &where) {
  if (index < 0 || index >= static_cast<int64_t>(size))
    bad(where + ": index " + std::to_string(index) + ", expected less than " + std::to_string(size));
}

void checkCommunicators(const Program &p) {
  // The engine keeps one number for itself.
  if (p.communicators.size() >= Engine::kCommunicators)
    bad(std::to_string(p.communicators.size()) + " communicators, expected less than " +
        std::to_string(Engine::kCommunicators));
  for (const RankGroups &communicator : p.communicators)
    for (size_t i = 0; i < communicator.axes.size(); ++i) {
      const AxisPart &part = communicator.axes[i];
      if (!p.grid.divides(part))
        bad("communicator '" + communicator.name + "' is over " + describe(part) + ", but there are " +
            std::to_string(p.grid.size(part.axis)) + " ranks along it");
      if (i > 0 && communicator.axes[i - 1].axis >= part.axis)
        bad("communicator '" + communicator.name + "' has " + describe(part) + " behind " +
            describe(communicator.axes[i - 1]));
    }
}

/// The shards of a rank are neighbours: of each group of as many runs as there are shards, each has the one
/// that its number says. Only a shard of one run may have padding.
void checkShards(const Program &p, const Parameter &parameter) {
  const std::vector<Part> &parts = parameter.parts;
  int64_t mine = static_cast<int64_t>(parts.size()), shards = mine * p.grid.size(Axis::tp),
          run = parts[0].run, elements = elementsOf(parameter), each = (elements + shards - 1) / shards;
  if (parts[0].elements == run && each <= run && (shards - 1) * run < elements)
    each = run;
  for (int64_t i = 0; i < mine; ++i) {
    const Part &part = parts[i];
    if (part.run < 1 || part.run != run || each % run || part.begin != i * run || part.step != mine * run ||
        part.stride != shards * run || part.elements != each || (each != run && each * shards != elements))
      bad("shard " + std::to_string(i) + " of parameter '" + parameter.name + "' has " +
          std::to_string(part.elements) + " elements, in runs of " + std::to_string(part.run) + " every " +
          std::to_string(part.stride) + " from " + std::to_string(part.begin) + " on and " +
          std::to_string(part.step) + " for each rank, expected one of " + std::to_string(shards) +
          " equal shards of " + std::to_string(elements) + " elements");
  }
}

/// All of a parameter lies somewhere, once.
void checkParts(const Program &p, const Parameter &parameter) {
  std::string where = "parameter '" + parameter.name + "'";
  checkIndex(parameter.bucket, p.buckets.size(), "bucket of " + where);
  if (parameter.parts.empty() && p.buckets[parameter.bucket].distinct)
    bad(where + " lies whole in bucket '" + p.buckets[parameter.bucket].name + "', which has shards");
  bool isShard = !parameter.parts.empty() && parameter.parts[0].isShard();
  if (isShard)
    checkShards(p, parameter);
  int64_t end = 0;
  for (const Part &part : parameter.parts) {
    checkIndex(part.bucket, p.buckets.size(), "bucket of a part of " + where);
    if (part.isShard() != isShard || p.buckets[part.bucket].distinct != isShard)
      bad(where + " has a " + (part.isShard() ? "shard" : "tile") + " in bucket '" +
          p.buckets[part.bucket].name +
          "', expected shards in buckets that are distinct, nothing else there");
    int64_t room = p.buckets[part.bucket].elements;
    if ((part.begin != end && !isShard) || part.elements < 1 || part.elements > room ||
        part.bucket_offset < 0 || part.bucket_offset > room - part.elements)
      bad("a part of " + where + " has " + std::to_string(part.elements) + " elements from " +
          std::to_string(part.begin) + " on, at " + std::to_string(part.bucket_offset) + " in a bucket of " +
          std::to_string(room) + ", expected those from " + std::to_string(end) + " on inside of it");
    end += part.elements;
  }
  if (!parameter.parts.empty() && !isShard && end != elementsOf(parameter))
    bad("the parts of " + where + " have " + std::to_string(end) + " elements, expected " +
        std::to_string(elementsOf(parameter)));
}

void checkMembers(const Program &p, int64_t position, const Action &action, const std::string &where) {
  checkIndex(action.communicator, p.communicators.size(), where + ": communicator");
  const std::vector<AxisPart> &axes = p.communicators[action.communicator].axes;
  int64_t size = p.grid.count(axes);
  if (action.kind == ActionKind::Agree && size != p.ranks())
    bad(where + ": " + std::to_string(size) + " ranks agree, expected all " + std::to_string(p.ranks()));
  if (action.kind != ActionKind::Send && action.kind != ActionKind::Recv)
    return;
  checkIndex(action.peer, size, where + ": peer");
  for (int64_t rank = position * p.grid.perPosition(); rank < (position + 1) * p.grid.perPosition(); ++rank)
    if (p.grid.index(rank, axes) == action.peer)
      bad(where + ": rank " + std::to_string(rank) + " is its own peer");
}

/// What this runtime has: the device's memory, then the host's, then the disk's, and as many queues of the
/// engine as that has.
void checkMachine(const Position &position) {
  if (position.memories.empty())
    bad("a position has no memory, expected the device's");
  for (size_t i = 0; i < position.memories.size(); ++i) {
    const Memory &memory = position.memories[i];
    if (static_cast<size_t>(memory.kind) != i)
      bad("memory " + std::to_string(i) + " is of kind " + kMemoryKinds[static_cast<int>(memory.kind)] +
          ": this runtime has one memory of kind device, then one of kind host, then one of kind disk");
    if (memory.alignment < 1 || memory.bytes < 0)
      bad("memory " + std::to_string(i) + " has " + std::to_string(memory.bytes) +
          " bytes and an alignment of " + std::to_string(memory.alignment));
  }
  int64_t flying = 0;
  for (const Queue &queue : position.queues)
    flying += queue.kind == QueueKind::Communication;
  if (flying >= Engine::kSlots)
    bad(std::to_string(flying) + " queues of the engine, expected less than " +
        std::to_string(Engine::kSlots));
}

/// Whether a queue of that kind runs such actions.
bool runs(QueueKind queue, ActionKind action) {
  if (communicates(action))
    return queue == QueueKind::Communication;
  if (action == ActionKind::Copy)
    return queue == QueueKind::Copy || queue == QueueKind::Disk;
  return queue == QueueKind::Compute || (queue == QueueKind::Host && action != ActionKind::Run);
}

/// Whether a copy is from the disk or to it.
bool isOnDisk(const Position &position, const Action &copy) {
  int ends = 0;
  for (const Ref &ref : copy.refs)
    ends += position.memories[position.buffers[ref.buffer].memory].kind == MemoryKind::Disk;
  return ends == 1;
}

/// Actions are on queues that can run them. The operations of a communicator fly one at a time, and so do
/// reductions, which share the staging buffer: each on one queue.
void checkQueues(const Program &p, const Position &position, const std::vector<Action> &actions) {
  std::map<std::string, int64_t> used; ///< by what has to be on one queue
  for (size_t i = 0; i < actions.size(); ++i) {
    const Action &action = actions[i];
    std::string where = "action " + std::to_string(i) + " (" + action.name + ")";
    checkIndex(action.queue, position.queues.size(), where + ": queue");
    const Queue &queue = position.queues[action.queue];
    if (!runs(queue.kind, action.kind))
      bad(where + ": on queue '" + queue.name + "' of kind " + kQueueKinds[static_cast<int>(queue.kind)] +
          ", which does not run actions of kind " + kActionKinds[static_cast<int>(action.kind)]);
    if (action.kind == ActionKind::Copy && isOnDisk(position, action) != (queue.kind == QueueKind::Disk))
      bad(where + ": on queue '" + queue.name + "' of kind " + kQueueKinds[static_cast<int>(queue.kind)] +
          ", expected one of kind disk for what is copied between disk and host, else of kind copy");
    auto expectOne = [&](const std::string &what) {
      int64_t first = used.emplace(what, action.queue).first->second;
      if (first != action.queue)
        bad(where + ": on queue '" + queue.name + "', but " + what + " are on queue '" +
            position.queues[first].name + "'");
    };
    if (communicates(action.kind) && action.kind != ActionKind::Send && action.kind != ActionKind::Recv)
      expectOne("collectives of communicator '" + p.communicators[action.communicator].name + "'");
    if (action.kind == ActionKind::Reduce)
      expectOne("reductions");
  }
}

void checkRef(const Position &position, const Ref &ref, const std::string &where) {
  checkIndex(ref.buffer, position.buffers.size(), where + ": buffer");
  checkIndex(ref.slot, position.buffers[ref.buffer].slots, where + ": slot");
}

/// A program for a device has its code, one for the host has none.
void checkImages(const Program &p) {
  if (p.target != "cpu" && p.target != "cuda")
    bad("target '" + p.target + "', expected cpu or cuda");
  if (p.images.empty() != (p.target == "cpu"))
    bad("target " + p.target + " with " + std::to_string(p.images.size()) + " images, expected " +
        (p.target == "cpu" ? "none" : "one or more"));
  for (const Image &image : p.images) {
    std::string where =
        "image" + (image.routine.empty() ? "" : " of " + image.routine) + " for '" + image.arch + "'";
    if (image.kind != "ptx" && image.kind != "cubin")
      bad(where + ": kind '" + image.kind + "', expected ptx or cubin");
    int64_t end = 0;
    if (image.offset < 0 || image.offset % DSOPT_IMAGE_ALIGNMENT || image.bytes < 1 ||
        __builtin_add_overflow(image.offset, image.bytes, &end))
      bad(where + ": " + std::to_string(image.bytes) + " bytes at " + std::to_string(image.offset) +
          ", expected 1 or more at a multiple of " + std::to_string(DSOPT_IMAGE_ALIGNMENT));
  }
}

/// All but what it does.
void checkPosition(const Program &p, const Position &position) {
  checkMachine(position);
  for (const Buffer &buffer : position.buffers) {
    checkIndex(buffer.memory, position.memories.size(), "memory of buffer '" + buffer.name + "'");
    const Memory &memory = position.memories[buffer.memory];
    if (!buffer.symbol.empty() && p.target == "cpu")
      continue;
    int64_t end = 0;
    if (buffer.offset < 0 || buffer.slots < 1 || buffer.stride < 0 || buffer.bytes < 0 ||
        __builtin_mul_overflow(buffer.slots - 1, buffer.stride, &end) ||
        __builtin_add_overflow(end, buffer.offset, &end) || __builtin_add_overflow(end, buffer.bytes, &end) ||
        end > memory.bytes)
      bad("buffer '" + buffer.name + "' does not lie in the " + kMemoryKinds[static_cast<int>(memory.kind)] +
          " memory of " + std::to_string(memory.bytes) + " bytes");
    if (buffer.offset % memory.alignment)
      bad("buffer '" + buffer.name + "' is at " + std::to_string(buffer.offset) +
          ", expected a multiple of " + std::to_string(memory.alignment));
  }
  for (const Position::Load &load : position.loads) {
    checkIndex(load.bucket, p.buckets.size(), "bucket of a load");
    checkRef(position, load.target, "target of a load");
  }
}
/// An agreement's parts of metrics lie in their buffers, and among what is measured.
void checkMeasures(const Program &p, const Position &position, const Action &action,
                   const std::string &where) {
  int64_t parts = action.places.size(), outputs = action.outputs.size();
  int64_t others = action.refs.size() - action.norms - (parts + outputs) * p.M;
  if (action.lengths.size() != action.places.size() || action.output_bytes.size() != action.outputs.size() ||
      others < 0)
    bad(where + ": " + std::to_string(parts) + " places, " + std::to_string(action.lengths.size()) +
        " lengths and " + std::to_string(action.refs.size()) + " addresses of metrics and others");
  for (int64_t i = 0; i < outputs * p.M; ++i) {
    const Ref &ref = action.refs[action.refs.size() - outputs * p.M + i];
    checkIndex(action.outputs[i / p.M], p.outputs.size(), where + ": output");
    const Output &output = p.outputs[action.outputs[i / p.M]];
    int64_t bytes = elementBytes(output.type);
    for (int64_t size : output.shape)
      bytes *= size;
    if (bytes != action.output_bytes[i / p.M] || ref.offset + bytes > position.buffers[ref.buffer].bytes)
      bad(where + ": " + std::to_string(action.output_bytes[i / p.M]) + " bytes of output '" + output.name +
          "' in buffer '" + position.buffers[ref.buffer].name + "', expected " + std::to_string(bytes));
  }
  for (int64_t i = 0; i < parts * p.M; ++i) {
    int64_t place = action.places[i / p.M], length = action.lengths[i / p.M];
    const Ref &ref = action.refs[action.norms + others + i];
    if (place < 0 || length < 1 || length > elementsOf(p.metrics) - place)
      bad(where + ": elements " + std::to_string(place) + " to " + std::to_string(place + length) +
          " of metrics, which have " + std::to_string(elementsOf(p.metrics)));
    if (ref.offset + length * static_cast<int64_t>(sizeof(float)) > position.buffers[ref.buffer].bytes)
      bad(where + ": a part of a metric lies outside of buffer '" + position.buffers[ref.buffer].name + "'");
  }
}
} // namespace

void checkActions(const Program &p, int64_t place, const Position &position,
                  const std::vector<Action> &actions) {
  auto checkRecord = [&](const Ref &ref, const std::string &where) {
    if (ref.offset || ref.steps != AxisSteps{} || position.buffers[ref.buffer].bytes < kNormWords * 8)
      bad(where + ": the record of a norm, expected " + std::to_string(kNormWords * 8) +
          " bytes at the start of a slot");
  };
  for (size_t i = 0; i < actions.size(); ++i) {
    const Action &action = actions[i];
    std::string where = "action " + std::to_string(i) + " (" + action.name + ")";
    for (const Ref &ref : action.refs)
      checkRef(position, ref, where);
    if (action.temp.buffer >= 0)
      checkRef(position, action.temp, where);
    for (const Ref &ref : action.others)
      checkRef(position, ref, where);
    for (int64_t wait : action.waits)
      checkIndex(wait, i, where + ": wait");
    for (int64_t buffer : action.changes)
      checkIndex(buffer, position.buffers.size(), where + ": changed buffer");
    auto expect = [&](size_t least) {
      if (action.refs.size() < least)
        bad(where + ": got " + std::to_string(action.refs.size()) + " addresses, expected " +
            std::to_string(least));
    };
    switch (action.kind) {
    case ActionKind::Input:
      if (action.input != -1)
        checkIndex(action.input, p.inputs.size(), where + ": input");
      expect(1);
      break;
    case ActionKind::Gather:
    case ActionKind::Reduce:
    case ActionKind::AllToAll:
    case ActionKind::Shift:
      checkMembers(p, place, action, where);
      [[fallthrough]];
    case ActionKind::Add:
    case ActionKind::Copy:
      expect(2);
      break;
    case ActionKind::Send:
    case ActionKind::Recv:
      checkMembers(p, place, action, where);
      expect(1);
      break;
    case ActionKind::Agree:
      checkMembers(p, place, action, where);
      expect(action.norms);
      for (int64_t i = 0; i < action.norms; ++i)
        checkRecord(action.refs[i], where);
      checkMeasures(p, position, action, where);
      break;
    case ActionKind::Norm:
      checkIndex(action.bucket, p.buckets.size(), where + ": bucket");
      expect(2);
      checkRecord(action.refs[1], where);
      break;
    case ActionKind::Update:
      checkIndex(action.bucket, p.buckets.size(), where + ": bucket");
      if (action.from < 0 || action.elements < 0)
        bad(where + ": " + std::to_string(action.elements) + " elements from " + std::to_string(action.from) +
            " on");
      if (action.temp.buffer >= 0 && action.temp.offset % static_cast<int64_t>(sizeof(int64_t)))
        bad(where + ": its record is at byte " + std::to_string(action.temp.offset) +
            ", expected a multiple of " + std::to_string(sizeof(int64_t)));
      // The norms are those of the master, where there is one.
      expect(action.direction && action.temp.buffer >= 0 && p.buckets[action.bucket].type != "f32" ? 3 : 2);
      break;
    case ActionKind::Map:
      expect(1);
      if (action.elements < 0 || action.grain < 1)
        bad(where + ": " + std::to_string(action.elements) + " elements by " + std::to_string(action.grain));
      break;
    case ActionKind::Fold:
      expect(1 + action.folds.size());
      break;
    case ActionKind::Run:
      if (action.sliced || action.bucket != -1)
        checkIndex(action.bucket, p.buckets.size(), where + ": bucket");
      break;
    }
    if (!isElement(action.type))
      bad(where + ": element type '" + action.type + "', expected f32, bf16 or f16");
  }
  checkQueues(p, position, actions);
}

void checkGrid(const std::array<int64_t, kAxes> &axes) {
  int64_t ranks = 1;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (axes[axis] < 1 || axes[axis] > kMost / ranks)
      bad(std::string("grid has ") + std::to_string(axes[axis]) + " ranks along " + kAxisNames[axis] +
          ", expected 1 or more, at most " + std::to_string(kMost) + " in all");
    ranks *= axes[axis];
  }
}

void checkProgram(const Program &p) {
  auto positive = [](int64_t value, const char *what) {
    if (value < 1 || value > kMost)
      bad(std::string(what) + " is " + std::to_string(value) + ", expected 1 or more, at most " +
          std::to_string(kMost));
  };
  positive(p.K, "K");
  positive(p.V, "V");
  positive(p.M, "M");
  positive(p.T, "T");
  if (p.T % p.grid.size(Axis::tp))
    bad("T = " + std::to_string(p.T) + " is no multiple of the " + std::to_string(p.grid.size(Axis::tp)) +
        " ranks along tp");
  positive(p.Q, "Q");
  if (p.Q % p.sp())
    bad("Q = " + std::to_string(p.Q) + " is no multiple of the " + std::to_string(p.sp()) +
        " ranks along sp");
  if (p.K != p.dp() * p.M || p.K % p.V || p.V % p.dp())
    bad("K = " + std::to_string(p.K) + ", V = " + std::to_string(p.V) + ", M = " + std::to_string(p.M) +
        " do not fit dp = " + std::to_string(p.dp()));
  if (static_cast<int64_t>(p.positions.size()) != p.pp())
    bad("got " + std::to_string(p.positions.size()) + " positions, expected pp = " + std::to_string(p.pp()));
  for (const Metric &metric : p.metrics)
    if (static_cast<int64_t>(metric.parts.size()) != partsOf(metric.combine) ||
        std::any_of(metric.parts.begin(), metric.parts.end(), [&](int64_t elements) {
          return elements < 1 || elements > kMost || elements != metric.parts.front();
        }))
      bad("metric '" + metric.name + "' has " + std::to_string(metric.parts.size()) + " parts, expected " +
          std::to_string(partsOf(metric.combine)) + " of one size");
  for (const Parameter &parameter : p.parameters)
    checkParts(p, parameter);
  for (const Bucket &bucket : p.buckets)
    if (bucket.padded % (64 * p.slices()) || bucket.padded < bucket.elements)
      bad("bucket '" + bucket.name + "': " + std::to_string(bucket.padded) +
          " elements with padding, expected " + std::to_string(bucket.elements) +
          " or more and a multiple of 64 for each slice");
  if (movesApart(p) && std::min(p.local_policy.var_update_scaler, p.local_policy.local_step_scaler) < 1)
    bad("local_policy has a scaler of " +
        std::to_string(std::min(p.local_policy.var_update_scaler, p.local_policy.local_step_scaler)) +
        ", expected 1 or more");
  checkImages(p);
  checkCommunicators(p);
  for (const auto &[segment, calls] : p.segment_calls)
    for (int64_t call : calls)
      checkIndex(call, p.calls.size(), "calls of segment '" + segment + "'");
  for (const auto &[kernel, call] : p.update_calls)
    checkIndex(call, p.calls.size(), "call of update kernel '" + kernel + "'");
  for (size_t list = 0; list < countLists(p); ++list) {
    if (kindOfList(list) == ListKind::DelayedStep && positionsOf(p, list).empty() == (p.delayed_update > 0))
      bad("delayed_update is " + std::to_string(p.delayed_update) + ", but list " + std::to_string(list) +
          " has " + std::to_string(positionsOf(p, list).size()) + " positions");
    bool isPhase = kindOfList(list) > ListKind::FrozenStep && kindOfList(list) <= ListKind::JoinStep;
    if ((kindOfList(list) == ListKind::FrozenStep || isPhase) &&
        positionsOf(p, list).empty() == (p.freeze_step > 0 && isPhase == movesApart(p)))
      bad("freeze_step is " + std::to_string(p.freeze_step) + ", but list " + std::to_string(list) + " has " +
          std::to_string(positionsOf(p, list).size()) + " positions");
    const std::vector<Position> &positions = positionsOf(p, list);
    if (!positions.empty() && positions.size() != p.positions.size())
      bad("got " + std::to_string(positions.size()) + " positions of list " + std::to_string(list) +
          ", expected " + std::to_string(p.positions.size()));
    for (size_t place = 0; place < positions.size(); ++place) {
      checkPosition(p, positions[place]);
      if (positions[place].queues.size() != p.positions[place].queues.size())
        bad("got " + std::to_string(positions[place].queues.size()) + " queues of list " +
            std::to_string(list) + ", expected the step's " +
            std::to_string(p.positions[place].queues.size()));
    }
  }
  int64_t last = 0;
  for (const Variant &variant : p.variants) {
    if (variant.size <= last || variant.size >= p.size || variant.shapes.size() != p.inputs.size() ||
        variant.outputs.size() != p.outputs.size() || variant.positions.empty())
      bad("the variant of size " + std::to_string(variant.size) + " does not fit the program's");
    last = variant.size;
    for (size_t i = 0; i < p.inputs.size(); ++i)
      if (variant.shapes[i].size() != p.inputs[i].shape.size())
        bad("the variant of size " + std::to_string(variant.size) + " has another rank of input '" +
            p.inputs[i].name + "'");
  }
}

} // namespace dsopt::runtime

//===- Program.cpp - reads the program table -------------------------------===//

#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Session.h"

#include <nlohmann/json.hpp>

namespace dsopt::runtime {
namespace {

using Json = nlohmann::json;

[[noreturn]] void bad(const std::string &what) { throw Error(StatusInput, "program table: " + what); }

/// Reads members of one object; what is absent keeps its default.
class Reader {
public:
  Reader(const Json &json, std::string where) : json(json), where(std::move(where)) {
    if (!json.is_object())
      bad(this->where + ": expected an object, got " + json.type_name());
  }
  template <typename T> Reader &operator()(const char *key, T &value) {
    if (auto it = json.find(key); it != json.end())
      convert(*it, value, where + "." + key);
    return *this;
  }
  template <typename T, typename Read> Reader &list(const char *key, std::vector<T> &values, Read read) {
    auto it = json.find(key);
    if (it == json.end())
      return *this;
    if (!it->is_array())
      bad(where + "." + key + ": expected an array, got " + it->type_name());
    values.reserve(it->size());
    for (const Json &item : *it) {
      T value;
      read(item, value, where + "." + key + "[" + std::to_string(values.size()) + "]");
      values.push_back(std::move(value));
    }
    return *this;
  }

  template <typename T> static void convert(const Json &json, T &value, const std::string &where) {
    try {
      json.get_to(value);
    } catch (const Json::exception &) {
      bad(where + ": unexpected value " + json.dump().substr(0, 60));
    }
  }
  static void convert(const Json &json, Ref &ref, const std::string &where) {
    if (!json.is_array() || json.size() != 4)
      bad(where + ": expected an address of four numbers, got " + json.dump().substr(0, 60));
    convert(json[0], ref.buffer, where);
    convert(json[1], ref.slot, where);
    convert(json[2], ref.offset, where);
    convert(json[3], ref.per_rank, where);
  }
  static void convert(const Json &json, bool &value, const std::string &where) {
    if (json.is_boolean())
      value = json.get<bool>();
    else if (json.is_number_integer())
      value = json.get<int64_t>() != 0;
    else
      bad(where + ": expected true or false, got " + json.dump().substr(0, 60));
  }

  template <typename E, size_t N> Reader &name(const char *key, E &value, const char *const (&names)[N]) {
    std::string text;
    (*this)(key, text);
    if (json.find(key) == json.end())
      return *this;
    for (size_t i = 0; i < N; ++i)
      if (text == names[i]) {
        value = static_cast<E>(i);
        return *this;
      }
    bad(where + "." + key + ": unknown name '" + text + "'");
  }

private:
  const Json &json;
  std::string where;
};

void readRef(const Json &json, Ref &ref, const std::string &where) { Reader::convert(json, ref, where); }

void readInput(const Json &json, Input &input, const std::string &where) {
  Reader(json, where)("name", input.name)("type", input.type)("shape", input.shape)("label", input.label)(
      "ignore_index", input.ignore_index)("bound", input.bound)("looked_up", input.looked_up)(
      "least", input.least)("source", input.source);
}

void readParameter(const Json &json, Parameter &p, const std::string &where) {
  Reader(json, where)("name", p.name)("type", p.type)("shape", p.shape)("trainable", p.trainable)(
      "constant", p.constant)("file", p.file)("offset", p.offset)("bytes", p.bytes)("source", p.source)(
      "file_bytes", p.file_bytes)("chunks", p.chunks)("bucket", p.bucket)("bucket_offset", p.bucket_offset);
}

void readBucket(const Json &json, Bucket &bucket, const std::string &where) {
  Reader(json, where)("name", bucket.name)("type", bucket.type)("elements", bucket.elements)(
      "padded", bucket.padded)("trainable", bucket.trainable)("tied", bucket.tied)("owner", bucket.owner)
      .list("groups", bucket.groups, [](const Json &json, Group &group, const std::string &where) {
        Reader(json, where)("begin", group.begin)("end", group.end)("lr_scale", group.lr_scale)(
            "decay_scale", group.decay_scale);
      });
}

void readGroups(const Json &json, RankGroups &groups, const std::string &where) {
  Reader(json, where)("name", groups.name)("groups", groups.groups);
}

void readBuffer(const Json &json, Buffer &b, const std::string &where) {
  Reader(json, where)("name", b.name)("kind", b.kind)("memory", b.memory)("offset", b.offset)(
      "bytes", b.bytes)("slots", b.slots)("stride", b.stride)("persistent", b.persistent)("symbol", b.symbol);
}

void readAction(const Json &json, Action &a, const std::string &where) {
  Reader(json, where)
      .name("kind", a.kind, kActionKinds)
      .name("phase", a.phase, kPhases)("queue", a.queue)("name", a.name)("waits", a.waits)
      .list("refs", a.refs, readRef)("temp", a.temp)("symbol", a.symbol)("micro_batch", a.micro_batch)(
          "accumulate", a.accumulate)("bytes", a.bytes)("elements", a.elements)("type", a.type)(
          "input", a.input)("communicator", a.communicator)("peer", a.peer)("tag", a.tag)(
          "traffic", a.traffic)("bucket", a.bucket)("norms", a.norms)("sliced", a.sliced)
      .list("folds", a.folds, [](const Json &json, Folded &folded, const std::string &where) {
        Reader(json, where)("place", folded.place)("elements", folded.elements)("momentum", folded.momentum);
      });
}

void readPosition(const Json &json, Position &position, const std::string &where) {
  Reader reader(json, where);
  reader
      .list("memories", position.memories,
            [](const Json &json, Memory &memory, const std::string &where) {
              Reader(json, where)
                  .name("kind", memory.kind, kMemoryKinds)("bytes", memory.bytes)("alignment",
                                                                                  memory.alignment);
            })
      .list("queues", position.queues,
            [](const Json &json, Queue &queue, const std::string &where) {
              Reader(json, where)("name", queue.name).name("kind", queue.kind, kQueueKinds);
            })("blocks", position.blocks)("memory", position.memory)
      .list("buffers", position.buffers, readBuffer)
      .list("actions", position.actions, readAction)
      .list("loads", position.loads, [](const Json &json, Position::Load &load, const std::string &where) {
        Reader(json, where)("bucket", load.bucket)("target", load.target)("sliced", load.sliced)("master",
                                                                                                 load.master);
      });
  if (auto it = json.find("traffic"); it != json.end()) {
    Traffic &t = position.traffic;
    Reader(*it, where + ".traffic")("all_gather", t.all_gather)("reduce_scatter", t.reduce_scatter)(
        "all_reduce", t.all_reduce)("send_recv", t.send_recv)("all_to_all", t.all_to_all)("tied", t.tied);
  }
}

void readVariant(const Json &json, Variant &variant, const std::string &where) {
  Reader(json, where)("size", variant.size)("shapes", variant.shapes)
      .list("positions", variant.positions, readPosition)
      .list("evaluation", variant.evaluation, readPosition);
}

void readCall(const Json &json, Call &call, const std::string &where) {
  Reader(json, where)("kind", call.kind)("what", call.what)("type", call.type)("bytes", call.bytes)(
      "flops", call.flops)("products", call.products)("place", call.place);
  if (call.products.size() % kProductNumbers)
    bad(where + ": " + std::to_string(call.products.size()) +
        " numbers of products, expected seven for each");
}

void checkIndex(int64_t index, size_t size, const std::string &where) {
  if (index < 0 || index >= static_cast<int64_t>(size))
    bad(where + ": index " + std::to_string(index) + ", expected less than " + std::to_string(size));
}

void checkCommunicators(const Program &p) {
  // The engine keeps one number for itself.
  if (p.communicators.size() >= Engine::kCommunicators)
    bad(std::to_string(p.communicators.size()) + " communicators, expected less than " +
        std::to_string(Engine::kCommunicators));
  int64_t ranks = p.dp * p.pp;
  for (const RankGroups &communicator : p.communicators) {
    std::vector<char> seen(ranks);
    for (const std::vector<int> &group : communicator.groups)
      for (int rank : group) {
        std::string where = "communicator '" + communicator.name + "'";
        checkIndex(rank, ranks, where + ": rank");
        if (seen[rank]++)
          bad(where + " has rank " + std::to_string(rank) + " twice");
      }
  }
}

/// The groups of a communicator that a position's ranks are in.
struct PositionGroups {
  int64_t first = 0; ///< rank
  std::vector<const std::vector<int> *> groups;
};

/// All ranks of a position run its actions, each in its own group: of one size.
PositionGroups findGroups(const Program &p, int64_t position, int64_t communicator,
                          const std::string &where) {
  checkIndex(communicator, p.communicators.size(), where + ": communicator");
  const RankGroups &all = p.communicators[communicator];
  PositionGroups found{position * p.dp, {}};
  for (int64_t rank = found.first; rank < found.first + p.dp; ++rank) {
    const std::vector<int> *group = all.find(static_cast<int>(rank));
    if (!group)
      bad(where + ": rank " + std::to_string(rank) + " is not a member of communicator '" + all.name + "'");
    found.groups.push_back(group);
    if (group->size() != found.groups.front()->size())
      bad(where + ": groups of " + std::to_string(found.groups.front()->size()) + " and " +
          std::to_string(group->size()) + " ranks in communicator '" + all.name + "', expected equal sizes");
  }
  return found;
}

void checkMembers(const Program &p, const PositionGroups &found, const Action &action,
                  const std::string &where) {
  int64_t size = found.groups.front()->size();
  if (action.kind == ActionKind::Agree && size != p.dp * p.pp)
    bad(where + ": " + std::to_string(size) + " ranks agree, expected all " + std::to_string(p.dp * p.pp));
  if (action.kind != ActionKind::Send && action.kind != ActionKind::Recv)
    return;
  checkIndex(action.peer, size, where + ": peer");
  for (size_t i = 0; i < found.groups.size(); ++i)
    if ((*found.groups[i])[action.peer] == found.first + static_cast<int64_t>(i))
      bad(where + ": rank " + std::to_string(found.first + i) + " is its own peer");
}

/// What this runtime has: one memory, queues of its own threads and of the engine.
void checkMachine(const Position &position) {
  if (position.memories.empty())
    bad("a position has no memory, expected the device's");
  for (size_t i = 0; i < position.memories.size(); ++i)
    if (const Memory &memory = position.memories[i]; i > 0 || memory.kind != MemoryKind::Device)
      bad("memory " + std::to_string(i) + " is of kind " + kMemoryKinds[static_cast<int>(memory.kind)] +
          ": this runtime has one memory, of kind device");
  if (position.memories[0].alignment < 1 || position.memories[0].bytes < 0)
    bad("memory 0 has " + std::to_string(position.memories[0].bytes) + " bytes and an alignment of " +
        std::to_string(position.memories[0].alignment));
  if (position.queues.size() >= Engine::kSlots)
    bad(std::to_string(position.queues.size()) + " queues, expected less than " +
        std::to_string(Engine::kSlots));
  for (const Queue &queue : position.queues)
    if (queue.kind != QueueKind::Compute && queue.kind != QueueKind::Communication)
      bad("queue '" + queue.name + "' is of kind " + kQueueKinds[static_cast<int>(queue.kind)] +
          ", which this runtime does not have");
}

/// Actions are on queues that can run them. The operations of a communicator fly one at a time, and so do
/// reductions, which share the staging buffer: each on one queue.
void checkQueues(const Program &p, const Position &position) {
  std::map<std::string, int64_t> used; ///< by what has to be on one queue
  for (size_t i = 0; i < position.actions.size(); ++i) {
    const Action &action = position.actions[i];
    std::string where = "action " + std::to_string(i) + " (" + action.name + ")";
    checkIndex(action.queue, position.queues.size(), where + ": queue");
    const Queue &queue = position.queues[action.queue];
    QueueKind expected = communicates(action.kind) ? QueueKind::Communication : QueueKind::Compute;
    if (queue.kind != expected)
      bad(where + ": on queue '" + queue.name + "' of kind " + kQueueKinds[static_cast<int>(queue.kind)] +
          ", expected " + kQueueKinds[static_cast<int>(expected)]);
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

void checkPosition(const Program &p, int64_t place, const Position &position) {
  checkMachine(position);
  for (const Buffer &buffer : position.buffers) {
    checkIndex(buffer.memory, position.memories.size(), "memory of buffer '" + buffer.name + "'");
    const Memory &memory = position.memories[buffer.memory];
    if (!buffer.symbol.empty())
      continue;
    if (buffer.offset < 0 || buffer.slots < 1 ||
        buffer.offset + (buffer.slots - 1) * buffer.stride + buffer.bytes > memory.bytes)
      bad("buffer '" + buffer.name + "' does not lie in the " + kMemoryKinds[static_cast<int>(memory.kind)] +
          " memory of " + std::to_string(memory.bytes) + " bytes");
    if (buffer.offset % memory.alignment)
      bad("buffer '" + buffer.name + "' is at " + std::to_string(buffer.offset) +
          ", expected a multiple of " + std::to_string(memory.alignment));
  }
  auto checkRef = [&](const Ref &ref, const std::string &where) {
    checkIndex(ref.buffer, position.buffers.size(), where + ": buffer");
    checkIndex(ref.slot, position.buffers[ref.buffer].slots, where + ": slot");
  };
  auto checkRecord = [&](const Ref &ref, const std::string &where) {
    if (ref.offset || ref.per_rank || position.buffers[ref.buffer].bytes < kNormWords * 8)
      bad(where + ": the record of a norm, expected " + std::to_string(kNormWords * 8) +
          " bytes at the start of a slot");
  };
  std::map<int64_t, PositionGroups> groups; ///< by communicator
  auto groupsOf = [&](const Action &action, const std::string &where) -> const PositionGroups & {
    auto known = groups.find(action.communicator);
    if (known == groups.end())
      known = groups.emplace(action.communicator, findGroups(p, place, action.communicator, where)).first;
    return known->second;
  };
  for (const Position::Load &load : position.loads) {
    checkIndex(load.bucket, p.buckets.size(), "bucket of a load");
    checkRef(load.target, "target of a load");
  }
  for (size_t i = 0; i < position.actions.size(); ++i) {
    const Action &action = position.actions[i];
    std::string where = "action " + std::to_string(i) + " (" + action.name + ")";
    for (const Ref &ref : action.refs)
      checkRef(ref, where);
    if (action.temp.buffer >= 0)
      checkRef(action.temp, where);
    for (int64_t wait : action.waits)
      checkIndex(wait, i, where + ": wait");
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
      checkMembers(p, groupsOf(action, where), action, where);
      [[fallthrough]];
    case ActionKind::Add:
      expect(2);
      break;
    case ActionKind::Send:
    case ActionKind::Recv:
      checkMembers(p, groupsOf(action, where), action, where);
      expect(1);
      break;
    case ActionKind::Agree:
      checkMembers(p, groupsOf(action, where), action, where);
      expect(action.norms);
      for (int64_t i = 0; i < action.norms; ++i)
        checkRecord(action.refs[i], where);
      break;
    case ActionKind::Norm:
      checkIndex(action.bucket, p.buckets.size(), where + ": bucket");
      expect(2);
      checkRecord(action.refs[1], where);
      break;
    case ActionKind::Update:
      checkIndex(action.bucket, p.buckets.size(), where + ": bucket");
      expect(2);
      break;
    case ActionKind::Map:
      expect(1);
      break;
    case ActionKind::Fold:
      expect(1 + action.folds.size());
      break;
    case ActionKind::Run:
      break;
    }
    if (!isElement(action.type))
      bad(where + ": element type '" + action.type + "', expected f32 or bf16");
  }
  checkQueues(p, position);
}

/// What the rest of the runtime relies on without looking.
void check(const Program &p) {
  auto positive = [](int64_t value, const char *what) {
    if (value < 1)
      bad(std::string(what) + " is " + std::to_string(value) + ", expected 1 or more");
  };
  positive(p.dp, "dp");
  positive(p.pp, "pp");
  positive(p.K, "K");
  positive(p.V, "V");
  positive(p.M, "M");
  if (p.K != p.dp * p.M || p.K % p.V || p.V % p.dp)
    bad("K = " + std::to_string(p.K) + ", V = " + std::to_string(p.V) + ", M = " + std::to_string(p.M) +
        " do not fit dp = " + std::to_string(p.dp));
  if (static_cast<int64_t>(p.positions.size()) != p.pp)
    bad("got " + std::to_string(p.positions.size()) + " positions, expected pp = " + std::to_string(p.pp));
  for (const Parameter &parameter : p.parameters)
    checkIndex(parameter.bucket, p.buckets.size(), "bucket of parameter '" + parameter.name + "'");
  for (const Bucket &bucket : p.buckets)
    if (bucket.padded % (64 * p.dp) || bucket.padded < bucket.elements)
      bad("bucket '" + bucket.name + "': " + std::to_string(bucket.padded) +
          " elements with padding, expected " + std::to_string(bucket.elements) +
          " or more and a multiple of 64 dp");
  checkCommunicators(p);
  for (const auto &[segment, calls] : p.segment_calls)
    for (int64_t call : calls)
      checkIndex(call, p.calls.size(), "calls of segment '" + segment + "'");
  for (const auto &[kernel, call] : p.update_calls)
    checkIndex(call, p.calls.size(), "call of update kernel '" + kernel + "'");
  for (size_t list = 0; list < countLists(p); ++list) {
    const std::vector<Position> &positions = positionsOf(p, list);
    if (!positions.empty() && positions.size() != p.positions.size())
      bad("got " + std::to_string(positions.size()) + " positions of list " + std::to_string(list) +
          ", expected " + std::to_string(p.positions.size()));
    for (size_t place = 0; place < positions.size(); ++place) {
      checkPosition(p, static_cast<int64_t>(place), positions[place]);
      if (positions[place].queues.size() != p.positions[place].queues.size())
        bad("got " + std::to_string(positions[place].queues.size()) + " queues of list " +
            std::to_string(list) + ", expected the step's " +
            std::to_string(p.positions[place].queues.size()));
    }
  }
  int64_t last = 0;
  for (const Variant &variant : p.variants) {
    if (variant.size <= last || variant.size >= p.size || variant.shapes.size() != p.inputs.size() ||
        variant.positions.empty())
      bad("the variant of size " + std::to_string(variant.size) + " does not fit the program's");
    last = variant.size;
    for (size_t i = 0; i < p.inputs.size(); ++i)
      if (variant.shapes[i].size() != p.inputs[i].shape.size())
        bad("the variant of size " + std::to_string(variant.size) + " has another rank of input '" +
            p.inputs[i].name + "'");
  }
}

} // namespace

Program parseProgram(const char *text, size_t bytes) {
  Json json = Json::parse(text, text + bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    bad("not JSON");
  Program p;
  Reader reader(json, "program");
  reader("version", p.version);
  if (p.version != DSOPT_ABI_VERSION)
    bad("version " + std::to_string(p.version) + ", this runtime expects " +
        std::to_string(DSOPT_ABI_VERSION) + ": compile the program anew");
  reader("dsopt", p.dsopt)("command", p.command)("model", p.model)("model_folder", p.model_folder)(
      "arch", p.arch)("features", p.features)("dp", p.dp)("pp", p.pp)("zero", p.zero)("threads", p.threads)(
      "K", p.K)("V", p.V)("M", p.M)("micro_batch_size",
                                    p.micro_batch_size)("accumulate", p.accumulate)("schedule", p.schedule)(
      "precision", p.precision)("gradient_type", p.gradient_type)("optimizer", p.optimizer)("clip", p.clip)(
      "init", p.init)("flops", p.flops)("bubble", p.bubble)("trains", p.trains)("defaults", p.defaults)
      .list("inputs", p.inputs, readInput)
      .list("parameters", p.parameters, readParameter)
      .list("buckets", p.buckets, readBucket)
      .list("communicators", p.communicators, readGroups)
      .list("positions", p.positions, readPosition)
      .list("evaluation", p.evaluation, readPosition)("dimension", p.dimension)("size", p.size)
      .list("variants", p.variants, readVariant)
      .list("calls", p.calls, readCall)("segment_calls", p.segment_calls)("update_calls", p.update_calls);
  check(p);
  return p;
}

} // namespace dsopt::runtime

//===- Program.cpp - reads the program table -------------------------------===//

#include "CheckProgram.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Session.h"

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>

namespace dsopt::runtime {
namespace {

using Json = nlohmann::json;

[[noreturn]] void bad(const std::string &what) { badProgram(what); }

/// The beginning of a value, however deep it is.
std::string shown(const Json &json) {
  for (const Json &child : json)
    if (child.is_structured() && !child.empty())
      return json.type_name();
  return json.dump().substr(0, 60);
}

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
      bad(where + ": unexpected value " + shown(json));
    }
  }
  static void convert(const Json &json, Ref &ref, const std::string &where) {
    constexpr size_t first = 3; // of the steps, of which there is none along the first axis
    if (!json.is_array() || json.size() <= first || json.size() >= first + kAxes)
      bad(where + ": expected an address of four to seven numbers, got " + shown(json));
    convert(json[0], ref.buffer, where);
    convert(json[1], ref.slot, where);
    convert(json[2], ref.offset, where);
    for (size_t i = first; i < json.size(); ++i)
      convert(json[i], ref.steps[1 + i - first], where);
  }
  static void convert(const Json &json, bool &value, const std::string &where) {
    if (json.is_boolean())
      value = json.get<bool>();
    else if (json.is_number_integer())
      value = json.get<int64_t>() != 0;
    else
      bad(where + ": expected true or false, got " + shown(json));
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

void readMetric(const Json &json, Metric &metric, const std::string &where) {
  Reader(json, where)("name", metric.name)("parts", metric.parts).name("combine", metric.combine, kCombines);
}

void readOutput(const Json &json, Output &output, const std::string &where) {
  Reader(json, where)("name", output.name)("type", output.type)("shape", output.shape);
}

void readParameter(const Json &json, Parameter &p, const std::string &where) {
  Reader(json, where)("name", p.name)("type", p.type)("shape", p.shape)("trainable", p.trainable)(
      "constant", p.constant)("file", p.file)("offset", p.offset)("bytes", p.bytes)("source", p.source)(
      "file_bytes", p.file_bytes)("chunks", p.chunks)("bucket", p.bucket)("bucket_offset", p.bucket_offset)
      .list("parts", p.parts, [](const Json &json, Part &part, const std::string &where) {
        Reader(json, where)("bucket", part.bucket)("bucket_offset", part.bucket_offset)("begin", part.begin)(
            "elements", part.elements)("run", part.run)("stride", part.stride)("step", part.step);
      });
}

void readBucket(const Json &json, Bucket &bucket, const std::string &where) {
  Reader(json, where)("name", bucket.name)("type", bucket.type)("elements", bucket.elements)("padded",
                                                                                             bucket.padded)(
      "trainable", bucket.trainable)("tied", bucket.tied)("distinct", bucket.distinct)("owner", bucket.owner)
      .list("groups", bucket.groups, [](const Json &json, Group &group, const std::string &where) {
        Reader(json, where)("begin", group.begin)("end", group.end)("lr_scale", group.lr_scale)(
            "decay_scale", group.decay_scale);
      });
}

void readAxis(const Json &json, AxisPart &part, const std::string &where) {
  if (!json.is_array() || json.size() != 3)
    bad(where + ": expected an axis, its part and a count, got " + shown(json));
  std::string name;
  int64_t kind = 0;
  Reader::convert(json[0], name, where);
  Reader::convert(json[1], kind, where);
  Reader::convert(json[2], part.count, where);
  std::optional<Axis> axis = findAxis(name);
  if (!axis || kind < AxisPart::Whole || kind > AxisPart::Outer)
    bad(where + ": there is no such axis, or part of one: " + shown(json));
  part.axis = *axis;
  part.part = static_cast<AxisPart::Part>(kind);
}

void readGroups(const Json &json, RankGroups &groups, const std::string &where) {
  Reader(json, where)("name", groups.name).list("axes", groups.axes, readAxis);
}

void readBuffer(const Json &json, Buffer &b, const std::string &where) {
  Reader(json, where)("name", b.name)("kind", b.kind)("memory", b.memory)("offset", b.offset)(
      "bytes", b.bytes)("payload", b.payload)("slots", b.slots)("stride", b.stride)(
      "persistent", b.persistent)("symbol", b.symbol);
}

void readAction(const Json &json, Action &a, const std::string &where) {
  Reader(json, where)
      .name("kind", a.kind, kActionKinds)
      .name("phase", a.phase, kPhases)("queue", a.queue)("name", a.name)("waits", a.waits)
      .list("refs", a.refs, readRef)("temp", a.temp)("symbol", a.symbol)("micro_batch", a.micro_batch)(
          "accumulate", a.accumulate)("fast", a.fast)("whole", a.whole)("bytes", a.bytes)(
          "elements", a.elements)("grain", a.grain)("type", a.type)("input", a.input)(
          "communicator", a.communicator)("peer", a.peer)("tag", a.tag)("traffic", a.traffic)(
          "bucket", a.bucket)("norms", a.norms)("places", a.places)("lengths", a.lengths)(
          "outputs", a.outputs)("output_bytes", a.output_bytes)("sliced", a.sliced)("direction", a.direction)(
          "unpadded", a.unpadded)("from", a.from)("changes", a.changes)("use", a.use)
      .list("others", a.others, readRef)
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
      .list("actions", position.actions.edit(), readAction)
      .list("updates", position.updates, readAction)
      .list("loads", position.loads, [](const Json &json, Position::Load &load, const std::string &where) {
        Reader(json, where)("bucket", load.bucket)("target", load.target)("sliced", load.sliced)("master",
                                                                                                 load.master);
      });
  for (const Action &action : position.actions.edit())
    if (action.kind == ActionKind::Update || (action.kind == ActionKind::Run && action.bucket >= 0))
      position.updates.push_back(action);
  if (auto it = json.find("traffic"); it != json.end()) {
    Traffic &t = position.traffic;
    Reader(*it, where + ".traffic")("all_gather", t.all_gather)("reduce_scatter", t.reduce_scatter)(
        "all_reduce", t.all_reduce)("send_recv", t.send_recv)("all_to_all", t.all_to_all)("tied", t.tied)(
        "tensor_parallel", t.tensor_parallel)("sequence_parallel", t.sequence_parallel);
  }
}

void readLists(Reader &reader, Lists &lists) {
  for (size_t kind = 0; kind < kListKinds; ++kind)
    reader.list(kListNames[kind], lists.of(static_cast<ListKind>(kind)), readPosition);
}

void readVariant(const Json &json, Variant &variant, const std::string &where) {
  Reader reader(json, where);
  reader("size", variant.size)("shapes", variant.shapes)("outputs", variant.outputs);
  readLists(reader, variant);
}

void readImage(const Json &json, Image &image, const std::string &where) {
  Reader(json, where)("routine", image.routine)("arch", image.arch)("kind", image.kind)("offset",
                                                                                        image.offset)(
      "bytes", image.bytes)("registers", image.registers)("shared", image.shared)("spills", image.spills);
}

void readCall(const Json &json, Call &call, const std::string &where) {
  Reader(json, where)("kind", call.kind)("what", call.what)("type", call.type)("bytes", call.bytes)(
      "flops", call.flops)("products", call.products)("place", call.place);
  if (call.products.size() % kProductNumbers)
    bad(where + ": " + std::to_string(call.products.size()) +
        " numbers of products, expected seven for each");
}

Json parse(std::string_view text, const std::string &where) {
  Json json = Json::parse(text.data(), text.data() + text.size(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    bad(where + "not JSON");
  return json;
}

/// Sections are read when they are needed, and checked then.
class Sections {
public:
  /// Of the largest size, or of a variant.
  Sections(const Program &program, std::string_view text, const Variant *variant) : text(text) {
    auto known = std::make_shared<Program>();
    known->grid = program.grid;
    known->communicators = program.communicators;
    known->inputs = program.inputs;
    known->metrics = program.metrics;
    known->outputs = program.outputs;
    for (size_t i = 0; variant && i < known->outputs.size(); ++i)
      known->outputs[i].shape = variant->outputs[i];
    known->M = program.M;
    for (const Bucket &bucket : program.buckets)
      known->buckets.emplace_back().type = bucket.type;
    frame = known;
  }

  /// `list` are the positions of the table that `positions` were read from.
  void connect(const Json &list, std::vector<Position> &positions, const std::string &where) const {
    for (size_t place = 0; place < positions.size(); ++place)
      connect(list[place], positions[place], static_cast<int64_t>(place),
              where + "[" + std::to_string(place) + "]");
  }

private:
  void connect(const Json &json, Position &position, int64_t place, const std::string &where) const {
    auto it = json.find("section");
    if (it == json.end()) {
      checkActions(*frame, place, position, position.actions);
      return;
    }
    std::vector<uint64_t> section;
    Reader::convert(*it, section, where + ".section");
    if (section.size() != 2 || section[0] > text.size() || section[1] > text.size() - section[0])
      bad(where + ".section: " + shown(*it) + " does not lie in the " + std::to_string(text.size()) +
          " bytes of actions");
    std::string_view part = text.substr(section[0], section[1]);
    auto owner = std::make_shared<Position>(position);
    position.actions.setLater([frame = frame, owner, place, part, where = where + ".section"] {
      Json json = parse(part, where + ": ");
      if (!json.is_array())
        bad(where + ": expected an array, got " + json.type_name());
      std::vector<Action> actions(json.size());
      for (size_t i = 0; i < actions.size(); ++i)
        readAction(json[i], actions[i], where + "[" + std::to_string(i) + "]");
      checkActions(*frame, place, *owner, actions);
      return actions;
    });
  }

  std::string_view text;
  std::shared_ptr<const Program> frame; ///< what actions are checked with
};
} // namespace

struct Actions::Later {
  Read read;
  // Not std::call_once, which may never return once `read` threw: the thread sanitizer's does not.
  std::mutex reading;
  std::atomic<bool> done{false};
  std::vector<Action> actions;
};

void Actions::setLater(Read read) {
  later = std::make_shared<Later>();
  later->read = std::move(read);
}

const std::vector<Action> &Actions::readLater() const {
  if (later->done.load(std::memory_order_acquire))
    return later->actions;
  std::lock_guard<std::mutex> lock(later->reading);
  if (!later->done) {
    later->actions = later->read();
    later->read = nullptr;
    later->done.store(true, std::memory_order_release);
  }
  return later->actions;
}

Program parseProgram(const char *text, size_t bytes, std::string_view actions) {
  Json json = parse({text, bytes}, "");
  Program p;
  Reader reader(json, "program");
  reader("version", p.version);
  if (p.version != DSOPT_ABI_VERSION)
    bad("version " + std::to_string(p.version) + ", this runtime expects " +
        std::to_string(DSOPT_ABI_VERSION) + ": compile the program anew");
  std::array<int64_t, kAxes> axes;
  axes.fill(1);
  reader("grid", axes);
  checkGrid(axes);
  p.grid = Grid(axes);
  reader("dsopt", p.dsopt)("command", p.command)("model", p.model)("model_folder", p.model_folder)(
      "target", p.target)("arch", p.arch)("features", p.features)("zero", p.zero)("threads", p.threads)(
      "K", p.K)("V", p.V)("M", p.M)("T", p.T)("Q", p.Q)("micro_batch_size", p.micro_batch_size)(
      "accumulate", p.accumulate)("schedule", p.schedule)("precision", p.precision)(
      "gradient_type", p.gradient_type)("optimizer", p.optimizer)("matmul_precision", p.matmul_precision)(
      "gather_type", p.gather_type)("reduce_type", p.reduce_type)("compress_gradients", p.compress_gradients)(
      "gemm_table", p.gemm_table)("node_size", p.node_size)("clip", p.clip)(
      "delayed_update", p.delayed_update)("freeze_step", p.freeze_step)("init", p.init)("flops", p.flops)(
      "bubble", p.bubble)("trains", p.trains)("defaults", p.defaults)("bound", p.bound)
      .list("images", p.images, readImage)
      .list("inputs", p.inputs, readInput)
      .list("metrics", p.metrics, readMetric)
      .list("outputs", p.outputs, readOutput)
      .list("parameters", p.parameters, readParameter)
      .list("buckets", p.buckets, readBucket)
      .list("communicators", p.communicators, readGroups)("sequences", p.sequences)("context", p.context)(
          "chunk", p.chunk)("dimension", p.dimension)("size", p.size)
      .list("variants", p.variants, readVariant)
      .list("calls", p.calls, readCall)("segment_calls", p.segment_calls)("update_calls",
                                                                          p.update_calls)("uses", p.uses);
  readLists(reader, p);
  if (auto it = json.find("local_policy"); it != json.end()) {
    LocalPolicy &policy = p.local_policy;
    Reader(*it, "program.local_policy")("var_update_scaler", policy.var_update_scaler)(
        "local_step_scaler", policy.local_step_scaler)("local_step_clipper", policy.local_step_clipper);
  }
  checkProgram(p);
  auto connect = [&](const Json &json, Lists &lists, const std::string &where,
                     const Variant *variant = nullptr) {
    Sections sections(p, actions, variant);
    for (size_t kind = 0; kind < kListKinds; ++kind)
      if (auto &positions = lists.of(static_cast<ListKind>(kind)); !positions.empty())
        sections.connect(json[kListNames[kind]], positions, where + "." + kListNames[kind]);
  };
  connect(json, p, "program");
  for (size_t i = 0; i < p.variants.size(); ++i)
    connect(json["variants"][i], p.variants[i], "program.variants[" + std::to_string(i) + "]",
            &p.variants[i]);
  return p;
}

} // namespace dsopt::runtime

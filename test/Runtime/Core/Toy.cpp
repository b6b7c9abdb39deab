//===- Toy.cpp - a program of two blocks without a compiler ----------------===//

#include "Toy.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Scalars.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime::test {

ToyTrouble toyTrouble;
static int64_t currentStep = 0;

Folder::Folder() {
  char name[] = "/tmp/dsopt-test-XXXXXX";
  path = mkdtemp(name);
}
Folder::~Folder() { (void)!system(("rm -rf " + path).c_str()); }

float ToyInputs::value(int64_t step, int64_t microBatch, int64_t i) {
  return std::sin(static_cast<float>(step * 1000 + microBatch * 200 + i));
}

void ToyInputs::fill(int64_t step, int64_t microBatch, int64_t input, void *target) {
  currentStep = step;
  if (input == 0)
    for (int64_t i = 0; i < kToyElements; ++i)
      static_cast<float *>(target)[i] = value(step, microBatch, i);
  else
    for (int64_t i = 0; i < 4; ++i)
      static_cast<int64_t *>(target)[i] =
          (toyTrouble.noLabels && step == toyTrouble.step && microBatch == 2) || i != 1 ? -100 : i;
}

// Segments. Gradients are the last argument.
static float *at(void *const *buffers, int i) { return static_cast<float *>(buffers[i]); }

static void forward0(dsopt_rt *, void *const *b, char *, int64_t) {
  for (int64_t i = 0; i < kToyElements; ++i)
    at(b, 1)[i] = at(b, 0)[i] * at(b, 2)[i]; // x, h, w0
}
static void forward1(dsopt_rt *, void *const *b, char *, int64_t) {
  float loss = 0; // h, labels, loss, w1
  for (int64_t i = 0; i < kToyElements; ++i)
    loss += at(b, 0)[i] * at(b, 3)[i];
  if (currentStep == toyTrouble.step && toyTrouble.nanLoss)
    loss = std::numeric_limits<float>::quiet_NaN();
  if (currentStep == toyTrouble.step && toyTrouble.kill)
    raise(SIGKILL);
  *at(b, 2) = loss;
}
static void backward1(dsopt_rt *, void *const *b, char *temp, int64_t) {
  for (int64_t i = 0; i < kToyElements; ++i) // seed, dh, w1; through the scratch
    reinterpret_cast<float *>(temp)[i] = *at(b, 0) * at(b, 2)[i];
  for (int64_t i = 0; i < kToyElements; ++i)
    at(b, 1)[i] = reinterpret_cast<float *>(temp)[i];
}
static void weight1(dsopt_rt *rt, void *const *b, char *temp, int64_t accumulate) {
  for (int64_t i = 0; i < kToyElements; ++i) // h, seed, w1.grad
    reinterpret_cast<float *>(temp)[i] = at(b, 0)[i] * *at(b, 1);
  dsopt_rt_accumulate(rt, kToyElements, reinterpret_cast<float *>(temp), at(b, 2), DSOPT_F32, accumulate);
}
static void weight0(dsopt_rt *rt, void *const *b, char *temp, int64_t accumulate) {
  for (int64_t i = 0; i < kToyElements; ++i) // x, dh, w0.grad
    reinterpret_cast<float *>(temp)[i] = at(b, 0)[i] * at(b, 1)[i];
  if (currentStep == toyTrouble.step && toyTrouble.infGradient >= 0)
    reinterpret_cast<float *>(temp)[toyTrouble.infGradient] = std::numeric_limits<float>::infinity();
  dsopt_rt_accumulate(rt, kToyElements, reinterpret_cast<float *>(temp), at(b, 2), DSOPT_F32, accumulate);
}
static void update(int64_t begin, int64_t end, void *const *args) {
  float *p = static_cast<float *>(args[0]), *g = static_cast<float *>(args[1]);
  const float *s = static_cast<const float *>(args[2]);
  for (int64_t i = begin; i < end; ++i)
    p[i] -= s[DSOPT_LR] * (g[i] * s[DSOPT_FACTOR]);
}

static void direct(int64_t begin, int64_t end, void *const *args) {
  float *g = static_cast<float *>(args[1]);
  const float *s = static_cast<const float *>(args[2]);
  for (int64_t i = begin; i < end; ++i)
    g[i] *= s[DSOPT_FACTOR];
}
static void trust(int64_t begin, int64_t end, void *const *args) {
  float *p = static_cast<float *>(args[0]), *g = static_cast<float *>(args[1]);
  const float *s = static_cast<const float *>(args[2]);
  for (int64_t i = begin; i < end; ++i)
    p[i] -= s[DSOPT_LR] * (g[i] * s[DSOPT_TRUST]);
}

void *toySymbol(const std::string &name) {
  if (name == "update.direction")
    return reinterpret_cast<void *>(direct);
  if (name == "update.norms")
    return reinterpret_cast<void *>(trust);
  if (name == "block0.F")
    return reinterpret_cast<void *>(forward0);
  if (name == "block1.F")
    return reinterpret_cast<void *>(forward1);
  if (name == "block1.B")
    return reinterpret_cast<void *>(backward1);
  if (name == "block1.W")
    return reinterpret_cast<void *>(weight1);
  if (name == "block0.W")
    return reinterpret_cast<void *>(weight0);
  if (name == "update.sgd")
    return reinterpret_cast<void *>(update);
  return nullptr;
}

namespace {

/// The queues of a position.
enum ToyQueue { Compute, Comm, Send, Recv };

/// Writes one position.
struct Builder {
  const Program &program;
  Position position;

  explicit Builder(const Program &program) : program(program) {
    position.memories = {{MemoryKind::Device}};
    position.queues = {{"compute"},
                       {"comm", QueueKind::Communication},
                       {"send", QueueKind::Communication},
                       {"recv", QueueKind::Communication}};
  }
  int64_t buffer(const std::string &name, int64_t bytes, int64_t slots = 1) {
    for (size_t i = 0; i < position.buffers.size(); ++i)
      if (position.buffers[i].name == name)
        return i;
    Buffer buffer;
    buffer.name = name;
    buffer.offset = arenaOf(position);
    buffer.bytes = bytes;
    buffer.slots = slots;
    buffer.stride = (bytes + 63) / 64 * 64;
    buffer.persistent = name.size() > 6 && name.substr(name.size() - 6) == ".param";
    position.memories[0].bytes += buffer.stride * slots;
    position.buffers.push_back(buffer);
    return position.buffers.size() - 1;
  }
  int64_t add(ActionKind kind, ToyQueue queue, std::string name, std::vector<Ref> refs,
              std::vector<int64_t> waits = {}) {
    Action action;
    action.kind = kind;
    action.queue = queue;
    action.name = std::move(name);
    action.refs = std::move(refs);
    action.waits = std::move(waits);
    if (kind == ActionKind::Gather || kind == ActionKind::Reduce)
      action.communicator = 0;
    else if (kind == ActionKind::Send || kind == ActionKind::Recv)
      action.communicator = 1;
    else if (kind == ActionKind::Agree)
      action.communicator = 2;
    position.actions.edit().push_back(action);
    return position.actions.size() - 1;
  }
  Action &last() { return position.actions.edit().back(); }
};

constexpr int64_t kBytes = kToyElements * 4;

Position buildPosition(const Program &program, int64_t index) {
  Builder b(program);
  bool first = index == 0, second = index == program.pp() - 1, split = program.pp() > 1;
  int64_t dp = program.dp(), slice = kBytes / dp, shards = program.V / dp, M = program.M;
  auto ref = [](int64_t buffer, int64_t slot = 0, int64_t perRank = 0) {
    return Ref{buffer, slot, 0, {0, perRank}};
  };
  int64_t x = b.buffer("input.x", kBytes, M), labels = b.buffer("input.labels", 32),
          h = b.buffer("h", kBytes, M), dh = b.buffer("dh", kBytes, M), loss = b.buffer("loss", 4, M),
          seed = b.buffer("seed", 4), temp = b.buffer("temp", kBytes);
  b.buffer("scalars", 64 * 2);
  b.buffer("staging", slice * dp);
  std::vector<int64_t> mine;
  for (int64_t block = first ? 0 : 1; block < (second ? 2 : 1); ++block)
    mine.push_back(block);
  auto name = [&](int64_t block, const char *what) { return "b" + std::to_string(block) + what; };
  bool sliced = program.zero == 3;
  auto whole = [&](int64_t block) { return b.buffer(name(block, sliced ? ".full" : ".param"), kBytes); };
  std::vector<int64_t> gathered;
  for (int64_t block : mine) {
    Position::Load load;
    load.bucket = block;
    load.target = ref(b.buffer(name(block, ".param"), sliced ? slice : kBytes));
    load.sliced = sliced;
    b.position.loads.push_back(load);
    if (sliced && dp > 1) {
      gathered.push_back(
          b.add(ActionKind::Gather, Comm, "gather " + name(block, ""), {load.target, ref(whole(block))}));
      b.last().bytes = slice;
      b.last().traffic = "all_gather";
    }
  }
  // With one rank the slice is the whole.
  auto parameter = [&](int64_t block) {
    return ref(sliced && dp == 1 ? b.buffer(name(block, ".param"), kBytes) : whole(block));
  };
  auto gradient = [&](int64_t block, int64_t shard) {
    return ref(b.buffer(name(block, ".grad.") + std::to_string(shard), kBytes));
  };
  auto run = [&](std::string symbol, int64_t m, std::vector<Ref> refs, std::vector<int64_t> waits) {
    waits.insert(waits.end(), gathered.begin(), gathered.end());
    std::string title = symbol + " " + std::to_string(m) + " " + symbol.back();
    b.add(ActionKind::Run, Compute, title, refs, waits);
    b.last().symbol = symbol;
    b.last().phase = symbol.back() == 'F'   ? Phase::Forward
                     : symbol.back() == 'B' ? Phase::Backward
                                            : Phase::Weights;
    b.last().micro_batch = m;
    b.last().temp = ref(temp);
    return static_cast<int64_t>(b.position.actions.size() - 1);
  };
  auto transfer = [&](ActionKind kind, Ref value, int64_t peer, const std::string &tag,
                      std::vector<int64_t> waits) {
    bool send = kind == ActionKind::Send;
    int64_t at = b.add(kind, send ? Send : Recv, (send ? "send " : "recv ") + tag, {value}, waits);
    b.last().bytes = kBytes;
    b.last().peer = peer;
    b.last().tag = tag;
    b.last().traffic = "send_recv";
    return at;
  };
  auto accumulates = [&](int64_t m) { return m % (M / shards) != 0; };
  auto backward0 = [&](int64_t m, std::vector<int64_t> waits) {
    run("block0.W", m, {ref(x, m), ref(dh, m), gradient(0, m / (M / shards))}, waits);
    b.last().accumulate = accumulates(m);
  };
  for (int64_t m = 0; m < M; ++m) {
    std::string mb = " " + std::to_string(m);
    std::vector<int64_t> ready;
    if (first) {
      b.add(ActionKind::Input, Compute, "input x" + mb, {ref(x, m)});
      b.last().micro_batch = m;
      int64_t forward = run("block0.F", m, {ref(x, m), ref(h, m), parameter(0)}, {});
      if (split)
        transfer(ActionKind::Send, ref(h, m), 1, "h" + mb, {forward});
    } else {
      ready = {transfer(ActionKind::Recv, ref(h, m), 0, "h" + mb, {})};
    }
    if (second) {
      b.add(ActionKind::Input, Compute, "input labels" + mb, {ref(labels)});
      b.last().micro_batch = m;
      b.last().input = 1;
      run("block1.F", m, {ref(h, m), ref(labels), ref(loss, m), parameter(1)}, ready);
      int64_t back = run("block1.B", m, {ref(seed), ref(dh, m), parameter(1)}, {});
      run("block1.W", m, {ref(h, m), ref(seed), gradient(1, m / (M / shards))}, {});
      b.last().accumulate = accumulates(m);
      if (split)
        transfer(ActionKind::Send, ref(dh, m), 0, "dh" + mb, {back});
    }
    if (first && !split)
      backward0(m, {});
  }
  if (first && split)
    for (int64_t m = 0; m < M; ++m)
      backward0(m, {transfer(ActionKind::Recv, ref(dh, m), 1, "dh " + std::to_string(m), {})});
  std::vector<int64_t> reduced;
  for (int64_t block : mine) {
    int64_t computed = b.position.actions.size() - 1;
    if (shards == 2) {
      computed =
          b.add(ActionKind::Add, Compute, "add " + name(block, ""), {gradient(block, 0), gradient(block, 1)});
      b.last().elements = kToyElements;
      b.last().type = "f32";
    }
    while (b.position.actions[computed].queue != Compute)
      --computed;
    if (dp > 1) {
      Ref own = gradient(block, 0);
      own.steps[static_cast<size_t>(dsopt::Axis::edp)] = slice;
      reduced.push_back(b.add(ActionKind::Reduce, Comm, "reduce " + name(block, ""),
                              {gradient(block, 0), own}, {computed}));
      b.last().elements = slice / 4;
      b.last().type = "f32";
    }
  }
  std::vector<Ref> agreed;
  std::vector<int64_t> normed = {static_cast<int64_t>(b.position.actions.size()) - 1};
  while (b.position.actions[normed[0]].queue != Compute)
    --normed[0];
  int64_t norms = b.buffer("norms", kNormWords * 8, 2);
  for (int64_t block : mine) {
    Ref own = gradient(block, 0), record = ref(norms, block);
    own.steps[static_cast<size_t>(dsopt::Axis::edp)] = slice;
    normed.push_back(b.add(ActionKind::Norm, Compute, "norm " + name(block, ""), {own, record}, reduced));
    b.last().bucket = block;
    agreed.push_back(record);
  }
  for (int64_t m = 0; second && m < M; ++m)
    agreed.push_back(ref(loss, m));
  int64_t agree = b.add(ActionKind::Agree, Comm, "agree", agreed, normed);
  b.last().norms = mine.size();
  for (int64_t block : mine) {
    Ref own = gradient(block, 0);
    own.steps[static_cast<size_t>(dsopt::Axis::edp)] = slice;
    Ref value = ref(b.buffer(name(block, ".param"), kBytes), 0, sliced ? 0 : slice);
    int64_t updated = b.add(ActionKind::Update, Compute, "update " + name(block, ""), {value, own}, {agree});
    b.last().symbol = "update.sgd";
    b.last().bucket = block;
    b.last().elements = slice / 4;
    b.last().sliced = true;
    b.last().changes = {value.buffer};
    if (!sliced && dp > 1) {
      b.add(ActionKind::Gather, Comm, "gather " + name(block, ""), {value, ref(whole(block))}, {updated});
      b.last().changes = {whole(block)};
      b.last().bytes = slice;
      b.last().traffic = "all_gather";
    }
  }
  return b.position;
}

} // namespace

void updateByNorms(Program &program) {
  for (Position &position : program.positions) {
    auto add = [&](const std::string &name, int64_t bytes) {
      Buffer buffer;
      buffer.name = name;
      buffer.offset = arenaOf(position);
      buffer.bytes = bytes;
      buffer.stride = (bytes + 63) / 64 * 64;
      position.memories[0].bytes += buffer.stride;
      position.buffers.push_back(buffer);
      return static_cast<int64_t>(position.buffers.size()) - 1;
    };
    std::vector<Action> &actions = position.actions.edit();
    std::vector<Action> updates;
    int64_t bytes = 0;
    for (const Action &action : actions)
      bytes += action.kind == ActionKind::Update ? kTrustWords * 8 : 0;
    int64_t own = add("norms.own", bytes),
            all = program.dp() > 1 ? add("norms.all", bytes * program.dp()) : own, at = 0;
    for (size_t i = 0; i < actions.size(); ++i)
      if (Action &action = actions[i]; action.kind == ActionKind::Update) {
        updates.push_back(action);
        updates.back().symbol = "update.norms";
        updates.back().temp = {all};
        updates.back().waits.clear();
        action.symbol = "update.direction";
        action.direction = true;
        action.temp = {own, 0, at, 0};
        action.changes.clear();
        at += kTrustWords * 8;
      }
    if (program.dp() > 1) {
      Action gather;
      gather.kind = ActionKind::Gather;
      gather.queue = Comm;
      gather.name = "gather norms";
      gather.refs = {{own}, {all}};
      gather.waits = {static_cast<int64_t>(actions.size()) - 1};
      gather.bytes = bytes;
      gather.communicator = 0;
      gather.traffic = "all_gather";
      actions.push_back(gather);
      updates.front().waits = {static_cast<int64_t>(actions.size()) - 1};
    }
    actions.insert(actions.end(), updates.begin(), updates.end());
    // Those of two groups, of three parts of parameters in them, and what adding up takes.
    for (size_t i = 0; i < position.buffers.size(); ++i)
      if (position.buffers[i].name == "scalars") {
        int64_t there = add("scalars", (2 + 3 + 5) * 64);
        position.buffers[i].name = "small scalars";
        std::swap(position.buffers[i], position.buffers[there]);
        break;
      }
  }
}

Program toyProgram(int64_t dp, int64_t pp, int64_t zero, const std::string &folder) {
  Program program;
  program.version = DSOPT_ABI_VERSION;
  program.arch = "x86-64-v3";
  program.model_folder = folder;
  program.grid = dsopt::Grid({pp, dp, 1, 1, 1});
  program.zero = zero;
  program.threads = 2;
  program.K = 4;
  program.V = 2;
  program.M = 4 / dp;
  program.accumulate = "local";
  program.optimizer = "sgd";
  program.clip = true;
  program.inputs = {{"x", "f32", {kToyElements}, false, -100}, {"labels", "i64", {4}, true, -100}};
  // w0 has 100 elements: the rest of its bucket is padding.
  std::vector<float> file(228);
  for (size_t i = 0; i < file.size(); ++i)
    file[i] = std::cos(static_cast<float>(i));
  std::ofstream(folder + "/toy.bin", std::ios::binary).write(reinterpret_cast<char *>(file.data()), 228 * 4);
  for (int64_t block = 0; block < 2; ++block) {
    Parameter p;
    p.name = block ? "a.w1" : "b.w0";
    p.type = "f32";
    p.shape = block ? std::vector<int64_t>{8, 16} : std::vector<int64_t>{100};
    p.file = "toy.bin";
    p.offset = block * 400;
    p.bytes = block ? 512 : 400;
    p.file_bytes = 228 * 4;
    p.chunks = {XXH3_64bits(file.data() + block * 100, p.bytes)};
    p.bucket = block;
    program.parameters.push_back(p);
    Bucket bucket;
    bucket.name = "b" + std::to_string(block);
    bucket.type = "f32";
    bucket.elements = bucket.padded = kToyElements;
    bucket.owner = pp > 1 ? block : 0;
    // Two groups in the second bucket, cut inside a slice boundary.
    bucket.groups = block ? std::vector<Group>{{0, 64, 1.0, true}, {64, 128, 0.5, true}}
                          : std::vector<Group>{{0, 128, 1.0, true}};
    program.buckets.push_back(bucket);
  }
  program.communicators = {{"dp", {{dsopt::Axis::edp}}},
                           {"pp", {{dsopt::Axis::pp}}},
                           {"world", {{dsopt::Axis::pp}, {dsopt::Axis::edp}}}};
  for (int64_t index = 0; index < pp; ++index)
    program.positions.push_back(buildPosition(program, index));
  for (Position &position : program.positions)
    for (const Action &action : position.actions)
      if (action.kind == ActionKind::Update)
        position.updates.push_back(action);
  return program;
}

} // namespace dsopt::runtime::test

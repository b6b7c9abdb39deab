//===- LoadedState.cpp - a run's state from a checkpoint ------------------===//

#include "Core/LocalSteps.h"
#include "Core/Parts.h"
#include "Core/Replaced.h"
#include "Core/SavedState.h"
#include "dsopt/Runtime/Fault.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace dsopt::runtime {
namespace {
using Index = std::unordered_map<std::string, const Parameter *>;

std::string describe(const Parameter &tensor) {
  std::string text = "'" + tensor.name + "' " + tensor.type + " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

/// Runs what reads files: what goes wrong is the checkpoint's fault.
template <typename Body> void reading(Body body) {
  try {
    fault::point("resume.read");
    body();
  } catch (const Error &error) {
    throw Unreadable(error.status, error.what());
  }
}

/// Parameters as a checkpoint has them; what none has (a frozen one that is only stored rounded) as the
/// model.
class CheckpointValues final : public ParameterValues {
public:
  CheckpointValues(const Index &index, ParameterFiles &files,
                   const std::function<std::unique_ptr<ParameterValues>()> &openModel)
      : index(index), files(files), openModel(openModel) {}
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) override {
    auto found = index.find(parameter.name);
    if (found != index.end())
      return reading([&] { files.read(*found->second, begin, end, target); });
    if (!model)
      model = openModel();
    model->read(parameter, begin, end, target);
  }

private:
  const Index &index;
  ParameterFiles &files;
  const std::function<std::unique_ptr<ParameterValues>()> &openModel;
  std::unique_ptr<ParameterValues> model;
};
} // namespace

/// The name of what one rank has without the rank, empty of other tensors: of a worker's error, and of what
/// ranks have while they are `apart`.
static std::string workersOf(const std::string &name, bool apart) {
  for (const char *state : {kWorkerError, kOwnStates[0], kOwnStates[1]}) {
    std::string mark = std::string(".") + state + ".";
    if (size_t at = name.rfind(mark); at != std::string::npos && (apart || state == kWorkerError))
      return name.substr(0, at + mark.size());
  }
  return "";
}

namespace {
/// Elements of a state that each rank has of its own: this rank's, or the mean of all that there were.
struct OwnValues {
  const Index &index;
  ParameterFiles &files;
  int64_t workers; ///< whose mean it is; 0: this rank's
  int64_t dpRank;

  bool has(const std::string &prefix) const {
    return index.count(prefix + std::to_string(workers ? 0 : dpRank));
  }
  void read(const std::string &prefix, int64_t begin, int64_t end, float *target) const {
    auto from = [&](int64_t rank, float *to) {
      reading([&] {
        files.read(*index.at(prefix + std::to_string(rank)), begin, end, reinterpret_cast<char *>(to));
      });
    };
    if (workers == 0)
      return from(dpRank, target);
    std::vector<float> one(end - begin);
    std::vector<double> sum(end - begin);
    for (int64_t worker = 0; worker < workers; ++worker) {
      from(worker, one.data());
      for (size_t i = 0; i < one.size(); ++i)
        sum[i] += one[i];
    }
    for (size_t i = 0; i < sum.size(); ++i)
      target[i] = static_cast<float>(sum[i] / static_cast<double>(workers));
  }
};

/// Where this rank is, while ranks are apart: the common point with its way from there.
class OwnPoints final : public ParameterValues {
public:
  OwnPoints(ParameterValues &common, const OwnValues &own) : common(common), own(own) {}
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) override {
    common.read(parameter, begin, end, target);
    std::string prefix = parameter.name + "." + kWay + ".";
    if (begin >= end || parameter.type != "f32" || !own.has(prefix))
      return;
    std::vector<float> way(end - begin);
    own.read(prefix, begin, end, way.data());
    auto *values = reinterpret_cast<float *>(target);
    for (size_t i = 0; i < way.size(); ++i)
      values[i] += way[i];
  }

private:
  ParameterValues &common;
  const OwnValues &own;
};
} // namespace

/// The parameter whose state has this name; null where none has.
static const Parameter *ownerOf(const std::vector<Parameter> &parameters, const std::string &state) {
  const Parameter *owner = nullptr;
  for (const Parameter &parameter : parameters)
    if (state.rfind(parameter.name + ".", 0) == 0 && (!owner || owner->name.size() < parameter.name.size()))
      owner = &parameter;
  return owner;
}

/// What to do where a checkpoint has a parameter of the program's and the optimizer's state of others, but
/// not `state`; empty where it is otherwise.
static std::string wasFrozen(const Program &program, const Manifest &manifest, const std::string &state,
                             const std::string &checkpoint) {
  const Parameter *owner = ownerOf(program.parameters, state);
  bool isThere = false, hasState = false, othersHave = false;
  for (const Parameter &stored : manifest.tensors) {
    const Parameter *of = ownerOf(program.parameters, stored.name);
    isThere |= owner && stored.name == owner->name;
    hasState |= owner && of == owner;
    othersHave |= of && of != owner;
  }
  if (!isThere || hasState || !othersHave)
    return "";
  return "'" + owner->name + "' is trained now and was frozen when " + checkpoint +
         " was written, which has nothing of its optimizer state ('" + state +
         "'): freeze it as before (-freeze), or begin a new run with these weights, -weights=" + checkpoint +
         "/model.safetensors in the place of -resume";
}

void loadState(const Program &program, const RankInfo &info, const Addresses &addresses, ThreadPool *pool,
               const std::string &checkpoint, const Manifest &manifest,
               const std::function<std::unique_ptr<ParameterValues>()> &model, bool newBatch) {
  Index index;
  for (const Parameter &tensor : manifest.tensors)
    index.emplace(tensor.name, &tensor);
  SavedTensors saved(program, program.trains && manifest.pendingFactor.has_value(),
                     program.trains && leavesErrors(program, manifest.applied),
                     program.trains && areApart(program, manifest.applied));
  auto isOwn = [&](const std::string &name) { return !workersOf(name, saved.isApart).empty(); };
  // Workers there were, by those of the first state that has any.
  int64_t workers = 0;
  for (size_t i = saved.parameters; i < saved.tensors.size() && saved.hasErrors; ++i)
    if (std::string prefix = workersOf(saved.tensors[i].name, saved.isApart); !prefix.empty()) {
      while (index.count(prefix + std::to_string(workers)))
        ++workers;
      break;
    }
  bool folds = workers > 0 && workers != program.dp();
  if (folds && !newBatch)
    throw Error(StatusInput, checkpoint + " has what the compressed gradients of " + std::to_string(workers) +
                                 " data-parallel ranks left out, which " + std::to_string(program.dp()) +
                                 " cannot go on with: expected -dp=" + std::to_string(workers) +
                                 ", or -resume-new-batch, by which each goes on with the mean");
  Index expected;
  for (const Parameter &tensor : saved.tensors) {
    if (folds && isOwn(tensor.name))
      continue;
    auto found = index.find(tensor.name);
    const Parameter *stored = found == index.end() ? nullptr : found->second;
    if (std::string frozen = stored ? "" : wasFrozen(program, manifest, tensor.name, checkpoint);
        !frozen.empty())
      throw Error(StatusInput, frozen);
    if (!stored || stored->type != tensor.type || stored->shape != tensor.shape)
      throw Error(StatusInput, checkpoint + " is of another model or optimizer: the program has " +
                                   describe(tensor) + ", the checkpoint " +
                                   (stored ? describe(*stored) : "nothing of that name"));
    expected.emplace(tensor.name, &tensor);
  }
  // A run's new values of what no rank holds whole (Replaced.h) are there as well.
  std::set<std::string> beside;
  ParameterTable table(program);
  for (const Parameter &parameter : program.parameters)
    if (auto found = index.find(parameter.name); found != index.end() && isNowhereWhole(table, parameter)) {
      if (found->second->type != parameter.type || found->second->shape != parameter.shape)
        throw Error(StatusInput, checkpoint + " is of another model: the program has " + describe(parameter) +
                                     ", the checkpoint " + describe(*found->second));
      beside.insert(parameter.name);
    }
  // What only evaluates leaves the optimizer's state where it is.
  for (const Parameter &stored : manifest.tensors)
    if (program.trains && !expected.count(stored.name) && !beside.count(stored.name) &&
        !(folds && isOwn(stored.name))) {
      const Parameter *owner = ownerOf(program.parameters, stored.name);
      if (owner && !owner->trainable)
        throw Error(StatusInput,
                    "'" + owner->name + "' is frozen now and was trained when " + checkpoint +
                        " was written, which has its optimizer state ('" + stored.name +
                        "'): train it as before, or begin a new run with these weights, -weights=" +
                        checkpoint + "/model.safetensors in the place of -resume");
      throw Error(StatusInput, checkpoint + " is of another model or optimizer: it has " + describe(stored) +
                                   ", the program nothing of that name");
    }

  ParameterFiles files(checkpoint, pool, kCheckpointMoment);
  CheckpointValues values(index, files, model);
  OwnValues own{index, files, folds ? workers : 0, info.dpRank};
  OwnPoints points(values, own);
  loadParameters(program, info, addresses, values, saved.isApart ? &points : nullptr);
  for (const HeldTensor &held : saved.held) {
    if (held.tensor < saved.parameters || held.position != info.position ||
        (held.dpRank >= 0 && held.dpRank != info.dpRank))
      continue;
    const Parameter &tensor = saved.tensors[held.tensor];
    const Part &part = held.part;
    int64_t slice = program.sliceOf(program.buckets[part.bucket]);
    int64_t first = held.sliced ? info.slice * slice : 0;
    int64_t last = held.sliced ? first + slice : program.buckets[part.bucket].padded;
    int64_t begin = std::max(first, part.bucket_offset);
    int64_t end = std::min(last, part.bucket_offset + part.elements);
    int64_t place = part.begin - part.bucket_offset; // in the parameter, of the bucket's first element
    if (begin < end && held.dpRank >= 0 && folds)
      own.read(workersOf(tensor.name, saved.isApart), begin + place, end + place,
               reinterpret_cast<float *>(addresses.at(held.buffer)) + begin);
    else if (begin < end)
      reading([&] {
        PartValues(files, part, tensorRank(info))
            .read(*index.at(tensor.name), begin - part.bucket_offset, end - part.bucket_offset,
                  addresses.at(held.buffer) + (begin - first) * elementBytes(tensor.type));
      });
  }
}

void verifyState(const std::string &checkpoint, const Manifest &manifest, ThreadPool *pool) {
  // A multiple of what is hashed, whatever the elements' size.
  constexpr int64_t kPiece = 64 * kHashedBytes;
  ParameterFiles files(checkpoint, pool, kCheckpointMoment);
  std::vector<char> piece;
  for (const std::vector<Parameter> *tensors : {&manifest.tensors, &manifest.ranks.tensors})
    for (const Parameter &tensor : *tensors) {
      int64_t size = elementBytes(tensor.type), elements = elementsOf(tensor), step = kPiece / size;
      piece.resize(std::min(kPiece, tensor.bytes));
      for (int64_t at = 0; at < elements; at += step)
        reading([&] { files.read(tensor, at, std::min(at + step, elements), piece.data()); });
    }
}

} // namespace dsopt::runtime

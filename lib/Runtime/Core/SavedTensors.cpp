//===- SavedTensors.cpp - what a checkpoint holds, and who has it ---------===//

#include "Core/LambCoefficients.h"
#include "Core/LocalSteps.h"
#include "Core/Parts.h"
#include "Core/SavedState.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <algorithm>
#include <map>
#include <set>

namespace dsopt::runtime {

/// Bytes after which a new file begins.
static constexpr int64_t kFileBytes = INT64_C(4) << 30;

/// The shape of a state: the parameter's, or of its rows' or columns' means.
static std::vector<int64_t> shapeOf(const Parameter &parameter, const std::string &state) {
  std::vector<int64_t> shape = parameter.shape;
  if (state == "row_var" && !shape.empty())
    shape.back() = 1;
  if (state == "col_var" && shape.size() > 1)
    shape[shape.size() - 2] = 1;
  return shape;
}

SavedTensors::SavedTensors(const Program &program, bool hasPending, bool hasErrors, bool isApart)
    : hasPending(hasPending), hasErrors(hasErrors), isApart(isApart) {
  ParameterTable table(program);
  std::set<std::string> names; // a parameter may be called like another one's state
  for (const Parameter &parameter : program.parameters)
    names.insert(parameter.name);
  std::map<std::string, size_t> known;
  auto add = [&](const std::string &name, const std::string &type, HeldTensor holder,
                 std::vector<int64_t> shape = {}) {
    auto [entry, isNew] = known.try_emplace(name, tensors.size());
    holder.tensor = entry->second;
    held.push_back(holder);
    if (!isNew)
      return;
    Parameter tensor;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = shape.empty() ? holder.parameter->shape : std::move(shape);
    tensor.bytes = wholeBytes(tensor);
    tensors.push_back(std::move(tensor));
  };
  auto named = [&](std::string name) {
    while (names.count(name))
      name += "~";
    return name;
  };
  // What a bucket's parameters have beside them; `holder` says where, but not whose part it is.
  auto addState = [&](int64_t bucket, const std::string &state, const std::string &type, HeldTensor holder) {
    holder.isState = true;
    std::map<int64_t, int64_t> places; // of what is of whole parameters: their first parts have it
    if (holder.isOfParameter)
      places = coefficientPlaces(program, bucket);
    for (const auto &[parameter, part] : table.ofBucket(bucket)) {
      if (holder.isOfParameter && part.begin > 0)
        continue;
      holder.parameter = parameter;
      holder.part = part;
      std::vector<int64_t> shape;
      if (holder.isOfParameter) {
        holder.part = {bucket, places.at(part.bucket_offset) * DSOPT_COEFFICIENTS, 0, DSOPT_COEFFICIENTS};
        shape = {DSOPT_COEFFICIENTS};
      }
      add(named(parameter->name + "." + state), type, holder, shape);
    }
  };
  // What a matrix keeps is shorter than itself, and has a buffer of its own.
  auto addFactor = [&](int64_t bucket, const std::string &first, int64_t bytes, HeldTensor holder) {
    for (const auto &[parameter, part] : table.ofBucket(bucket)) {
      if (std::to_string(part.bucket_offset) != first)
        continue;
      int64_t values = bytes / static_cast<int64_t>(sizeof(float));
      holder.isState = true;
      holder.parameter = parameter;
      holder.part = {part.bucket, 0, 0, values};
      add(named(parameter->name + "." + kFactor), "f32", holder, {values});
    }
  };
  // What a segment of the update replaces of whole parameters.
  auto addWhole = [&](const Action &run, const Ref &ref, int64_t position) {
    const Bucket &bucket = program.buckets[run.bucket];
    const Buffer &buffer = program.positions[position].buffers[ref.buffer];
    std::string state = buffer.name.substr(std::min(bucket.name.size() + 1, buffer.name.size()));
    HeldTensor holder;
    holder.position = position;
    holder.buffer = ref;
    holder.isState = true;
    holder.writer = run.from / program.sliceOf(bucket);
    for (const auto &[parameter, part] : table.ofBucket(run.bucket)) {
      if (part.bucket_offset != run.from)
        continue;
      holder.parameter = parameter;
      holder.part = {run.bucket, 0, 0, 1};
      for (int64_t extent : shapeOf(*parameter, state))
        holder.part.elements *= extent;
      if (ref.offset + holder.part.elements * elementBytes("f32") > buffer.bytes)
        throw Error(StatusInput, "program table: buffer '" + buffer.name + "' has " +
                                     std::to_string(buffer.bytes) + " bytes, expected room for that of '" +
                                     parameter->name + "' at " + std::to_string(ref.offset));
      add(named(parameter->name + "." + state), "f32", holder, shapeOf(*parameter, state));
    }
  };
  for (const Parameter &parameter : program.parameters)
    for (const Part &part : partsOf(parameter)) {
      int64_t position = 0;
      if (const Position::Load *load = table.holder(parameter, part, position))
        add(parameter.name, parameter.type, {&parameter, part, position, load->target, load->sliced, false});
    }
  parameters = tensors.size();
  for (size_t position = 0; position < program.positions.size(); ++position) {
    const Position &at = program.positions[position];
    for (const Action &action : at.updates) {
      // Between directions and what is made of them lie the scalars, and what is replaced.
      bool replaces = action.kind == ActionKind::Run && action.bucket >= 0;
      for (const Ref &ref : action.refs)
        if (replaces && at.buffers[ref.buffer].kind == "optimizer")
          addWhole(action, ref, static_cast<int64_t>(position));
      if (action.kind != ActionKind::Update)
        continue;
      std::string prefix = program.buckets[action.bucket].name + ".";
      for (size_t i = 2; i < action.refs.size(); ++i) {
        const std::string &buffer = at.buffers[action.refs[i].buffer].name;
        if (buffer == prefix + "master")
          continue; // the parameter itself
        std::string state = buffer.substr(std::min(prefix.size(), buffer.size()));
        HeldTensor holder{nullptr, {}, static_cast<int64_t>(position), action.refs[i], action.sliced};
        bool isOwn = movesApart(program) && (state == kOwnStates[0] || state == kOwnStates[1]);
        if (movesApart(program) && state == kWay && !isApart)
          continue; // nowhere
        if (!isOwn || !isApart) {
          addState(action.bucket, state, "f32", holder);
          continue;
        }
        for (holder.dpRank = 0; holder.dpRank < program.dp(); ++holder.dpRank)
          addState(action.bucket, state + "." + std::to_string(holder.dpRank), "f32", holder);
      }
      for (size_t i = 0; i < at.buffers.size(); ++i)
        if (at.buffers[i].name == prefix + kCoefficients) {
          HeldTensor numbers;
          numbers.position = static_cast<int64_t>(position);
          numbers.buffer.buffer = static_cast<int64_t>(i);
          numbers.isOfParameter = true;
          addState(action.bucket, kCoefficients, "f32", numbers);
        }
      for (size_t i = 0; hasErrors && i < at.buffers.size(); ++i) {
        HeldTensor error;
        error.position = static_cast<int64_t>(position);
        error.buffer.buffer = static_cast<int64_t>(i);
        error.sliced = at.buffers[i].name == prefix + kServerError;
        if (error.sliced)
          addState(action.bucket, kServerError, "f32", error);
        if (std::string start = prefix + kFactor + ".";
            at.buffers[i].name.compare(0, start.size(), start) == 0)
          addFactor(action.bucket, at.buffers[i].name.substr(start.size()), at.buffers[i].bytes, error);
        if (at.buffers[i].name == prefix + kWorkerError)
          for (error.dpRank = 0; error.dpRank < program.dp(); ++error.dpRank)
            addState(action.bucket, std::string(kWorkerError) + "." + std::to_string(error.dpRank), "f32",
                     error);
      }
    }
  }
  order();
  if (!hasPending)
    return;
  const std::vector<Position> &delayed = program.of(ListKind::DelayedStep);
  for (size_t position = 0; position < delayed.size(); ++position) {
    std::map<std::string, int64_t> buffers; // of the step's program, where all state is known by
    const std::vector<Buffer> &list = program.positions[position].buffers;
    for (size_t i = 0; i < list.size(); ++i)
      buffers.emplace(list[i].name, i);
    for (const Action &action : delayed[position].updates) {
      const std::string &gradient = delayed[position].buffers[action.refs[1].buffer].name;
      auto found = buffers.find(gradient);
      if (found == buffers.end())
        throw Error(StatusInput, "program table: no step but the delayed has a buffer '" + gradient +
                                     "', expected all to have the gradients that wait");
      Ref ref = action.refs[1];
      ref.buffer = found->second;
      addState(action.bucket, "pending",
               program.gradient_type == "param" ? program.buckets[action.bucket].type : "f32",
               {nullptr, {}, static_cast<int64_t>(position), ref, action.sliced});
    }
  }
  order();
}

void SavedTensors::order() {
  std::sort(held.begin(), held.end(), [](const HeldTensor &a, const HeldTensor &b) {
    return std::pair(a.tensor, a.part.begin) < std::pair(b.tensor, b.part.begin);
  });
}

std::map<std::string, std::string> SavedTensors::layOut() {
  std::map<std::string, std::string> headers;
  for (auto [kind, begin, end] :
       {std::tuple("model", size_t(0), parameters), std::tuple("optimizer", parameters, tensors.size())}) {
    std::vector<std::vector<Parameter *>> groups;
    int64_t bytes = kFileBytes;
    for (size_t i = begin; i < end; ++i) {
      if (bytes >= kFileBytes) {
        groups.emplace_back();
        bytes = 0;
      }
      groups.back().push_back(&tensors[i]);
      bytes += tensors[i].bytes;
    }
    for (size_t i = 0; i < groups.size(); ++i) {
      char number[48] = "";
      if (groups.size() > 1)
        std::snprintf(number, sizeof number, "-%05zu-of-%05zu", i + 1, groups.size());
      std::string name = std::string(kind) + number + ".safetensors";
      for (Parameter *tensor : groups[i])
        tensor->file = name;
      headers[name] = layOutSafetensors(groups[i]);
    }
  }
  return headers;
}

std::vector<Segment> segmentsOf(const Program &program, const SavedTensors &saved) {
  std::vector<Segment> segments;
  for (size_t i = 0; i < saved.held.size(); ++i) {
    const HeldTensor &held = saved.held[i];
    const Parameter &tensor = saved.tensors[held.tensor];
    const Part &part = held.part;
    int64_t slice = program.sliceOf(program.buckets[part.bucket]), size = elementBytes(tensor.type);
    int64_t offset = part.bucket_offset;
    /// Elements [begin, end) of the part, which this rank writes, or of a shard those of its number along tp.
    auto add = [&](int64_t begin, int64_t end, int64_t writer) {
      for (int64_t shard = 0; shard < countShards(program, part); ++shard)
        eachRun(tensor, part, shard, begin, end, [&](int64_t first, int64_t element, int64_t count) {
          segments.push_back({held.tensor, tensor.offset + first * size,
                              tensor.offset + (first + count) * size,
                              program.rankAt(held.position, writer, shard), i, element});
        });
    };
    if (int64_t writer = std::max(held.dpRank, held.writer); writer >= 0) {
      add(0, part.elements, writer);
      continue;
    }
    // Of what all have, each writes the slice that it would have.
    for (int64_t at = offset, end = offset + part.elements; at < end;) {
      int64_t writer = at / slice, next = std::min(end, (writer + 1) * slice);
      add(at - offset, next - offset, writer);
      at = next;
    }
  }
  // Shards lie between each other.
  auto isBefore = [](const Segment &a, const Segment &b) {
    return std::pair(a.tensor, a.begin) < std::pair(b.tensor, b.begin);
  };
  if (!std::is_sorted(segments.begin(), segments.end(), isBefore))
    std::sort(segments.begin(), segments.end(), isBefore);
  return segments;
}

/// Adds those of segments [from, to)'s units, which begin at `begin` plus multiples of `unit`, that hold a
/// border between two ranks or, with `byPart`, between two parts, which lie apart. Nothing before `header`
/// counts; `firstRank` has it.
static void addShared(std::vector<SharedRange> &shared, const std::vector<Segment> &segments, size_t from,
                      size_t to, int64_t begin, int64_t unit, int64_t header, int firstRank, bool byPart) {
  int64_t end = segments[to - 1].end;
  size_t first = from; // the segment that holds the unit's first byte, or comes after the header
  for (size_t i = from; i < to; ++i) {
    int before = i > from ? segments[i - 1].rank : firstRank;
    int64_t border = segments[i].begin, start = begin + (border - begin) / unit * unit;
    bool parts = byPart && i > from && segments[i].held != segments[i - 1].held;
    if ((segments[i].rank == before && !parts) || border == start)
      continue;
    if (!shared.empty() && shared.back().first >= from && shared.back().end > border)
      continue; // the same unit again
    while (first < i && segments[first].end <= start)
      ++first;
    SharedRange range{first, i + 1, std::max(start, header), std::min(start + unit, end),
                      start < segments[from].begin ? firstRank : segments[first].rank};
    while (range.last < to && segments[range.last].begin < range.end)
      ++range.last;
    shared.push_back(range);
  }
}

std::vector<SharedRange> sharedUnits(const SavedTensors &saved, const std::vector<Segment> &segments) {
  std::vector<SharedRange> shared;
  for (size_t from = 0, to; from < segments.size(); from = to) {
    const std::string &file = saved.tensors[segments[from].tensor].file;
    for (to = from; to < segments.size() && saved.tensors[segments[to].tensor].file == file;)
      ++to;
    addShared(shared, segments, from, to, 0, kWrittenBytes, segments[from].begin, /*firstRank=*/0,
              /*byPart=*/false);
  }
  return shared;
}

std::vector<SharedRange> sharedChunks(const SavedTensors &saved, const std::vector<Segment> &segments) {
  std::vector<SharedRange> shared;
  for (size_t from = 0, to; from < segments.size(); from = to) {
    const Parameter &tensor = saved.tensors[segments[from].tensor];
    for (to = from; to < segments.size() && segments[to].tensor == segments[from].tensor;)
      ++to;
    addShared(shared, segments, from, to, tensor.offset, kHashedBytes, tensor.offset, segments[from].rank,
              /*byPart=*/true);
  }
  return shared;
}

std::vector<int> savePeers(const Program &program, int rank) {
  std::set<int> peers;
  for (bool later : {false, true}) {
    auto isEmpty = [](const std::vector<Position> &positions) { return positions.empty(); };
    if (later && std::all_of(program.later.begin(), program.later.end(), isEmpty))
      break;
    SavedTensors saved(program, later && !program.of(ListKind::DelayedStep).empty(),
                       leavesErrors(program, later ? program.freeze_step + 1 : 0),
                       later && movesApart(program));
    saved.layOut();
    std::vector<Segment> segments = segmentsOf(program, saved);
    for (const std::vector<SharedRange> &ranges :
         {sharedUnits(saved, segments), sharedChunks(saved, segments)})
      for (const SharedRange &range : ranges)
        for (size_t i = range.first; i < range.last; ++i) {
          if (range.owner == rank)
            peers.insert(segments[i].rank);
          if (segments[i].rank == rank)
            peers.insert(range.owner);
        }
  }
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}

std::vector<std::pair<int64_t, int64_t>> writtenAlone(const std::vector<Segment> &segments,
                                                      const std::vector<SharedRange> &units) {
  std::vector<std::pair<int64_t, int64_t>> alone;
  for (const Segment &segment : segments)
    alone.push_back({segment.begin, segment.end});
  for (const SharedRange &unit : units)
    for (size_t i = unit.first; i < unit.last; ++i) {
      if (unit.begin <= segments[i].begin)
        alone[i].first = std::max(alone[i].first, unit.end);
      else
        alone[i].second = std::min(alone[i].second, unit.begin);
    }
  return alone;
}

} // namespace dsopt::runtime

//===- EmitProgram.cpp - the program table as JSON ------------------------===//
//
// Writes what include/dsopt/Runtime/Program.h describes, key by key. Everything
// comes from the module: nothing is decided here.
//
//===----------------------------------------------------------------------===//

#include "ProgramWriter.h"
#include "dsopt/Dialect/Exec/Actions.h"

#include "dsopt/Analysis/Exec/StepCost.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace dsopt;

//===----------------------------------------------------------------------===//
// What the module says
//===----------------------------------------------------------------------===//

ProgramWriter::ProgramWriter(ModuleOp module, llvm::raw_ostream &text, llvm::raw_ostream &actions)
    : module(module), symbols(module), streams(module), document(text), actions(actions) {
  for (auto bucket : module.getOps<dist::BucketOp>()) {
    bucketIndex[bucket.getSymName()] = buckets.size();
    buckets.push_back(bucket);
    for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>())
      places[range.getParameter().getAttr()] = {int64_t(buckets.size()) - 1, range.getOffset()};
  }
  programs = exec::getStepPrograms(module);
  if (auto attr = module->getAttrOfType<ArrayAttr>(exec::kInputsAttr))
    for (auto input : attr.getAsRange<DictionaryAttr>()) {
      inputIndex[input.getAs<StringAttr>("name").getValue()] = inputs.size();
      inputs.push_back(input);
    }
}

//===----------------------------------------------------------------------===//
// Inputs, parameters, buckets
//===----------------------------------------------------------------------===//

std::string ProgramWriter::typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(type);
  return text;
}

void ProgramWriter::numbers(StringRef key, ArrayRef<int64_t> values) {
  json->attributeArray(key, [&] {
    for (int64_t value : values)
      json->value(value);
  });
}

void ProgramWriter::extents(Type type) {
  json->array([&] {
    for (int64_t extent : cast<ShapedType>(type).getShape())
      json->value(extent);
  });
}

void ProgramWriter::shape(Type type) { numbers("shape", cast<ShapedType>(type).getShape()); }

void ProgramWriter::writeInputs() {
  json->attributeArray("inputs", [&] {
    for (DictionaryAttr input : inputs)
      json->object([&] {
        Type type = input.getAs<TypeAttr>("type").getValue();
        string("name", input.getAs<StringAttr>("name").getValue());
        string("type", typeName(type));
        shape(type);
        auto label = input.getAs<BoolAttr>("label");
        json->attribute("label", label && label.getValue());
        if (auto ignore = input.getAs<IntegerAttr>("ignore_index"))
          json->attribute("ignore_index", ignore.getInt());
        if (auto bound = input.getAs<IntegerAttr>("bound"))
          json->attribute("bound", bound.getInt());
        if (auto source = input.getAs<TypeAttr>("source"))
          string("source", typeName(source.getValue()));
        if (auto least = input.getAs<IntegerAttr>("least")) {
          json->attribute("looked_up", true);
          json->attribute("least", least.getInt());
        }
      });
  });
}

/// What a table leaves to the library, as a hash; empty: nothing. Only that decides on bits.
static std::string libraryChoices(ModuleOp module) {
  auto table = module->getAttrOfType<exec::GemmTableAttr>(exec::kGemmTableAttr);
  std::vector<std::string> choices;
  if (!table)
    return "";
  for (Attribute choice : table.getChoices())
    if (!cast<exec::GemmChoiceAttr>(choice).getBlocking())
      choices.push_back(llvm::formatv("{0}", choice));
  llvm::sort(choices);
  return choices.empty()
             ? ""
             : llvm::utohexstr(llvm::xxh3_64bits(llvm::join(choices, "\n")), /*LowerCase=*/true, 16);
}

void ProgramWriter::writeOutputs() {
  auto outputs = module->getAttrOfType<ArrayAttr>(exec::kOutputsAttr);
  if (!outputs)
    return;
  json->attributeArray("outputs", [&] {
    for (auto output : outputs.getAsRange<DictionaryAttr>())
      json->object([&] {
        Type type = output.getAs<TypeAttr>("type").getValue();
        string("name", output.getAs<StringAttr>("name").getValue());
        string("type", typeName(type));
        shape(type);
      });
  });
}

void ProgramWriter::writeMetrics() {
  auto metrics = module->getAttrOfType<ArrayAttr>(exec::kMetricsAttr);
  if (!metrics)
    return;
  json->attributeArray("metrics", [&] {
    for (auto metric : metrics.getAsRange<DictionaryAttr>())
      json->object([&] {
        for (StringRef key : {"name", "combine"})
          string(key, metric.getAs<StringAttr>(key).getValue());
        numbers("parts", metric.getAs<DenseI64ArrayAttr>("parts"));
      });
  });
}

/// The shapes of a variant's inputs, as its programs read them.
void ProgramWriter::writeShapes(int64_t size) {
  llvm::StringMap<Type> types;
  for (exec::ProgramOp program : exec::getStepPrograms(module, size))
    for (auto schedule : program.getBody().getOps<exec::ScheduleOp>())
      for (auto input : schedule.getBody().getOps<exec::InputOp>())
        types[input.getInput()] =
            SymbolTable::lookupNearestSymbolFrom<exec::BufferOp>(input, input.getTarget().getBuffer())
                .getType();
  json->attributeArray("shapes", [&] {
    for (DictionaryAttr input : inputs) {
      auto known = types.find(input.getAs<StringAttr>("name").getValue());
      extents(known != types.end() ? known->second : input.getAs<TypeAttr>("type").getValue());
    }
  });
}

void ProgramWriter::writeOutputShapes(int64_t size) {
  auto outputs = module->getAttrOfType<ArrayAttr>(exec::kOutputsAttr);
  if (!outputs)
    return;
  json->attributeArray("outputs", [&] {
    for (auto output : outputs.getAsRange<DictionaryAttr>())
      extents(output.getAs<TypeAttr>(exec::outputTypeAt(size)).getValue());
  });
}

void ProgramWriter::writeParts(ArrayRef<graph::ParameterOp> parts) {
  json->attributeArray("parts", [&] {
    for (graph::ParameterOp part : parts)
      json->object([&] {
        auto [bucket, offset] = places.lookup(part.getSymNameAttr());
        json->attribute("bucket", bucket);
        json->attribute("bucket_offset", offset);
        json->attribute("begin", int64_t(*part.getPartBegin()));
        json->attribute("elements", graph::numElements(part.getType()));
        if (auto runs = part.getPartRuns()) {
          json->attribute("run", runs->getLength());
          json->attribute("stride", runs->getStride());
          json->attribute("step", runs->getStep());
        }
      });
  });
}

void ProgramWriter::writeParameters() {
  json->attributeArray("parameters", [&] {
    llvm::DenseMap<Attribute, SmallVector<graph::ParameterOp>> parts; ///< by the whole's name
    for (auto parameter : module.getOps<graph::ParameterOp>())
      if (Attribute whole = parameter.getPartOfAttr())
        parts[whole].push_back(parameter);
    for (auto parameter : module.getOps<graph::ParameterOp>()) {
      auto place = places.find(parameter.getSymNameAttr());
      auto tiles = parts.find(FlatSymbolRefAttr::get(parameter));
      bool isCut = tiles != parts.end();
      if (parameter.getPartOf() || (!isCut && place == places.end()))
        continue;
      json->object([&] {
        string("name", parameter.getModelName());
        string("type", typeName(parameter.getType()));
        shape(parameter.getType());
        json->attribute("trainable", !parameter.getFrozen());
        if (parameter.getConstant())
          json->attribute("constant", true);
        string("file", parameter.getFile());
        json->attribute("offset", int64_t(parameter.getOffset()));
        json->attribute("bytes", int64_t(parameter.getBytes()));
        if (auto source = parameter.getSource())
          string("source", typeName(*source));
        if (auto bytes = parameter.getFileBytes())
          json->attribute("file_bytes", int64_t(*bytes));
        if (auto chunks = parameter.getChunks())
          json->attributeArray("chunks", [&] {
            for (int64_t chunk : *chunks)
              json->value(llvm::json::Value(uint64_t(chunk)));
          });
        if (isCut) {
          writeParts(tiles->second);
          return;
        }
        json->attribute("bucket", place->second.bucket);
        json->attribute("bucket_offset", place->second.offset);
      });
    }
  });
}

/// Ranges of equal factors of learning rate and decay, as long as possible. A range
/// ends where the next parameter starts, so that alignment belongs to it; but not where scales of
/// blocks follow from all that lies in them: there it keeps its zeros.
void ProgramWriter::writeGroups(dist::BucketOp bucket, bool keepsZeros) {
  struct Group {
    int64_t begin, end;
    double scale, decay;
  };
  SmallVector<Group> groups;
  for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
    auto parameter = symbols.lookup<graph::ParameterOp>(range.getParameter().getAttr());
    int64_t begin = range.getOffset(), end = begin + range.getElements();
    Group group = {begin, end, parameter ? parameter.learningRateFactor() : 1,
                   parameter ? parameter.decayFactor() : 1};
    if (!groups.empty() && !keepsZeros)
      groups.back().end = begin;
    if (!groups.empty() && groups.back().end == begin && groups.back().scale == group.scale &&
        groups.back().decay == group.decay)
      groups.back().end = end;
    else
      groups.push_back(group);
  }
  if (!groups.empty() && !keepsZeros)
    groups.back().end = bucket.getElements();
  json->attributeArray("groups", [&] {
    for (const Group &group : groups)
      json->object([&] {
        json->attribute("begin", group.begin);
        json->attribute("end", group.end);
        json->attribute("lr_scale", group.scale);
        json->attribute("decay_scale", group.decay);
      });
  });
}

void ProgramWriter::writeBuckets() {
  // Of signs, which other gathers send, no scale follows.
  bool quantizes = dist::getGrid(module).slices() > 1 && options::gather_type(module) != "param";
  json->attributeArray("buckets", [&] {
    for (dist::BucketOp bucket : buckets)
      json->object([&] {
        string("name", bucket.getSymName());
        string("type", typeName(bucket.getType()));
        json->attribute("elements", int64_t(bucket.getElements()));
        json->attribute("padded", int64_t(bucket.getPadded()));
        json->attribute("trainable", !bucket.getFrozen());
        json->attribute("tied", bucket.isTied());
        if (bucket.getDistinct())
          json->attribute("distinct", true);
        for (exec::ProgramOp program : programs)
          if (!bucket.getBlocks().empty() && program.hasBlock(bucket.getBlocks().front()))
            json->attribute("owner", int64_t(program.getPosition()));
        if (!bucket.getFrozen())
          writeGroups(bucket, quantizes);
      });
  });
}

void ProgramWriter::writeCommunicators() {
  json->attributeArray("communicators", [&] {
    for (auto communicator : module.getOps<exec::CommunicatorOp>()) {
      communicatorIndex.try_emplace(communicator.getSymName(), communicatorIndex.size());
      json->object([&] {
        string("name", communicator.getSymName());
        json->attributeArray("axes", [&] {
          for (const AxisPart &part : communicator.getAxes().getParts())
            json->array([&] {
              json->value(kAxisNames[static_cast<size_t>(part.axis)]);
              json->value(int64_t(part.part));
              json->value(part.count);
            });
        });
      });
    }
  });
}

//===----------------------------------------------------------------------===//
// Calls, for a report
//===----------------------------------------------------------------------===//

void ProgramWriter::writeCalls() {
  auto calls = module->getAttrOfType<ArrayAttr>(exec::kCallsAttr);
  if (!calls)
    return;
  json->attributeArray("calls", [&] {
    for (auto call : calls.getAsRange<DictionaryAttr>())
      json->object([&] {
        for (StringRef key : {"kind", "what"})
          string(key, call.getAs<StringAttr>(key).getValue());
        string("type", typeName(call.getAs<TypeAttr>("type").getValue()));
        for (StringRef key : {"bytes", "flops"})
          json->attribute(key, call.getAs<IntegerAttr>(key).getInt());
        if (auto products = call.getAs<DenseI64ArrayAttr>("products"))
          numbers("products", products);
        if (auto place = call.getAs<StringAttr>("place"))
          string("place", place.getValue());
      });
  });
  json->attributeObject("segment_calls", [&] {
    for (auto segment : module.getOps<LLVM::LLVMFuncOp>())
      if (auto made = segment->getAttrOfType<DenseI64ArrayAttr>(exec::kCallsAttr))
        numbers(segment.getName(), made);
  });
  integers("update_calls", module->getAttrOfType<DictionaryAttr>(exec::kUpdateCallsAttr));
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

void ProgramWriter::writeNames(TargetAttr host) {
  json->attribute("version", DSOPT_ABI_VERSION);
  json->attribute("dsopt", DSOPT_VERSION);
  string("command", getOption(module, "command", StringRef()));
  if (auto model = module->getAttrOfType<StringAttr>(graph::kModelAttr))
    string("model", model.getValue());
  if (auto folder = module->getAttrOfType<StringAttr>(graph::kModelFolderAttr)) {
    // A program finds its weights from wherever it is started.
    llvm::SmallString<128> absolute(folder.getValue());
    llvm::sys::fs::make_absolute(absolute);
    string("model_folder", absolute);
  }
  string("arch", host.getArch());
  json->attributeArray("features", [&] {
    for (const std::string &feature : statedFeatures(host))
      json->value(feature);
  });
  json->attributeObject("defaults", [&] {
    if (auto defaults = dyn_cast_or_null<DictionaryAttr>(getOption(module, "run_defaults")))
      for (NamedAttribute entry : defaults)
        if (auto text = dyn_cast<StringAttr>(entry.getValue()))
          string(entry.getName().getValue(), text.getValue());
  });
}

void ProgramWriter::writeBound() {
  auto bound = dyn_cast_or_null<ArrayAttr>(getOption(module, "input"));
  if (!bound)
    return;
  json->attributeObject("bound", [&] {
    for (StringRef text : bound.getAsValueRange<StringAttr>())
      string(text.rsplit('=').first, text.rsplit('=').second);
  });
}

void ProgramWriter::writeImages(TargetAttr target, ArrayRef<DeviceImage> images) {
  if (target.getKind() == TargetKind::CPU)
    return;
  string("target", stringifyTargetKind(target.getKind()));
  json->attributeArray("images", [&] {
    for (const DeviceImage &image : images)
      json->object([&] {
        if (!image.routine.empty())
          string("routine", image.routine);
        string("arch", image.arch);
        string("kind", image.kind);
        json->attribute("offset", image.offset);
        json->attribute("bytes", image.bytes);
        if (image.kind != "cubin")
          return;
        json->attribute("registers", image.registers);
        json->attribute("shared", image.shared);
        json->attribute("spills", image.spills);
      });
  });
}

void ProgramWriter::writeLayout(TargetAttr target) {
  Grid grid = dist::getGrid(module);
  int64_t dp = grid.dataParallel();
  bool isCut = grid.slices() > 1;
  int64_t zero = options::zero(module),
          M = options::micro_batches(module).value_or(exec::getMicroBatches(programs));
  numbers("grid", llvm::to_vector(grid.extents()));
  json->attribute("zero", isCut ? zero : 0);
  json->attribute("threads", target.getThreads());
  json->attribute("K", dp * M);
  json->attribute("V", options::reduction_shards(module).value_or(dp));
  json->attribute("M", M);
  json->attribute("T", options::tensor_shards(module).value_or(grid.size(Axis::tp)));
  json->attribute("Q", options::sequence_shards(module).value_or(grid.size(Axis::sp)));
  json->attribute("micro_batch_size", options::micro_batch_size(module).value_or(0));
  string("accumulate", options::accumulate(module).value_or(zero >= 2 ? "sharded" : "local"));
  string("schedule", options::schedule(module));
  string("precision", options::precision(module));
  string("gradient_type", options::gradient_type(module));
  string("optimizer", options::optimizer(module));
  if (isForDevice(module))
    string("matmul_precision", options::matmul_precision(module));
  if (isCut && options::gather_type(module) != "param")
    string("gather_type", options::gather_type(module));
  if (isCut && options::reduce_type(module) != "gradient") {
    string("reduce_type", options::reduce_type(module));
    json->attribute("node_size", options::node_size(module).value_or(dp));
  }
  if (isCut && options::compress_gradients(module) != "none")
    string("compress_gradients", options::compress_gradients(module));
  if (std::string table = libraryChoices(module); !table.empty())
    string("gemm_table", table);
  string("init", options::init(module));
  json->attribute("clip", getOption(module, "clip", 0) != 0);
  if (!exec::getPrograms(module, exec::ProgramKind::DelayedStep).empty())
    json->attribute("delayed_update", options::delayed_update(module).value_or(0));
  bool movesApart = !exec::getPrograms(module, exec::ProgramKind::JoinStep).empty();
  if (movesApart || !exec::getPrograms(module, exec::ProgramKind::FrozenStep).empty())
    json->attribute("freeze_step", options::freeze_step(module).value_or(0));
  if (movesApart)
    json->attributeObject("local_policy", [&] {
      for (StringRef key : {"var_update_scaler", "local_step_scaler", "local_step_clipper"})
        json->attribute(key, getOption(module, key, 0));
    });

  StepCost cost = estimateStep(module);
  json->attribute("flops", int64_t(cost.flops) * grid.slices() * grid.size(Axis::tp));
  json->attribute("bubble", cost.bubble);
}

LogicalResult ProgramWriter::write(ArrayRef<DeviceImage> images) {
  FailureOr<TargetAttr> target = getTarget(module), host = getHostTarget(module);
  if (failed(target) || failed(host))
    return failure();
  LogicalResult result = success();
  json->object([&] {
    writeNames(*host);
    writeImages(*target, images);
    writeLayout(*target);
    writeInputs();
    writeBound();
    writeMetrics();
    writeOutputs();
    writeParameters();
    writeBuckets();
    writeCommunicators();
    writeCalls();
    auto positions = [&](StringRef key, ArrayRef<exec::ProgramOp> list) {
      json->attributeArray(key, [&] {
        for (exec::ProgramOp program : list)
          if (succeeded(result))
            result = writePosition(program);
      });
    };
    bool trains = !exec::getPrograms(module).empty();
    auto beside = [&](int64_t size) {
      if (!trains)
        return;
      positions("evaluation", exec::getPrograms(module, exec::ProgramKind::Evaluation, size));
      for (exec::ProgramKind kind : exec::programKinds(exec::ProgramKind::DelayedStep))
        if (auto list = exec::getPrograms(module, kind, size); !list.empty())
          positions(exec::stringifyProgramKind(kind), list);
    };
    json->attribute("trains", trains);
    positions("positions", programs);
    beside(/*size=*/0);
    if (getOption(module, "generate", 0)) {
      json->attribute("sequences", options::max_batch(module));
      json->attribute("context", options::max_context(module).value_or(0));
      json->attribute("chunk", options::chunk(module));
    }
    if (auto dimension = module->getAttrOfType<DictionaryAttr>(exec::kDimensionAttr)) {
      string("dimension", dimension.getAs<StringAttr>("name").getValue());
      json->attribute("size", dimension.getAs<IntegerAttr>("size").getInt());
      json->attributeArray("variants", [&] {
        for (int64_t size : exec::getVariants(module))
          json->object([&] {
            json->attribute("size", size);
            writeShapes(size);
            writeOutputShapes(size);
            positions("positions", exec::getStepPrograms(module, size));
            beside(size);
          });
      });
    }
    writeUses();
  });
  return result;
}

llvm::FailureOr<ProgramTable> dsopt::emitProgram(ModuleOp module, ArrayRef<DeviceImage> images) {
  ProgramTable table;
  llvm::raw_string_ostream text(table.text), actions(table.actions);
  if (failed(ProgramWriter(module, text, actions).write(images)))
    return failure();
  return table;
}

//===- EmitPosition.cpp - one pipeline position of the program table ------===//

#include "ProgramWriter.h"

#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "llvm/ADT/TypeSwitch.h"
#include <set>

using namespace mlir;
using namespace dsopt;

void ProgramWriter::integers(StringRef key, DictionaryAttr dictionary) {
  json->attributeObject(key, [&] {
    if (dictionary)
      for (NamedAttribute entry : dictionary)
        if (auto value = dyn_cast<IntegerAttr>(entry.getValue()))
          json->attribute(entry.getName().getValue(), value.getInt());
  });
}

void ProgramWriter::ref(exec::RefAttr ref) {
  json->array([&] {
    json->value(bufferIndex.lookup(ref.getBuffer().getValue()));
    json->value(ref.getSlot());
    json->value(ref.getOffset());
    // Programs are of positions: nothing steps along pp. Along the last axes most step nothing.
    AxisSteps all = ref.getSteps();
    auto steps = ArrayRef<int64_t>(all.begin(), all.end()).drop_front();
    while (steps.size() > 1 && !steps.back())
      steps = steps.drop_back();
    for (int64_t bytes : steps)
      json->value(bytes);
  });
}

void ProgramWriter::refs(ArrayRef<exec::RefAttr> list) {
  written.assign(list.begin(), list.end());
  json->attributeArray("refs", [&] {
    for (exec::RefAttr entry : list)
      ref(entry);
  });
}

void ProgramWriter::temp(exec::RefAttr address) {
  written.push_back(address);
  json->attributeBegin("temp");
  ref(address);
  json->attributeEnd();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The runtime finds by these names what is of no bucket, and what is kept of one: BUCKET.STATE.
static std::string nameInTable(exec::BufferOp buffer) {
  if (auto state = buffer.getState())
    return (*buffer.getOf() + "." + *state).str();
  if (buffer.getRole() == exec::BufferRole::Master)
    return (*buffer.getOf() + "." + stringifyBufferRole(*buffer.getRole())).str();
  return (buffer.getRole() && !buffer.getOf() ? stringifyBufferRole(*buffer.getRole()) : buffer.getSymName())
      .str();
}

LogicalResult ProgramWriter::writeBuffers(exec::ProgramOp program) {
  bufferIndex.clear();
  bucketOfBuffer.clear();
  SmallVector<exec::MemoryOp> memories = exec::getMemories(program);
  LogicalResult result = success();
  json->attributeArray("buffers", [&] {
    for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
      bufferIndex.try_emplace(buffer.getSymName(), bufferIndex.size());
      if (auto bucket = buffer.getOf(); bucket && buffer.getRole() != exec::BufferRole::Kept)
        bucketOfBuffer[buffer.getSymNameAttr()] = bucketIndex.lookup(*bucket);
      if (!buffer.getOffset() && !buffer.getSymbol()) {
        result = buffer.emitOpError("has no offset, expected memory to be planned");
        return;
      }
      json->object([&] {
        string("name", nameInTable(buffer));
        string("kind", stringifyBufferKind(buffer.getKind()));
        if (size_t memory = exec::memoryOf(buffer, memories))
          json->attribute("memory", int64_t(memory));
        if (auto offset = buffer.getOffset())
          json->attribute("offset", int64_t(*offset));
        json->attribute("bytes", graph::numBytes(buffer.getType()));
        if (auto payload = buffer.getPayload())
          json->attribute("payload", int64_t(*payload));
        json->attribute("slots", int64_t(buffer.getSlots()));
        json->attribute("stride", int64_t(buffer.getStride()));
        json->attribute("persistent", buffer.getPersistent());
        if (auto symbol = buffer.getSymbol())
          string("symbol", *symbol);
      });
    }
  });
  return result;
}

/// Parameters where they are stored, and their masters, are loaded before step 0: whole, or this rank's
/// slice.
LogicalResult ProgramWriter::writeLoads(exec::ProgramOp program) {
  LogicalResult result = success();
  json->attributeArray("loads", [&] {
    for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
      bool master = buffer.getRole() == exec::BufferRole::Master;
      if (!master && buffer.getRole() != exec::BufferRole::Stored)
        continue;
      int64_t index = bucketIndex.lookup(*buffer.getOf());
      dist::BucketOp bucket = buckets[index];
      int64_t elements = graph::numElements(buffer.getType());
      if (elements != int64_t(bucket.getPadded()) && elements != bucket.getSlice()) {
        result = buffer.emitOpError("has ") << elements << " elements, expected the bucket's "
                                            << bucket.getPadded() << " or a slice's " << bucket.getSlice();
        return;
      }
      json->object([&] {
        json->attribute("bucket", index);
        json->attributeBegin("target");
        ref(exec::RefAttr::get(program.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0, 0,
                               {}));
        json->attributeEnd();
        json->attribute("sliced", elements != int64_t(bucket.getPadded()));
        if (master)
          json->attribute("master", true);
      });
    }
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

template <typename Op> void ProgramWriter::writeCall(Op run) {
  string("kind", "run");
  string("symbol", run.getSegment());
  refs(llvm::to_vector(run.getBuffers().template getAsRange<exec::RefAttr>()));
  if (auto scratch = run.getTemp())
    temp(*scratch);
}

LogicalResult ProgramWriter::writeRun(exec::RunOp run) {
  exec::PartAttr part = getPart(run, symbols.lookup(run.getSegment()));
  if (!part)
    return run.emitOpError("is of no block and phase: neither it nor @") << run.getSegment() << " says one";
  string("name", describe(part));
  string("phase", stringifyPhase(part.getPhase()));
  writeCall(run);
  json->attribute("micro_batch", int64_t(run.getMicroBatch()));
  if (run.getAccumulate())
    json->attribute("accumulate", true);
  return success();
}

/// For the runtime a transform is a run of no micro-batch.
LogicalResult ProgramWriter::writeTransform(exec::TransformOp transform) {
  string("name", ("transform " + transform.getBucket()).str());
  string("phase", "U");
  writeCall(transform);
  json->attribute("bucket", indexOfBucket(transform.getBucketAttr()));
  json->attribute("elements", int64_t(transform.getElements()));
  json->attribute("from", int64_t(transform.getFrom()));
  if (transform.getSliced())
    json->attribute("sliced", true);
  return success();
}

LogicalResult ProgramWriter::communicator(Operation &action) {
  FlatSymbolRefAttr name = exec::getCommunicator(&action);
  if (!name)
    return success();
  auto it = communicatorIndex.find(name.getValue());
  if (it == communicatorIndex.end())
    return action.emitOpError("is over ") << name << ", which is no communicator of this module";
  json->attribute("communicator", it->second);
  return success();
}

/// An update that was not asked what it changes would not wait for checkpoints, and nobody would notice.
LogicalResult ProgramWriter::changes(Operation &action) {
  auto changed = action.getAttrOfType<ArrayAttr>(exec::kChangesAttr);
  if (!changed && isa<exec::UpdateOp>(action))
    return action.emitOpError("does not say what it changes, expected describe-changes to have run");
  if (changed && !changed.empty())
    json->attributeArray("changes", [&] {
      for (auto name : changed.getAsRange<FlatSymbolRefAttr>())
        json->value(bufferIndex.lookup(name.getValue()));
    });
  return success();
}

/// What many do alike is written once: three numbers for each touch, the address's place, bytes, and 1 where
/// it is read, 2 where it is written, 3 for both.
void ProgramWriter::touches(Operation &action) {
  auto touched = action.getAttrOfType<ArrayAttr>(exec::kTouchesAttr);
  if (!touched)
    return;
  std::vector<int64_t> use;
  SmallVector<exec::RefAttr> known = written, others;
  for (auto touch : touched.getAsRange<exec::TouchAttr>()) {
    auto place = llvm::find(known, touch.getRef());
    if (place == known.end()) {
      others.push_back(touch.getRef());
      place = known.insert(known.end(), touch.getRef());
    }
    exec::AccessMode mode = touch.getMode();
    for (int64_t number : {int64_t(place - known.begin()), touch.getBytes(),
                           int64_t(mode == exec::AccessMode::Read    ? 1
                                   : mode == exec::AccessMode::Write ? 2
                                                                     : 3)})
      use.push_back(number);
  }
  if (!others.empty())
    json->attributeArray("others", [&] {
      for (exec::RefAttr other : others)
        ref(other);
    });
  json->attribute("use", uses.try_emplace(use, int64_t(uses.size())).first->second);
}

void ProgramWriter::writeUses() {
  std::vector<const std::vector<int64_t> *> byNumber(uses.size());
  for (const auto &[use, number] : uses)
    byNumber[number] = &use;
  json->attributeArray("uses", [&] {
    for (const std::vector<int64_t> *use : byNumber)
      json->array([&] {
        for (int64_t number : *use)
          json->value(number);
      });
  });
}

LogicalResult ProgramWriter::writeAction(Operation &op) {
  auto head = [&](StringRef kind, const Twine &name) {
    string("kind", kind);
    string("name", name.str());
  };
  auto transfer = [&](auto transfer, exec::RefAttr value) {
    refs({value});
    json->attribute("bytes", int64_t(transfer.getBytes()));
    json->attribute("peer", int64_t(transfer.getPeer()));
    string("tag", transfer.getLabel());
    string("traffic", stringifyTraffic(transfer.getTraffic()));
  };
  auto nameOf = [&](int64_t bucket, exec::RefAttr target) {
    return bucket < 0 ? target.getBuffer().getValue() : buckets[bucket].getSymName();
  };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<exec::InputOp>([&](exec::InputOp input) -> LogicalResult {
        bool isContext = input.getIsContext();
        auto it = inputIndex.find(input.getInput());
        if (it == inputIndex.end() && !isContext)
          return op.emitOpError("reads '")
                 << input.getInput() << "', which exec.inputs of the module does not name";
        head("input", "input " + input.getInput());
        refs({input.getTarget()});
        json->attribute("input", isContext ? -1 : it->second);
        json->attribute("micro_batch", int64_t(input.getMicroBatch()));
        return success();
      })
      .Case<exec::RunOp>([&](exec::RunOp run) { return writeRun(run); })
      .Case<exec::TransformOp>([&](exec::TransformOp transform) { return writeTransform(transform); })
      .Case<exec::GatherOp>([&](exec::GatherOp gather) {
        int64_t bucket = bucketOf(gather.getTarget());
        head("gather", "gather " + nameOf(bucket, gather.getTarget()));
        refs({gather.getSlice(), gather.getTarget()});
        json->attribute("bytes", int64_t(gather.getBytes()));
        string("traffic", stringifyTraffic(gather.getTraffic()));
        json->attribute("bucket", bucket);
        return success();
      })
      .Case<exec::ReduceOp>([&](exec::ReduceOp reduce) {
        int64_t bucket = bucketOf(reduce.getTarget());
        head("reduce", "reduce " + nameOf(bucket, reduce.getTarget()));
        refs({reduce.getWhole(), reduce.getTarget()});
        json->attribute("elements", int64_t(reduce.getElements()));
        string("type", typeName(reduce.getType()));
        if (reduce.getFast())
          json->attribute("fast", true);
        if (reduce.getAccumulate())
          json->attribute("accumulate", true);
        json->attribute("bucket", bucket);
        return success();
      })
      .Case<exec::AllToAllOp>([&](exec::AllToAllOp exchange) {
        head("all_to_all", "all-to-all into " + exchange.getTarget().getBuffer().getValue());
        refs({exchange.getSource(), exchange.getTarget()});
        json->attribute("bytes", int64_t(exchange.getBytes()));
        if (exchange.getTraffic() != exec::Traffic::AllToAll)
          string("traffic", stringifyTraffic(exchange.getTraffic()));
        return success();
      })
      .Case<exec::ShiftOp>([&](exec::ShiftOp shift) {
        head("shift", "shift into " + shift.getTarget().getBuffer().getValue());
        refs({shift.getSource(), shift.getTarget()});
        json->attribute("bytes", int64_t(shift.getBytes()));
        string("traffic", stringifyTraffic(shift.getTraffic()));
        return success();
      })
      .Case<exec::AddOp>([&](exec::AddOp add) {
        head("add", "add to " + add.getTarget().getBuffer().getValue());
        refs({add.getTarget(), add.getSource()});
        json->attribute("elements", int64_t(add.getElements()));
        string("type", typeName(add.getType()));
        return success();
      })
      .Case<exec::SendOp>([&](exec::SendOp send) {
        head("send", "send " + send.getLabel());
        transfer(send, send.getSource());
        return success();
      })
      .Case<exec::RecvOp>([&](exec::RecvOp recv) {
        head("recv", "receive " + recv.getLabel());
        transfer(recv, recv.getTarget());
        return success();
      })
      .Case<exec::NormOp>([&](exec::NormOp norm) {
        head("norm", "norm " + norm.getBucket());
        refs({norm.getGradient(), norm.getRecord()});
        int64_t bucket = indexOfBucket(norm.getBucketAttr());
        json->attribute("bucket", bucket);
        string("type", typeName(buckets[bucket].getGradientType()));
        if (norm.getWhole())
          json->attribute("whole", true);
        return success();
      })
      .Case<exec::AgreeOp>([&](exec::AgreeOp agree) {
        head("agree", "agree");
        auto list = llvm::to_vector(agree.getNorms().getAsRange<exec::RefAttr>());
        json->attribute("norms", int64_t(list.size()));
        llvm::append_range(list, agree.getLosses().getAsRange<exec::RefAttr>());
        if (ArrayAttr measures = agree.getMeasuresAttr()) {
          llvm::append_range(list, measures.getAsRange<exec::RefAttr>());
          numbers("places", agree.getPlaces());
          numbers("lengths", agree.getLengths());
        }
        if (ArrayAttr outputs = agree.getOutputsAttr()) {
          llvm::append_range(list, outputs.getAsRange<exec::RefAttr>());
          numbers("outputs", agree.getNumbers());
          numbers("output_bytes", agree.getBytes());
        }
        refs(list);
        return success();
      })
      .Case<exec::UpdateOp>([&](exec::UpdateOp update) {
        head("update", "update " + update.getBucket());
        string("symbol", update.getKernel().getLeafReference());
        refs(llvm::to_vector(update.getBuffers().getAsRange<exec::RefAttr>()));
        json->attribute("elements", int64_t(update.getElements()));
        if (update.getFrom())
          json->attribute("from", int64_t(update.getFrom()));
        json->attribute("bucket", indexOfBucket(update.getBucketAttr()));
        if (update.getSliced())
          json->attribute("sliced", true);
        if (update.getDirection())
          json->attribute("direction", true);
        if (update.getUnpadded())
          json->attribute("unpadded", true);
        if (auto record = update.getRecord())
          temp(*record);
        return success();
      })
      .Case<exec::MapOp>([&](exec::MapOp map) {
        head("map", "map by " + map.getKernel().getLeafReference().getValue());
        string("symbol", map.getKernel().getLeafReference());
        refs(llvm::to_vector(map.getBuffers().getAsRange<exec::RefAttr>()));
        json->attribute("elements", int64_t(map.getElements()));
        json->attribute("grain", int64_t(map.getGrain()));
        return success();
      })
      .Case<exec::CopyOp>([&](exec::CopyOp copy) {
        head("copy", "copy to " + copy.getTarget().getBuffer().getValue());
        refs({copy.getSource(), copy.getTarget()});
        json->attribute("bytes", int64_t(copy.getBytes()));
        return success();
      })
      .Case<exec::FoldOp>([&](exec::FoldOp fold) {
        head("fold", "fold statistics");
        SmallVector<exec::RefAttr> list{fold.getStatistics()};
        llvm::append_range(list, fold.getTargets().getAsRange<exec::RefAttr>());
        refs(list);
        json->attribute("bytes", int64_t(fold.getBytes()));
        json->attributeArray("folds", [&] {
          for (auto [place, elements, momentum] : llvm::zip_equal(fold.getPlaces(), fold.getElements(),
                                                                  fold.getMomenta().getAsRange<FloatAttr>()))
            json->object([&, place = place, elements = elements, momentum = momentum] {
              json->attribute("place", place);
              json->attribute("elements", elements);
              json->attribute("momentum", momentum.getValueAsDouble());
            });
        });
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("is in a schedule, expected actions and waits");
      });
}

LogicalResult ProgramWriter::writeActions(exec::ProgramOp program) {
  LogicalResult result = success();
  json->array([&] {
    DenseMap<Value, std::pair<int64_t, int>> events;
    std::vector<std::set<int64_t>> pending(streams.size());
    for (auto schedule : program.getBody().getOps<exec::ScheduleOp>())
      for (Operation &op : schedule.getBody().front()) {
        // An action waits for what its stream was told to wait for since the stream's last.
        if (auto wait = dyn_cast<exec::WaitOp>(op)) {
          auto [index, from] = events.at(wait.getEvent());
          if (int on = streams.of(wait); from != on)
            pending[on].insert(index);
          continue;
        }
        if (!exec::isAction(&op)) {
          result = op.emitOpError("is in a schedule, expected actions and waits");
          return;
        }
        int on = streams.of(&op);
        events.try_emplace(op.getResult(0), int64_t(events.size()), on);
        json->object([&] {
          json->attribute("queue", int64_t(on));
          result = writeAction(op);
          if (succeeded(result))
            result = communicator(op);
          if (succeeded(result))
            result = changes(op);
          touches(op);
          auto &waits = pending[on];
          if (!waits.empty())
            json->attributeArray("waits", [&] {
              for (int64_t index : waits)
                json->value(index);
            });
          waits.clear();
        });
        if (failed(result))
          return;
      }
  });
  return result;
}

LogicalResult ProgramWriter::writeSection(exec::ProgramOp program) {
  uint64_t begin = actions.tell();
  LogicalResult result = success();
  {
    llvm::json::OStream section(actions);
    json = &section;
    result = writeActions(program);
    json = &document;
  }
  numbers("section", {int64_t(begin), int64_t(actions.tell() - begin)});
  actions << "\n";
  return result;
}

/// The update with the addresses that copies bring its operands from.
static OwningOpRef<exec::UpdateOp> withHomes(exec::UpdateOp update,
                                             const DenseMap<exec::RefAttr, exec::RefAttr> &sources) {
  SmallVector<Attribute> homes;
  for (auto ref : update.getBuffers().getAsRange<exec::RefAttr>()) {
    exec::RefAttr source = sources.lookup(ref);
    homes.push_back(source ? source : ref);
  }
  OwningOpRef<exec::UpdateOp> home = update.clone();
  home->setBuffersAttr(ArrayAttr::get(update.getContext(), homes));
  return home;
}

/// What they refer to tells which state there is: said beside the actions, for ranks of other positions. Of
/// what is updated part by part, or in two actions, the first says it: later ones may not read all of it.
LogicalResult ProgramWriter::writeUpdates(exec::ProgramOp program) {
  LogicalResult result = success();
  DenseMap<exec::RefAttr, exec::RefAttr> sources; ///< of what was copied last
  DenseSet<Attribute> said;
  json->attributeArray("updates", [&] {
    for (auto schedule : program.getBody().getOps<exec::ScheduleOp>())
      for (Operation &op : schedule.getBody().front()) {
        if (auto copy = dyn_cast<exec::CopyOp>(op))
          sources[copy.getTarget()] = copy.getSource();
        // What a transform replaces is kept from step to step.
        auto isKept = [&](exec::RefAttr ref) {
          auto buffer = program.lookupSymbol<exec::BufferOp>(ref.getBuffer());
          return buffer && buffer.getRole() == exec::BufferRole::Kept;
        };
        if (auto transform = dyn_cast<exec::TransformOp>(op);
            transform && llvm::any_of(transform.getBuffers().getAsRange<exec::RefAttr>(), isKept))
          json->object([&] {
            json->attribute("queue", int64_t(streams.of(transform)));
            if (succeeded(result))
              result = writeAction(op);
          });
        auto update = dyn_cast<exec::UpdateOp>(op);
        if (!update || update.getFrom() || !said.insert(update.getBucketAttr()).second)
          continue;
        json->object([&] {
          json->attribute("queue", int64_t(streams.of(update)));
          if (succeeded(result))
            result = writeAction(**withHomes(update, sources));
        });
      }
  });
  return result;
}

void ProgramWriter::writeQueues() {
  json->attributeArray("queues", [&] {
    for (int index = 0; index < streams.size(); ++index)
      json->object([&] {
        exec::StreamOp stream = streams[index];
        string("name", stream.getSymName());
        string("kind", exec::stringifyStreamKind(stream.getKind()));
      });
  });
}

void ProgramWriter::writeMemories(exec::ProgramOp program) {
  json->attributeArray("memories", [&] {
    for (exec::MemoryOp memory : exec::getMemories(program))
      json->object([&] {
        string("kind", exec::stringifyMemoryKind(memory.getKind()));
        json->attribute("bytes", int64_t(*memory.getBytes()));
        json->attribute("alignment", int64_t(memory.getAlignment()));
      });
  });
}

LogicalResult ProgramWriter::writePosition(exec::ProgramOp program) {
  SmallVector<exec::MemoryOp> memories = exec::getMemories(program);
  for (exec::MemoryOp memory : memories)
    if (!memory.getBytes())
      return memory.emitOpError("has no bytes, expected memory to be planned");
  LogicalResult result = success();
  json->object([&] {
    writeMemories(program);
    writeQueues();
    json->attributeArray("blocks", [&] {
      for (int64_t block : program.getBlocks())
        json->value(block);
    });
    if (!memories.empty())
      integers("memory", memories.front().getLiveAttr());
    integers("traffic", program.getTrafficAttr());
    result = writeBuffers(program);
    if (succeeded(result))
      result = writeLoads(program);
    if (succeeded(result))
      result = writeUpdates(program);
    if (succeeded(result))
      result = writeSection(program);
  });
  return result;
}

//===- DescribeCalls.cpp - what each call of a segment computes -----------===//
//
// Once a segment is machine code, nobody can say what its calls do. This pass
// notes it while the operations are still there: for -report=kernels, which
// measures calls in the order in which a segment makes them.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Costs.h"

#include "llvm/ADT/SetVector.h"

namespace dsopt {
#define GEN_PASS_DEF_DESCRIBECALLS
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// Longest list of operations that a kernel's description holds.
constexpr size_t kLongest = 72;

/// What one call is, with its flops; equal ones are one row of the report.
struct Call : CallDescription {
  Call(CallDescription description, int64_t flops) : CallDescription(std::move(description)), flops(flops) {}
  int64_t flops;

  DictionaryAttr attribute(MLIRContext *context) const {
    Builder b(context);
    NamedAttrList list;
    list.set("kind", b.getStringAttr(kind));
    list.set("what", b.getStringAttr(what));
    list.set("type", TypeAttr::get(type));
    list.set("bytes", b.getI64IntegerAttr(bytes));
    list.set("flops", b.getI64IntegerAttr(flops));
    if (!products.empty())
      list.set("products", b.getDenseI64ArrayAttr(products));
    if (head)
      list.set("head", b.getI64IntegerAttr(head));
    return list.getDictionary(context);
  }
};
} // namespace

/// The kernel's operations in order, each once with how often it occurs, shortened.
static std::string listOperations(func::FuncOp kernel) {
  llvm::SetVector<StringRef> names;
  llvm::StringMap<int64_t> counts;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isa<graph::ConstantOp>(op)) {
      names.insert(op.getName().stripDialect());
      ++counts[op.getName().stripDialect()];
    }
  std::string text;
  for (StringRef name : names) {
    if (text.size() > kLongest)
      return text + " ...";
    int64_t count = counts[name];
    text += (text.empty() ? "" : " ") + name.str() + (count > 1 ? "*" + std::to_string(count) : "");
  }
  return text;
}

/// A kernel that costs so many flops.
static Call describeKernel(func::FuncOp kernel, int64_t flops) {
  Call call({"kernel", "", graph::writtenType(kernel), graph::bytesMoved(kernel)}, flops);
  auto range = kernel->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr);
  graph::Iteration iteration = *graph::getIteration(kernel);
  call.what = (kernel.getName() + " " + stringifyIteration(iteration)).str() +
              (range && iteration != graph::Iteration::Flat ? " " + shapeText(range.asArrayRef()) : "") +
              ": " + listOperations(kernel);
  return call;
}

/// The kernel that an operation of the module names, null if it is lowered already.
static func::FuncOp findKernel(Operation &op, SymbolRefAttr name, SymbolTableCollection &symbols) {
  return symbols.lookupSymbolIn<func::FuncOp>(op.getParentOfType<ModuleOp>(), name);
}

/// The call that an operation becomes.
static FailureOr<Call> describe(Operation &op, SymbolTableCollection &symbols) {
  auto counted = op.getAttrOfType<IntegerAttr>(exec::kFlopsAttr);
  if (!counted)
    return op.emitOpError("has no ") << exec::kFlopsAttr << ", expected what blocks-to-segments counts";
  int64_t flops = counted.getInt();
  if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
    func::FuncOp kernel = findKernel(op, launch.getKernel(), symbols);
    if (!kernel)
      return op.emitOpError("launches ")
             << launch.getKernel() << ", expected a kernel that is not lowered yet";
    return describeKernel(kernel, flops);
  }
  return Call(cast<RuntimeCallOpInterface>(op).describeCall(), flops);
}

/// The module of the model that an operation comes from, else the node; empty where neither is known.
static StringRef placeOf(Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location one : fused.getLocations())
      if (StringRef place = placeOf(one); !place.empty())
        return place;
    return "";
  }
  auto node = dyn_cast<NameLoc>(location);
  auto behind = node ? dyn_cast<NameLoc>(node.getChildLoc()) : NameLoc();
  if (!behind)
    return "";
  // "module 'layers.0' (model.py:42)" between the node and the model, where it is known.
  StringRef module = behind.getName().getValue();
  bool isKnown = isa<NameLoc>(behind.getChildLoc()) && module.consume_front("module '");
  return isKnown ? module.take_until([](char c) { return c == '\''; }) : node.getName().getValue();
}

/// The places that the operations of a call come from.
static void collectPlaces(Operation &op, SymbolTableCollection &symbols, llvm::SetVector<StringRef> &places) {
  auto add = [&](Operation &one) {
    if (StringRef place = placeOf(one.getLoc()); !place.empty())
      places.insert(place);
  };
  auto launch = dyn_cast<exec::LaunchOp>(op);
  auto kernel = launch ? findKernel(op, launch.getKernel(), symbols) : func::FuncOp();
  if (!kernel)
    return add(op);
  for (Operation &inner : kernel.getBody().front().without_terminator())
    if (!isa<graph::ConstantOp>(inner))
      add(inner);
}

namespace {
struct DescribeCalls : dsopt::impl::DescribeCallsBase<DescribeCalls> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    SymbolTableCollection symbols;
    graph::FlopCounter counter(module);
    llvm::SetVector<Attribute> calls;
    std::vector<llvm::SetVector<StringRef>> places; // of each
    auto indexOf = [&](const Call &call) -> int64_t {
      Attribute attribute = call.attribute(context);
      if (calls.insert(attribute))
        places.emplace_back();
      return std::distance(calls.begin(), llvm::find(calls, attribute));
    };
    Builder builder(context);
    for (auto segment : module.getOps<func::FuncOp>()) {
      if (!segment->hasAttr(exec::kSegmentAttr) || segment.isExternal())
        continue;
      SmallVector<int64_t> indices;
      for (Operation &op : segment.getBody().front().without_terminator())
        if (!isa<exec::TempOp, exec::ViewOp>(op) && op.getNumOperands()) {
          FailureOr<Call> call = describe(op, symbols);
          if (failed(call))
            return signalPassFailure();
          indices.push_back(indexOf(*call));
          collectPlaces(op, symbols, places[indices.back()]);
        }
      segment->setAttr(exec::kCallsAttr, builder.getDenseI64ArrayAttr(indices));
    }
    NamedAttrList updates;
    WalkResult walked = module.walk([&](exec::UpdateOp update) {
      StringAttr name = update.getKernel().getLeafReference();
      func::FuncOp kernel = findKernel(*update, update.getKernel(), symbols);
      if (!kernel || kernel.isExternal() || updates.get(name))
        return WalkResult::advance();
      FailureOr<int64_t> flops = counter.count(kernel);
      if (failed(flops))
        return WalkResult::interrupt();
      Call call = describeKernel(kernel, *flops);
      // The last argument is the table of scalars.
      call.kind = "update";
      call.bytes -= graph::numBytes(kernel.getArgumentTypes().back());
      updates.set(name, builder.getI64IntegerAttr(indexOf(call)));
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    SmallVector<Attribute> placed;
    for (auto [call, from] : llvm::zip_equal(calls, places)) {
      NamedAttrList list(cast<DictionaryAttr>(call));
      if (!from.empty())
        list.set("place", builder.getStringAttr(from.size() == 1
                                                    ? from[0]
                                                    : from[0] + " and " + Twine(from.size() - 1) + " more"));
      placed.push_back(list.getDictionary(context));
    }
    module->setAttr(exec::kCallsAttr, builder.getArrayAttr(placed));
    module->setAttr(exec::kUpdateCallsAttr, updates.getDictionary(context));
  }
};
} // namespace

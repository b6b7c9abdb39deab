//===- DescribeCalls.cpp - what each call of a segment computes -----------===//
//
// Once a segment is machine code, nobody can say what its calls do. This pass
// notes it while the operations are still there: for -report=kernels, which
// measures calls in the order in which a segment makes them.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Runtime/ABI.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dsopt {
#define GEN_PASS_DEF_DESCRIBECALLS
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// Longest list of operations that a kernel's description holds.
constexpr size_t kLongest = 72;

/// What one call is; equal ones are one row of the report.
struct Call {
  StringRef kind; ///< product, kernel or the routine's name
  std::string what;
  Type type; ///< of the elements it computes with
  int64_t bytes = 0, flops = 0;
  /// Products in it: how many, batch, m, n, k, whether a and b are transposed.
  SmallVector<int64_t> products = {};

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
    return list.getDictionary(context);
  }
};
} // namespace

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

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

static int64_t flopsOf(func::FuncOp kernel) {
  int64_t flops = 0;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (auto costed = dyn_cast<CostedOpInterface>(op))
      flops += costed.getFlops();
    else
      for (Type type : op.getResultTypes())
        flops += graph::numElements(type);
  }
  return flops;
}

/// Bytes of an argument that the kernel reads: of what it only gathers from, as much as it takes.
static int64_t bytesRead(BlockArgument argument) {
  int64_t gathered = 0;
  for (OpOperand &use : argument.getUses()) {
    auto gather = dyn_cast<graph::GatherOp>(use.getOwner());
    if (!gather || use.getOperandNumber() != 0)
      return graph::numBytes(argument.getType());
    gathered += graph::numBytes(gather.getType());
  }
  return std::min(gathered, graph::numBytes(argument.getType()));
}

static Call describeKernel(func::FuncOp kernel) {
  Type written = kernel.getResultTypes().empty() ? kernel.getArgumentTypes()[0] : kernel.getResultTypes()[0];
  Call call = {"kernel", "", getElementTypeOrSelf(written)};
  auto range = kernel->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr);
  graph::Iteration iteration = *graph::getIteration(kernel);
  call.what = (kernel.getName() + " " + stringifyIteration(iteration)).str() +
              (range && iteration != graph::Iteration::Flat ? " " + shapeText(range.asArrayRef()) : "") +
              ": " + listOperations(kernel);
  for (BlockArgument argument : kernel.getArguments())
    call.bytes += bytesRead(argument);
  for (Type type : kernel.getResultTypes())
    call.bytes += graph::numBytes(type);
  call.flops = flopsOf(kernel);
  return call;
}

static Call describeProduct(exec::GemmOp gemm) {
  auto result = cast<MemRefType>(gemm.getResult().getType()), lhs = cast<MemRefType>(gemm.getLhs().getType());
  int64_t rank = result.getRank(), batch = 1, m = result.getDimSize(rank - 2),
          n = result.getDimSize(rank - 1);
  for (int64_t extent : result.getShape().drop_back(2))
    batch *= extent;
  int64_t k = lhs.getDimSize(lhs.getRank() - (gemm.getTransposeA() ? 2 : 1));
  Call call = {"product", "", lhs.getElementType()};
  call.products = {1, batch, m, n, k, gemm.getTransposeA(), gemm.getTransposeB()};
  call.what = (batch > 1 ? std::to_string(batch) + " of " : "") + shapeText({m, n, k}) + " " +
              (gemm.getTransposeA() ? "T" : "N") + (gemm.getTransposeB() ? "T" : "N");
  call.flops = 2 * batch * m * n * k;
  return call;
}

/// Of attention: batch, heads, rows, columns and the sizes of q's and v's rows.
static Call describeAttention(Operation &op) {
  auto q = cast<MemRefType>(op.getOperand(0).getType()), v = cast<MemRefType>(op.getOperand(2).getType());
  SmallVector<int64_t> shape(q.getShape().drop_back());
  shape.append({v.getDimSize(2), q.getDimSize(3), v.getDimSize(3)});
  Call call = {op.getName().stripDialect(), shapeText(shape), q.getElementType()};
  if (op.hasAttr("causal"))
    call.what += " causal";
  // All but the workspace.
  for (Value operand : op.getOperands().drop_back())
    call.bytes += graph::numBytes(operand.getType());
  if (auto flops = op.getAttrOfType<IntegerAttr>("flops"))
    call.flops = flops.getInt();
  return call;
}

/// Of the vocabulary loss: rows, depth and classes; its products are made some rows at a time.
static Call describeLoss(exec::LinearNllOp loss) {
  auto x = cast<MemRefType>(loss.getX().getType()), weight = cast<MemRefType>(loss.getWeight().getType());
  bool transposed = loss.getTransposeB();
  int64_t rows = x.getDimSize(0), depth = x.getDimSize(1), classes = weight.getDimSize(transposed ? 0 : 1);
  Call call = {"linear_nll", shapeText({rows, depth, classes}), x.getElementType()};
  int64_t chunk = dsopt_linear_nll_chunk(rows, classes), left = rows % chunk;
  for (auto [count, some] : {std::pair(rows / chunk, chunk), std::pair(int64_t(left ? 1 : 0), left)}) {
    if (!count)
      continue;
    call.products.append({count, 1, some, classes, depth, 0, transposed});
    if (loss.getXGrad())
      call.products.append({count, 1, some, depth, classes, 0, !transposed});
    if (loss.getWeightGrad() && transposed)
      call.products.append({count, 1, classes, depth, some, 1, 0});
    else if (loss.getWeightGrad())
      call.products.append({count, 1, depth, classes, some, 1, 0});
  }
  // All but the workspace.
  for (Value operand : loss->getOperands().drop_back())
    call.bytes += graph::numBytes(operand.getType());
  if (auto flops = loss->getAttrOfType<IntegerAttr>("flops"))
    call.flops = flops.getInt();
  return call;
}

/// The call that an operation becomes.
static Call describe(Operation &op, SymbolTable &symbols) {
  auto bytes = [&] {
    int64_t sum = 0;
    for (Value operand : op.getOperands())
      sum += graph::numBytes(operand.getType());
    return sum;
  };
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    if (auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel()))
      return describeKernel(kernel);
  if (auto gemm = dyn_cast<exec::GemmOp>(op)) {
    Call call = describeProduct(gemm);
    call.bytes = bytes();
    return call;
  }
  if (isa<exec::AttentionOp, exec::AttentionGradOp>(op))
    return describeAttention(op);
  if (auto loss = dyn_cast<exec::LinearNllOp>(op))
    return describeLoss(loss);
  // Any other routine: its result's shape, its operands' bytes, the flops it says.
  auto scatter = dyn_cast<exec::ScatterAddOp>(op);
  Value written = scatter ? scatter.getResult() : op.getOperand(op.getNumOperands() - 1);
  auto result = cast<MemRefType>(written.getType());
  auto flops = op.getAttrOfType<IntegerAttr>("flops");
  return {op.getName().stripDialect(), shapeText(result.getShape()), result.getElementType(), bytes(),
          flops ? flops.getInt() : 0};
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
static void collectPlaces(Operation &op, SymbolTable &symbols, llvm::SetVector<StringRef> &places) {
  auto add = [&](Operation &one) {
    if (StringRef place = placeOf(one.getLoc()); !place.empty())
      places.insert(place);
  };
  auto launch = dyn_cast<exec::LaunchOp>(op);
  auto kernel = launch ? symbols.lookup<func::FuncOp>(launch.getKernel()) : func::FuncOp();
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
    SymbolTable symbols(module);
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
          indices.push_back(indexOf(describe(op, symbols)));
          collectPlaces(op, symbols, places[indices.back()]);
        }
      segment->setAttr(exec::kCallsAttr, builder.getDenseI64ArrayAttr(indices));
    }
    NamedAttrList updates;
    module.walk([&](exec::UpdateOp update) {
      auto kernel = symbols.lookup<func::FuncOp>(update.getKernel());
      if (!kernel || kernel.isExternal() || updates.get(update.getKernel()))
        return;
      Call call = describeKernel(kernel);
      // The last argument is the table of scalars.
      call.kind = "update";
      call.bytes -= graph::numBytes(kernel.getArgumentTypes().back());
      updates.set(update.getKernel(), builder.getI64IntegerAttr(indexOf(call)));
    });
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

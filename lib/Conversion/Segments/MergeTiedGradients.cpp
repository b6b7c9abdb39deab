//===- MergeTiedGradients.cpp - look-ups add to the other gradient --------===//
//
// A look-up's gradient is zero but for the rows that were looked up, and as large
// as the vocabulary. Where it is the last term of a sum on this rank there is no
// need for a buffer of it: each row's sum goes straight into the sum.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

namespace dsopt {
#define GEN_PASS_DEF_MERGETIEDGRADIENTS
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// An addition, and the run that alone has touched one of its two terms.
struct Merge {
  AddOp add;
  RunOp run;
  unsigned argument; ///< of the run: that term
};

class TiedGradientMerger {
public:
  TiedGradientMerger(ProgramOp program, SymbolTable &symbols)
      : program(program), symbols(symbols), analysis(cast<ModuleOp>(symbols.getOp())) {}

  /// The first addition that a run can make; fails where an action's accesses are wrong.
  FailureOr<std::optional<Merge>> find();
  void rewrite(const Merge &merge);

private:
  bool addsAccumulators(AddOp add);
  FailureOr<std::optional<Merge>> find(AddOp add);
  /// The scatter that alone makes an argument of the segment, null if anything else does.
  ScatterAddOp scatterInto(func::FuncOp segment, unsigned argument);
  func::FuncOp addingSegment(func::FuncOp segment, unsigned argument);

  ProgramOp program;
  SymbolTable &symbols;
  AccessAnalysis analysis;
};
} // namespace

static bool isWhole(RefAttr ref) { return !ref.getSlot() && !ref.getOffset() && ref.isUniform(); }

bool TiedGradientMerger::addsAccumulators(AddOp add) {
  FlatSymbolRefAttr bucket;
  for (RefAttr ref : {add.getTarget(), add.getSource()}) {
    BufferOp buffer = analysis.buffer(program, ref.getBuffer().getAttr());
    if (!isWhole(ref) || !buffer || buffer.getRole() != BufferRole::Accumulator || buffer.getPersistent() ||
        (bucket && buffer.getOfAttr() != bucket))
      return false;
    bucket = buffer.getOfAttr();
  }
  return add.getTarget() != add.getSource();
}

ScatterAddOp TiedGradientMerger::scatterInto(func::FuncOp segment, unsigned argument) {
  if (!segment || segment.isExternal())
    return {};
  Value gradient = segment.getArgument(argument);
  while (gradient.hasOneUse()) {
    Operation *user = *gradient.user_begin();
    if (auto scatter = dyn_cast<ScatterAddOp>(user))
      return scatter.getResult() == gradient ? scatter : ScatterAddOp();
    auto view = dyn_cast<ViewOp>(user);
    if (!view)
      return {};
    gradient = view.getResult();
  }
  return {};
}

FailureOr<std::optional<Merge>> TiedGradientMerger::find(AddOp add) {
  RefAttr terms[] = {add.getTarget(), add.getSource()};
  SmallVector<Operation *> touching[2];
  bool behind = false, sourceStays = false;
  for (Operation &op : getSchedule(program).getBody().front()) {
    behind |= &op == add;
    if (&op == add || !isAction(&op))
      continue;
    FailureOr<ArrayRef<Access>> accesses = analysis.of(&op);
    if (failed(accesses))
      return failure();
    for (auto [term, list] : llvm::zip(terms, touching))
      if (llvm::any_of(*accesses, [&, buffer = term.getBuffer().getAttr()](const Access &access) {
            return access.buffer == buffer;
          })) {
        if (!behind)
          list.push_back(&op);
        sourceStays |= behind && term == add.getSource();
      }
  }
  if (sourceStays || !llvm::all_of(touching[0], llvm::IsaPred<RunOp>) ||
      !llvm::all_of(touching[1], llvm::IsaPred<RunOp>))
    return std::optional<Merge>();
  for (int term : {0, 1}) {
    ArrayRef<Operation *> own = touching[term], others = touching[1 - term];
    if (own.size() != 1 || others.empty() || !others.back()->isBeforeInBlock(own.front()))
      continue;
    auto run = cast<RunOp>(own.front());
    for (unsigned argument : analysis.gradients(run))
      if (run.getBuffers()[argument] == terms[term] && !run.getAccumulate() &&
          scatterInto(symbols.lookup<func::FuncOp>(run.getSegment()), argument))
        return std::optional(Merge{add, run, argument});
  }
  return std::optional<Merge>();
}

FailureOr<std::optional<Merge>> TiedGradientMerger::find() {
  for (auto add : getSchedule(program).getBody().front().getOps<AddOp>())
    if (addsAccumulators(add)) {
      FailureOr<std::optional<Merge>> found = find(add);
      if (failed(found) || *found)
        return found;
    }
  return std::optional<Merge>();
}

/// A copy of the segment that adds to the argument, whatever its run does to other gradients.
func::FuncOp TiedGradientMerger::addingSegment(func::FuncOp segment, unsigned argument) {
  std::string name = (segment.getSymName() + ".tied." + Twine(argument)).str();
  if (auto known = symbols.lookup<func::FuncOp>(name))
    return known;
  func::FuncOp copy = segment.clone();
  copy.setSymName(name);
  symbols.insert(copy, std::next(segment->getIterator()));
  MLIRContext *context = copy.getContext();
  copy.setArgAttr(argument, kAccessAttr, AccessModeAttr::get(context, AccessMode::Add));
  ScatterAddOp scatter = scatterInto(copy, argument);
  scatter.setIntoGradient(false);
  scatter.setSums(true);
  if (scatter.getWorkspace())
    return copy;
  int64_t bytes = scatterAddWorkspace(cast<MemRefType>(scatter.getIndices().getType()).getNumElements(),
                                      /*isNarrow=*/false, /*sums=*/true, isForDevice(scatter));
  auto temp = copy->getAttrOfType<IntegerAttr>(kTempAttr);
  int64_t offset = temp ? aligned(temp.getInt()) : 0;
  OpBuilder builder(scatter);
  Value workspace =
      TempOp::create(builder, scatter.getLoc(), MemRefType::get({bytes}, builder.getI8Type()), offset);
  scatter.getWorkspaceMutable().assign(workspace);
  copy->setAttr(kTempAttr, builder.getI64IntegerAttr(offset + bytes));
  return copy;
}

void TiedGradientMerger::rewrite(const Merge &merge) {
  ProgramBuilder out(program);
  RunOp run = merge.run;
  func::FuncOp adding = addingSegment(symbols.lookup<func::FuncOp>(run.getSegment()), merge.argument);
  std::optional<RefAttr> scratch = run.getTemp();
  int64_t bytes = adding->getAttrOfType<IntegerAttr>(kTempAttr).getInt();
  run.setSegmentAttr(FlatSymbolRefAttr::get(adding.getSymNameAttr()));
  run.setTempAttr(
      out.ref(out.buffer("temp." + Twine(bytes), MemRefType::get({bytes}, IntegerType::get(out.context, 8)),
                         BufferKind::Buffers)));
  // One buffer holds both terms from the start.
  AddOp add = merge.add;
  RefAttr target = add.getTarget(), source = add.getSource();
  for (auto other : getSchedule(program).getBody().front().getOps<RunOp>()) {
    SmallVector<Attribute> refs(other.getBuffers().begin(), other.getBuffers().end());
    llvm::replace(refs, Attribute(source), Attribute(target));
    if (!llvm::equal(refs, other.getBuffers()))
      other.setBuffersAttr(ArrayAttr::get(out.context, refs));
  }
  add.erase();
  analysis.buffer(program, source.getBuffer().getAttr()).erase();
  // Whatever else computes with as many bytes of scratch has them in the same buffer: runs, and what updates
  // whole matrices.
  if (scratch && SymbolTable::symbolKnownUseEmpty(scratch->getBuffer().getAttr(), program))
    analysis.buffer(program, scratch->getBuffer().getAttr()).erase();
}

LogicalResult dsopt::mergeTiedGradients(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto program : module.getOps<ProgramOp>())
    while (getSchedule(program)) {
      // What was learned of a program holds until it changes.
      TiedGradientMerger merger(program, symbols);
      FailureOr<std::optional<Merge>> found = merger.find();
      if (failed(found))
        return failure();
      if (!*found)
        break;
      merger.rewrite(**found);
    }
  return success();
}

namespace {
struct MergeTiedGradients : dsopt::impl::MergeTiedGradientsBase<MergeTiedGradients> {
  void runOnOperation() override {
    llvm::DenseSet<Attribute> before = segmentsRun();
    if (failed(mergeTiedGradients(getOperation())))
      return signalPassFailure();
    llvm::DenseSet<Attribute> after = segmentsRun();
    SymbolTable symbols(getOperation());
    for (Attribute segment : before)
      if (!after.contains(segment))
        symbols.erase(symbols.lookup(cast<FlatSymbolRefAttr>(segment).getAttr()));
  }

  llvm::DenseSet<Attribute> segmentsRun() {
    llvm::DenseSet<Attribute> segments;
    getOperation().walk([&](RunOp run) { segments.insert(run.getSegmentAttr()); });
    return segments;
  }
};
} // namespace

//===- PackWeights.cpp - weights packed once for several products of few rows -===//
//
// A kernel of a product copies b as it goes, once for each call: where rows are few that is
// much of its work. A weight that several runs read before it changes is packed once.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Interfaces/CompiledProducts.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"
#include "dsopt/Transforms/Wire/KernelHome.h"
#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Packing takes about as long as is gained by so many products (docs/Performance.md).
constexpr int64_t kReads = 4;
/// Bytes of b that need no copy.
constexpr int64_t kFirstCache = 32 * 1024;

/// A product of a segment that could read a packed b.
struct Site {
  ProductCallOpInterface call;
  unsigned argument;   ///< that b is a part of
  int64_t offset;      ///< bytes before it there
  ProductAttr product; ///< of a b that is packed
  MemRefType packed;
  bool pays = true; ///< for each of the segment's runs
};

/// A weight as a product's kernel has it packed: its buffer and slot, the bytes before it, and the product.
using Weight = std::tuple<StringAttr, int64_t, int64_t, ProductAttr>;
/// How often it changed before.
using Version = std::pair<Weight, int64_t>;

class Packer {
public:
  Packer(ModuleOp module, TargetAttr target)
      : module(module), target(target), home(module), symbols(module), analysis(module) {}
  LogicalResult pack();

private:
  LogicalResult findSites(func::FuncOp segment);
  /// What a run of a program reads at a site, null if that is no weight.
  std::optional<Weight> weightOf(ProgramOp program, RunOp run, const Site &site);
  LogicalResult countReads(ProgramOp program);
  void packIn(ProgramOp program);
  SymbolRefAttr kernelOf(const Site &site);

  ModuleOp module;
  TargetAttr target;
  KernelHome home;
  SymbolTable symbols;
  AccessAnalysis analysis;
  llvm::MapVector<StringAttr, SmallVector<Site>> sites;             ///< by segment
  DenseMap<Operation *, SmallVector<std::optional<Version>>> reads; ///< of runs, by their segment's sites
  DenseMap<Version, int64_t> counts;                                ///< of the program that is looked at
  DenseMap<Attribute, SymbolRefAttr> kernels;                       ///< by product
};
} // namespace

LogicalResult Packer::findSites(func::FuncOp segment) {
  SmallVector<Site> found;
  for (auto call : segment.getOps<ProductCallOpInterface>()) {
    Value value = call.getPackableB();
    if (!value)
      continue;
    SmallVector<ProductAttr> products;
    if (failed(call.collectProducts(products)))
      return failure();
    ProductAttr product = products.front();
    if (!product || product.getM() > kMostRowsOfPacked ||
        bytesOf(product.getN() * product.getK(), product.getOperands()) <= kFirstCache ||
        !compilesProducts(target, product.getOperands(), product.getResult()) ||
        multipliesTiles(target, product.getOperands()))
      continue;
    int64_t offset = 0;
    while (auto view = value.getDefiningOp<ViewOp>()) {
      SmallVector<int64_t> strides;
      int64_t elements;
      if (failed(cast<MemRefType>(view.getType()).getStridesAndOffset(strides, elements)))
        break;
      offset += bytesOf(elements, product.getOperands());
      value = view.getSource();
    }
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      int64_t elements = packedElements(target, product.getOperands(), product.getN(), product.getK());
      found.push_back({call, argument.getArgNumber(), offset, product.withPacked(true),
                       MemRefType::get(elements, product.getOperands())});
    }
  }
  if (!found.empty())
    sites[segment.getSymNameAttr()] = std::move(found);
  return success();
}

std::optional<Weight> Packer::weightOf(ProgramOp program, RunOp run, const Site &site) {
  auto ref = cast<RefAttr>(run.getBuffers()[site.argument]);
  BufferOp buffer = analysis.buffer(program, ref.getBuffer().getAttr());
  bool isWeight = buffer && buffer.getOf() && ref.isUniform() &&
                  (buffer.getRole() == BufferRole::Stored || buffer.getRole() == BufferRole::Gathered);
  if (!isWeight)
    return std::nullopt;
  return Weight{ref.getBuffer().getAttr(), ref.getSlot(), ref.getOffset() + site.offset, site.product};
}

LogicalResult Packer::countReads(ProgramOp program) {
  DenseMap<std::pair<StringAttr, int64_t>, int64_t> changes; ///< of buffers' slots
  counts.clear();
  for (Operation &op : getSchedule(program).getBody().front()) {
    if (!isAction(&op))
      continue;
    FailureOr<ArrayRef<Access>> list = analysis.of(&op);
    if (failed(list))
      return failure();
    for (const Access &access : *list)
      if (access.writes)
        ++changes[{access.buffer, access.slot}];
    auto run = dyn_cast<RunOp>(op);
    auto known = run ? sites.find(run.getSegmentAttr().getAttr()) : sites.end();
    if (known == sites.end())
      continue;
    for (Site &site : known->second) {
      std::optional<Version> &version = reads[run].emplace_back();
      std::optional<Weight> weight = weightOf(program, run, site);
      site.pays &= weight.has_value();
      if (!weight)
        continue;
      version = {*weight, changes.lookup({std::get<StringAttr>(*weight), std::get<1>(*weight)})};
      ++counts[*version];
    }
  }
  // A segment is the same for all of its runs.
  for (auto run : getSchedule(program).getBody().getOps<RunOp>())
    if (auto read = reads.find(run); read != reads.end())
      for (auto [site, version] :
           llvm::zip_equal(sites.find(run.getSegmentAttr().getAttr())->second, read->second))
        site.pays &= version && counts.lookup(*version) >= kReads;
  return success();
}

SymbolRefAttr Packer::kernelOf(const Site &site) {
  ProductAttr product = site.product;
  SymbolRefAttr &known = kernels[product];
  if (known)
    return known;
  OpBuilder builder(module.getContext());
  FunctionType type =
      builder.getFunctionType({builder.getIndexType(), builder.getIndexType(), product.typeOfB(),
                               product.typeOfPackedB(site.packed.getNumElements())},
                              {});
  auto kernel = func::FuncOp::create(builder, module.getLoc(),
                                     home.freeName("pack" + std::to_string(kernels.size() - 1)), type);
  kernel->setAttr(kProductAttr, product);
  kernel->setAttr(kPacksAttr, builder.getUnitAttr());
  kernel->setAttr(graph::kRangeAttr,
                  builder.getDenseI64ArrayAttr(llvm::divideCeil(product.getN(), productLanes(target))));
  return known = home.add(kernel);
}

void Packer::packIn(ProgramOp program) {
  ProgramBuilder out(program);
  DenseMap<Weight, RefAttr> places;
  DenseMap<Weight, int64_t> packed; ///< versions
  for (auto run : llvm::to_vector(getSchedule(program).getBody().getOps<RunOp>())) {
    auto known = sites.find(run.getSegmentAttr().getAttr());
    if (known == sites.end())
      continue;
    SmallVector<Attribute> buffers(run.getBuffers().begin(), run.getBuffers().end());
    for (auto [site, version] : llvm::zip_equal(known->second, reads[run])) {
      if (!site.pays)
        continue;
      const auto &[weight, change] = *version;
      auto ref = cast<RefAttr>(run.getBuffers()[site.argument]);
      RefAttr &place = places[weight];
      if (!place) {
        BufferOp buffer = out.bufferOf(ref);
        place = out.ref(out.buffer(*buffer.getOf() + ".packed." + Twine(places.size() - 1), site.packed,
                                   BufferKind::Packed));
      }
      if (auto [last, isNew] = packed.try_emplace(weight, change); isNew || last->second != change) {
        last->second = change;
        out.insertBefore(run);
        out.emit<MapOp>(kernelOf(site), ArrayAttr::get(out.context, {shifted(ref, site.offset), place}),
                        llvm::divideCeil(site.product.getN(), productLanes(target)), /*grain=*/1,
                        kComputeStream);
      }
      buffers.push_back(place);
    }
    run.setBuffersAttr(ArrayAttr::get(out.context, buffers));
  }
}

LogicalResult Packer::pack() {
  for (auto segment : module.getOps<func::FuncOp>())
    if (segment->hasAttr(kSegmentAttr) && failed(findSites(segment)))
      return failure();
  for (auto program : module.getOps<ProgramOp>())
    if (getSchedule(program) && failed(countReads(program)))
      return failure();
  for (auto &[name, list] : sites) {
    auto segment = symbols.lookup<func::FuncOp>(name);
    for (Site &site : llvm::make_filter_range(list, [](const Site &site) { return site.pays; })) {
      unsigned last = segment.getNumArguments();
      auto access = NamedAttribute(StringAttr::get(module.getContext(), kAccessAttr),
                                   AccessModeAttr::get(module.getContext(), AccessMode::Read));
      if (failed(segment.insertArgument(last, site.packed, DictionaryAttr::get(module.getContext(), access),
                                        site.call.getLoc())))
        return failure();
      site.call.setPackedB(segment.getArgument(last));
    }
  }
  for (auto program : module.getOps<ProgramOp>())
    if (getSchedule(program))
      packIn(program);
  return success();
}

LogicalResult dsopt::packWeights(ModuleOp module) {
  // A table decides what is copied; a limit of memory is for what has to be there.
  if (module->hasAttr(kGemmTableAttr) || options::device_memory(module))
    return success();
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target))
    return failure();
  if (target->getKind() != TargetKind::CPU)
    return success();
  return Packer(module, *target).pack();
}

namespace {
struct PackWeights : dsopt::impl::PackWeightsBase<PackWeights> {
  void runOnOperation() override {
    if (failed(packWeights(getOperation())))
      signalPassFailure();
  }
};
} // namespace

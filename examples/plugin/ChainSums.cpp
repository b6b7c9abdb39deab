//===- ChainSums.cpp - a collective on values outside the tree ------------===//
//
// Adds what tensor-parallel ranks have of a value one rank after the other, not along a tree: as fast, and at
// four ranks and more with other bits. Runs before form-blocks.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// dist.all_reduce in the order of ranks.
class AllReduceOp : public Op<AllReduceOp, OpTrait::OneOperand, OpTrait::OneResult, OpTrait::ZeroRegions,
                              OpTrait::ZeroSuccessors, MemoryEffectOpInterface::Trait,
                              dist::ValueCollectiveOpInterface::Trait, CostedOpInterface::Trait> {
public:
  using Op::Op;
  static StringRef getOperationName() { return "chain.all_reduce"; }
  static ArrayRef<StringRef> getAttributeNames() {
    static StringRef names[] = {"axes"};
    return names;
  }
  static AllReduceOp create(OpBuilder &builder, Location location, Value value, dist::AxesAttr axes) {
    OperationState state(location, getOperationName(), value, value.getType());
    state.addAttribute("axes", axes);
    return cast<AllReduceOp>(builder.create(state));
  }
  void getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &) {}
  int64_t getFlops() { return 0; }

  dist::AxesAttr getAxes() { return (*this)->getAttrOfType<dist::AxesAttr>("axes"); }
  void writeActions(ProgramBuilder &out, Attribute source, Attribute target, MemRefType type,
                    StringRef name) {
    Type element = type.getElementType();
    int64_t members = dist::getGrid(*this).count(getAxes().getParts()),
            elements = type.getNumElements() / members, bytes = bytesOf(elements, element);
    std::string group = communicatorName(getAxes());
    RefAttr parts = out.ref(out.buffer((name + ".parts").str(), type, BufferKind::Buffers));
    auto exchange =
        out.emit<AllToAllOp>(cast<RefAttr>(source), parts, bytes, out.nextOrder(), group, kTensorStream);
    exchange.setTraffic(Traffic::TensorParallel);
    for (int64_t rank = 1; rank < members; ++rank)
      out.emit<AddOp>(parts, shifted(parts, rank * bytes), elements, element, kComputeStream);
    out.emit<GatherOp>(parts, cast<RefAttr>(target), bytes, TypeAttr(), Traffic::TensorParallel,
                       out.nextOrder(), group, kTensorStream);
  }
};

struct ChainDialect : Dialect {
  explicit ChainDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<ChainDialect>()) {
    addOperations<AllReduceOp>();
  }
  static StringRef getDialectNamespace() { return "chain"; }
};

struct ChainSums : PassWrapper<ChainSums, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChainSums)
  StringRef getArgument() const final { return "chain-sums"; }
  StringRef getDescription() const final { return "add values of tensor-parallel ranks in their order"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<ChainDialect>(); }

  void runOnOperation() final {
    getOperation().walk([](dist::AllReduceOp sum) {
      OpBuilder builder(sum);
      auto chain = AllReduceOp::create(builder, sum.getLoc(), sum.getValue(), sum.getAxes());
      for (NamedAttribute attribute : sum->getDiscardableAttrs())
        chain->setAttr(attribute.getName(), attribute.getValue());
      sum.replaceAllUsesWith(chain->getResult(0));
      sum.erase();
    });
  }
};
} // namespace
MLIR_DECLARE_EXPLICIT_TYPE_ID(AllReduceOp)
MLIR_DEFINE_EXPLICIT_TYPE_ID(AllReduceOp)
MLIR_DECLARE_EXPLICIT_TYPE_ID(ChainDialect)
MLIR_DEFINE_EXPLICIT_TYPE_ID(ChainDialect)

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "chain-sums", "1", [] { PassRegistration<ChainSums>(); }};
}

//===- ValueCollectives.cpp - what sums of values over ranks become -------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Transforms/Order/Passes.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// The parts of a value go to the ranks that add them, and come back as sums. Neighbours are added first, an
/// odd one is carried up (DESIGN 2.1 rule 4).
struct AllReduceActions
    : dist::ValueCollectiveOpInterface::ExternalModel<AllReduceActions, dist::AllReduceOp> {
  dist::AxesAttr getAxes(Operation *op) const { return cast<dist::AllReduceOp>(op).getAxes(); }

  void writeActions(Operation *op, ProgramBuilder &out, Attribute source, Attribute target, MemRefType type,
                    StringRef name) const {
    dist::AxesAttr axes = getAxes(op);
    Type element = type.getElementType();
    int64_t members = dist::getGrid(op).count(axes.getParts()), elements = type.getNumElements() / members,
            bytes = bytesOf(elements, element);
    std::string group = communicatorName(axes);
    ProgramBuilder::BufferTraits traits;
    traits.payload = bytesOf(cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements(), element);
    RefAttr parts = out.ref(out.buffer((name + ".parts").str(), type, BufferKind::Buffers, traits));
    auto exchange =
        out.emit<AllToAllOp>(cast<RefAttr>(source), parts, bytes, out.nextOrder(), group, kTensorStream);
    exchange.setTraffic(Traffic::TensorParallel);
    for (int64_t apart = 1; apart < members; apart *= 2)
      for (int64_t first = 0; first + apart < members; first += 2 * apart)
        out.emit<AddOp>(shifted(parts, first * bytes), shifted(parts, (first + apart) * bytes), elements,
                        element, kComputeStream);
    out.emit<GatherOp>(parts, cast<RefAttr>(target), bytes, TypeAttr(), Traffic::TensorParallel,
                       out.nextOrder(), group, kTensorStream);
  }
};
} // namespace

void dsopt::registerCollectiveActions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, dist::DistDialect *) {
    dist::AllReduceOp::attachInterface<AllReduceActions>(*context);
  });
}

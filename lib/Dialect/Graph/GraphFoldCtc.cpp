//===- GraphFoldCtc.cpp - folders of the ctc loss and its gradient --------===//

#include "GraphFold.h"
#include "dsopt/Runtime/Ctc.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

template <typename Op> static dsopt_ctc describe(Op op) {
  RankedTensorType logs = tensorType(op.getLogs()), targets = tensorType(op.getTargets());
  return {logs.getDimSize(0),     logs.getDimSize(1),     logs.getDimSize(2),  targets.getShape().back(),
          targets.getRank() == 1, int64_t(op.getBlank()), op.getZeroInfinity()};
}

/// The elements of a constant of floats, one each even of a splat.
template <typename T> static std::vector<T> elementsOf(const Elements &x) {
  std::vector<T> values(x.type.getNumElements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = x.as<T>()[x.splat ? 0 : i];
  return values;
}

OpFoldResult CtcOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> logs = Elements::numbers(adaptor.getLogs());
  auto targets = integers(adaptor.getTargets()), inputs = integers(adaptor.getInputLengths()),
       lengths = integers(adaptor.getTargetLengths());
  if (!logs || !targets || !inputs || !lengths || !fits(logs->type))
    return {};
  dsopt_ctc d = describe(*this);
  return dispatchNumber(logs->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    Buffer out(d.batch * sizeof(T));
    std::vector<double> scratch(d.batch * runtime::ctcScratch(d, false));
    runtime::ctcLosses<T>(d, elementsOf<T>(*logs).data(), targets->data(), inputs->data(), lengths->data(),
                          reinterpret_cast<T *>(out.data()), scratch.data(), 0, d.batch);
    return fromNumbers(cast<RankedTensorType>(getType()), out);
  });
}

OpFoldResult CtcGradOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> logs = Elements::numbers(adaptor.getLogs()),
                          grad = Elements::numbers(adaptor.getGrad());
  auto targets = integers(adaptor.getTargets()), inputs = integers(adaptor.getInputLengths()),
       lengths = integers(adaptor.getTargetLengths());
  if (!logs || !grad || !targets || !inputs || !lengths || !fits(logs->type))
    return {};
  dsopt_ctc d = describe(*this);
  return dispatchNumber(logs->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    Buffer out(logs->type.getNumElements() * sizeof(T));
    std::vector<double> scratch(d.batch * runtime::ctcScratch(d, true));
    runtime::ctcGradients<T>(d, elementsOf<T>(*logs).data(), targets->data(), inputs->data(), lengths->data(),
                             elementsOf<T>(*grad).data(), reinterpret_cast<T *>(out.data()), scratch.data(),
                             0, d.batch);
    return fromNumbers(cast<RankedTensorType>(getType()), out);
  });
}

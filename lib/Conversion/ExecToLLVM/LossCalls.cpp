//===- LossCalls.cpp - losses as calls ------------------------------------===//

#include "RuntimeCalls.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;

static int64_t classesOf(exec::LinearNllOp loss) {
  return dim(loss.getWeight(), loss.getTransposeB() ? 0 : 1);
}

/// The products of a tile of rows, in the order of LinearNllOp's kernels; null for one that there is not.
static void collectTile(exec::LinearNllOp loss, int64_t rows, SmallVectorImpl<exec::ProductAttr> &products) {
  if (!rows)
    return products.append(3, exec::ProductAttr());
  MLIRContext *context = loss.getContext();
  int64_t depth = dim(loss.getX(), 1);
  bool transposed = loss.getTransposeB();
  int64_t classes = classesOf(loss), ldb = transposed ? depth : classes;
  Type type = getElementTypeOrSelf(loss.getX().getType());
  // Rows of gradients stand in those of logits.
  int64_t stride = classes * (32 / type.getIntOrFloatBitWidth());
  auto product = [&](int64_t m, int64_t n, int64_t k, Type result, int64_t lda, int64_t ldb, bool turnsA,
                     bool turnsB, bool accumulates) {
    return exec::ProductAttr::get(context, m, n, k, type, result, lda, ldb, /*ldc=*/n, turnsA, turnsB,
                                  /*addend=*/false, accumulates, /*bias=*/false, /*packed=*/false,
                                  /*batch=*/nullptr,
                                  /*strides_a=*/nullptr, /*strides_b=*/nullptr, /*strides_c=*/nullptr);
  };
  products.push_back(
      product(rows, classes, depth, Float32Type::get(context), depth, ldb, false, transposed, false));
  products.push_back(loss.getXGrad()
                         ? product(rows, depth, classes, type, stride, ldb, false, !transposed, false)
                         : exec::ProductAttr());
  if (!loss.getWeightGrad())
    return products.push_back(nullptr);
  Type result = getElementTypeOrSelf(loss.getWeightGrad().getType());
  products.push_back(transposed ? product(classes, depth, rows, result, stride, depth, true, false, true)
                                : product(depth, classes, rows, result, depth, stride, true, false, true));
}

namespace {
struct LinearNllProducts : exec::ProductCallOpInterface::ExternalModel<LinearNllProducts, exec::LinearNllOp> {
  LogicalResult collectProducts(Operation *op, SmallVectorImpl<exec::ProductAttr> &products) const {
    auto loss = cast<exec::LinearNllOp>(op);
    int64_t rows = dim(loss.getX(), 0), chunk = linearNllChunk(rows, classesOf(loss), isForDevice(op));
    collectTile(loss, std::min(chunk, rows), products);
    collectTile(loss, rows % chunk, products);
    return success();
  }
  void setProductKernels(Operation *op, ArrayRef<exec::ProductKernelAttr> kernels) const {
    if (llvm::none_of(kernels, [](exec::ProductKernelAttr kernel) { return kernel; }))
      return;
    auto entries = llvm::map_to_vector(kernels, [&](exec::ProductKernelAttr kernel) {
      return kernel ? Attribute(kernel) : Attribute(UnitAttr::get(op->getContext()));
    });
    cast<exec::LinearNllOp>(op).setKernelsAttr(ArrayAttr::get(op->getContext(), entries));
  }
};
} // namespace

/// The array of six that the runtime takes, null where all are the library's.
static FailureOr<Value> productKernels(exec::LinearNllOp loss, RuntimeCallBuilder &builder) {
  if (!loss.getKernelsAttr())
    return builder.pointer(Value());
  SmallVector<Value> fields;
  for (Attribute entry : loss.getKernelsAttr()) {
    auto compiled = dyn_cast<exec::ProductKernelAttr>(entry);
    FailureOr<Value> kernel =
        compiled ? builder.kernel(loss, compiled.getKernel()) : FailureOr<Value>(builder.pointer(Value()));
    if (failed(kernel))
      return failure();
    fields.append({*kernel, builder.constant(compiled ? compiled.getRange() : 0)});
  }
  return builder.array(fields);
}

static LogicalResult buildLinearNll(exec::LinearNllOp loss, RuntimeCallBuilder &builder) {
  int64_t rows = dim(loss.getX(), 0), depth = dim(loss.getX(), 1), classes = classesOf(loss);
  auto type = elementTypeOf(loss, loss.getX());
  if (failed(type))
    return failure();
  for (Value other : {loss.getWeight(), loss.getBias(), loss.getXGrad()})
    if (other && getElementTypeOrSelf(other.getType()) != getElementTypeOrSelf(loss.getX().getType()))
      return loss.emitOpError("works on ")
             << loss.getX().getType() << " and " << other.getType() << ", expected one element type";
  SmallVector<int64_t> gradientTypes;
  for (Value gradient : {loss.getWeightGrad(), loss.getBiasGrad()}) {
    auto found = gradient ? elementTypeOf(loss, gradient) : int64_t(DSOPT_F32);
    if (failed(found))
      return failure();
    gradientTypes.push_back(*found);
  }
  int64_t labelBytes = memrefType(loss.getLabels()).getElementTypeBitWidth() / 8;
  dsopt_linear_nll sizes{
      rows,       depth, classes,          loss.getTransposeB(), int64_t(loss.getIgnoreIndex()),
      labelBytes, *type, gradientTypes[0], gradientTypes[1]};
  if (failed(verifyWorkspace(loss, loss.getWorkspace(), linearNllWorkspace(sizes, isForDevice(loss)))))
    return failure();
  SmallVector<Value> arguments{
      builder.descriptor("loss", {rows, depth, classes, loss.getTransposeB(), int64_t(loss.getIgnoreIndex()),
                                  labelBytes, *type, gradientTypes[0], gradientTypes[1]})};
  for (Value memref : {loss.getX(), loss.getWeight(), loss.getBias(), loss.getLabels(), loss.getGrad(),
                       loss.getLoss(), loss.getXGrad(), loss.getWeightGrad(), loss.getBiasGrad()})
    arguments.push_back(builder.pointer(memref));
  arguments.push_back(builder.pointer(loss.getWorkspace()));
  arguments.push_back(builder.accumulates(loss.getWeightIntoGradient()));
  arguments.push_back(builder.accumulates(loss.getBiasIntoGradient()));
  FailureOr<Value> kernels = productKernels(loss, builder);
  if (failed(kernels))
    return failure();
  arguments.push_back(*kernels);
  builder.call("dsopt_rt_linear_nll", arguments);
  return success();
}

/// Rows, depth and classes; its products are made some rows at a time.
static CallDescription describeLinearNll(exec::LinearNllOp loss) {
  auto x = cast<MemRefType>(loss.getX().getType());
  int64_t rows = x.getDimSize(0), depth = x.getDimSize(1), classes = classesOf(loss);
  CallDescription call = {"linear_nll", shapeText({rows, depth, classes}), x.getElementType()};
  int64_t chunk = linearNllChunk(rows, classes, isForDevice(loss));
  for (auto [count, some] : {std::pair(rows / chunk, chunk), std::pair(int64_t(1), rows % chunk)}) {
    if (!count)
      continue;
    SmallVector<exec::ProductAttr> products;
    collectTile(loss, some, products);
    for (exec::ProductAttr product : products)
      if (product)
        call.products.append({count, 1, product.getM(), product.getN(), product.getK(),
                              product.getTransposeA(), product.getTransposeB()});
  }
  // All but the workspace.
  call.bytes = sumBytes(loss->getOperands().drop_back());
  return call;
}

template <typename Op> static LogicalResult buildCtc(Op ctc, RuntimeCallBuilder &builder) {
  constexpr bool isGradient = std::is_same_v<Op, exec::CtcGradOp>;
  auto targets = cast<MemRefType>(ctc.getTargets().getType());
  dsopt_ctc d{dim(ctc.getLogs(), 0),     dim(ctc.getLogs(), 1),  dim(ctc.getLogs(), 2),
              targets.getShape().back(), targets.getRank() == 1, int64_t(ctc.getBlank()),
              ctc.getZeroInfinity()};
  if (failed(verifyWorkspace(ctc, ctc.getWorkspace(), ctcWorkspace(d, isGradient, isForDevice(ctc)))))
    return failure();
  SmallVector<Value> arguments{builder.descriptor(
      "ctc", {d.frames, d.batch, d.classes, d.targets, d.concatenated, d.blank, d.zero_infinity})};
  for (Value operand : ctc->getOperands())
    arguments.push_back(builder.pointer(operand));
  builder.call(isGradient ? "dsopt_rt_ctc_grad" : "dsopt_rt_ctc", arguments);
  return success();
}

namespace {
struct LinearNllCall : RuntimeCallOpInterface::ExternalModel<LinearNllCall, exec::LinearNllOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildLinearNll(cast<exec::LinearNllOp>(op), builder);
  }
  CallDescription describeCall(Operation *op) const { return describeLinearNll(cast<exec::LinearNllOp>(op)); }
};

/// What is written comes last.
template <typename Op> struct CtcCall : RuntimeCallOpInterface::ExternalModel<CtcCall<Op>, Op> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildCtc(cast<Op>(op), builder);
  }
  CallDescription describeCall(Operation *op) const { return describeByResult(op, op->getOperands().back()); }
};
} // namespace

void dsopt::registerLossCalls(MLIRContext *context) {
  exec::LinearNllOp::attachInterface<LinearNllCall, LinearNllProducts>(*context);
  exec::CtcOp::attachInterface<CtcCall<exec::CtcOp>>(*context);
  exec::CtcGradOp::attachInterface<CtcCall<exec::CtcGradOp>>(*context);
}

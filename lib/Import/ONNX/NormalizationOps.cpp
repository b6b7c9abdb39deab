//===- NormalizationOps.cpp - softmax and normalizations -------------------===//

#include "OpTable.h"

#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Runtime/Scalars.h"

using namespace mlir;

namespace dsopt::onnx_import {

static FailureOr<int64_t> axisOf(NodeBuilder &n, Value value, int64_t byDefault) {
  return value ? n.axis(n.integerAttr("axis", byDefault), Emitter::rankOf(value)) : FailureOr<int64_t>();
}

/// The input of what goes along one axis. Where an old opset's form of it flattened to rows that are those of
/// the tensor itself, it is the tensor: what follows of it is flattened by `setRows`, and folds.
static Value rowsOf(NodeBuilder &n) {
  Value value = n.input(0);
  auto flat = value && n.isUpgraded() ? value.getDefiningOp<graph::ReshapeOp>() : graph::ReshapeOp();
  if (!flat || flat.getView() != graph::View::None)
    return value;
  ArrayRef<int64_t> shape = Emitter::shapeOf(flat.getInput());
  return !shape.empty() && shape.back() == Emitter::shapeOf(value).back() ? flat.getInput() : value;
}
static LogicalResult setRows(NodeBuilder &n, Value result) {
  return n.set(0, n.e.reshape(result, Emitter::shapeOf(n.input(0))));
}

static LogicalResult softmax(NodeBuilder &n) {
  Value value = rowsOf(n);
  FailureOr<int64_t> axis = axisOf(n, value, -1);
  return failed(axis) ? failure() : setRows(n, n.e.make<graph::SoftmaxOp>(value, n.e.attr("axis", *axis)));
}

static LogicalResult logSoftmax(NodeBuilder &n) {
  Value value = rowsOf(n);
  FailureOr<int64_t> axis = axisOf(n, value, -1);
  return failed(axis) ? failure() : setRows(n, logSoftmax(n.e, value, *axis));
}

Value logSoftmax(Emitter &e, Value value, int64_t axis) {
  // What the largest adds to the gradient is what it takes away again.
  Value shift = e.make<graph::StopGradientOp>(e.reduce<graph::ReduceMaxOp>(value, axis));
  Value shifted = e.sub(value, shift);
  return e.sub(shifted, e.make<graph::LogOp>(e.sum(e.make<graph::ExpOp>(shifted), axis)));
}

/// One at the first of the largest elements along an axis.
static LogicalResult hardmax(NodeBuilder &n) {
  Emitter &e = n.e;
  Value value = n.input(0);
  FailureOr<int64_t> axis = axisOf(n, value, -1);
  if (failed(axis))
    return failure();
  int64_t size = Emitter::shapeOf(value)[*axis];
  Value places = e.counting(e.builder.getI64Type(), size, *axis, Emitter::rankOf(value));
  Value isBest = e.equal(value, e.reduce<graph::ReduceMaxOp>(value, *axis));
  Value first = e.reduce<graph::ReduceMinOp>(e.where(isBest, places, e.scalar(size, places)), *axis);
  return n.set(0, e.where(e.equal(places, first), e.scalar(1, value), e.scalar(0, value)));
}

/// Scale and bias of normalizations may be smaller than the dimensions: they broadcast.
static Value fitTo(Emitter &e, Value operand, ArrayRef<int64_t> shape) {
  if (!operand)
    return {};
  ArrayRef<int64_t> own = Emitter::shapeOf(operand);
  while (own.size() > shape.size() && own.front() == 1)
    own = own.drop_front();
  return e.expand(e.reshape(operand, own), shape);
}

static LogicalResult layerNormalization(NodeBuilder &n) {
  Value value = n.input(0), scale = n.input(1);
  Value bias = n.has(2) ? n.input(2) : Value();
  FailureOr<int64_t> axis = axisOf(n, value, -1);
  if (!scale || (n.has(2) && !bias) || failed(axis))
    return failure();
  SmallVector<int64_t> shape(Emitter::shapeOf(value).drop_front(*axis));
  SmallVector<Value> operands{value, fitTo(n.e, scale, shape)};
  if (bias)
    operands.push_back(fitTo(n.e, bias, shape));
  SmallVector<Value> results = n.e.makeAll<graph::LayerNormOp>(
      operands, {n.e.attr("axis", *axis),
                 n.e.attr("epsilon", n.e.builder.getF64FloatAttr(n.floatAttr("epsilon", 1e-5f)))});
  if (results.empty())
    return failure();
  for (int i = 0; i < 3; ++i)
    if (failed(n.set(i, results[i])))
      return failure();
  return success();
}

/// x / sqrt(mean(x^2) + epsilon)
static Value rootMeanSquare(Emitter &e, Value x, ArrayRef<int64_t> axes, double epsilon) {
  Value square = e.add(e.mean(e.mul(x, x), axes), e.scalar(epsilon, x));
  return e.mul(x, e.make<graph::ReciprocalOp>(e.make<graph::SqrtOp>(square)));
}

static LogicalResult rmsNormalization(NodeBuilder &n) {
  Value value = n.input(0), scale = n.input(1);
  FailureOr<int64_t> axis = axisOf(n, value, -1);
  if (!scale || failed(axis))
    return failure();
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(*axis, Emitter::rankOf(value)));
  Value normalized = rootMeanSquare(n.e, value, axes, n.floatAttr("epsilon", 1e-5f));
  Value result = n.e.mul(normalized, scale);
  if (result && result.getType() != value.getType())
    return n.error() << "has a scale of type " << Emitter::typeOf(scale)
                     << ", expected one that broadcasts to " << Emitter::typeOf(value);
  return n.set(0, result, n.narrow(1));
}

/// A value a channel (dimension 1) for operands of `rank`.
static Value perChannel(NodeBuilder &n, Value operand, Value value) {
  if (!operand)
    return {};
  SmallVector<int64_t> shape(Emitter::rankOf(value), 1);
  shape[1] = Emitter::shapeOf(value)[1];
  if (Emitter::shapeOf(operand) != ArrayRef(shape[1])) {
    n.error() << "has a scale, bias or statistic of type " << Emitter::typeOf(operand) << ", expected "
              << shape[1] << " channels";
    return {};
  }
  return n.e.reshape(operand, shape);
}

/// Each row of `[rows, size]` with mean 0 and variance 1.
static Value normalizeRows(Emitter &e, Value rows, double epsilon) {
  if (!rows)
    return {};
  Value one = e.splat(Emitter::elementOf(rows), 1, Emitter::shapeOf(rows).take_back());
  return e.make<graph::LayerNormOp>(
      {rows, one}, {e.attr("axis", 1), e.attr("epsilon", e.builder.getF64FloatAttr(epsilon))});
}

/// Groups of channels are normalized together, with a scale and a bias a channel (or, before opset
/// 21, a group).
static LogicalResult groupsOfChannels(NodeBuilder &n, int64_t groups, bool perGroup) {
  Emitter &e = n.e;
  Value value = n.input(0), scale = n.input(1), bias = n.input(2);
  if (!value || !scale || !bias)
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(value);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups)
    return n.error() << "has " << groups << " groups for an input of type " << Emitter::typeOf(value)
                     << ", expected a divisor of its channels";
  int64_t rows = shape[0] * groups, size = rows ? Emitter::typeOf(value).getNumElements() / rows : 0;
  Value normalized =
      e.reshape(normalizeRows(e, e.reshape(value, {rows, size}), n.floatAttr("epsilon", 1e-5f)), shape);
  auto spread = [&](Value operand) {
    if (!perGroup)
      return perChannel(n, operand, value);
    Value column = e.expand(e.reshape(operand, {groups, 1}), {groups, shape[1] / groups});
    return perChannel(n, e.reshape(column, shape[1]), value);
  };
  Value factor = spread(scale), offset = spread(bias);
  return n.set(0, e.add(e.mul(normalized, factor), offset));
}

static LogicalResult instanceNormalization(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value || Emitter::rankOf(value) < 2)
    return value
               ? n.error() << "has an input of type " << Emitter::typeOf(value) << ", expected rank 2 or more"
               : failure();
  return groupsOfChannels(n, Emitter::shapeOf(value)[1], false);
}
static LogicalResult groupNormalization(NodeBuilder &n) {
  return groupsOfChannels(n, n.integerAttr("num_groups", 0), n.opset < 21);
}

bool NodeBuilder::normalizesByBatch(const onnx::NodeProto &node, int64_t opset, BatchNorm mode) {
  if (mode != BatchNorm::Model)
    return mode == BatchNorm::Train;
  if (opset < 14)
    return node.output_size() > 1;
  return llvm::any_of(node.attribute(), [](const onnx::AttributeProto &attribute) {
    return attribute.name() == "training_mode" && attribute.i() != 0;
  });
}

/// Batch normalization's sums are taken over each sample's channels first and over samples then: rows, which
/// are fused with what is around them, and so are those of the gradient.
static Value meanOverBatch(Emitter &e, Value x) {
  SmallVector<int64_t> inner = llvm::to_vector(llvm::seq<int64_t>(2, x ? Emitter::rankOf(x) : 2));
  return e.mean(inner.empty() ? x : e.mean(x, inner), 0);
}

/// A number a channel for each sample.
static Value forSamples(Emitter &e, Value channels, Value x) {
  if (!channels || Emitter::rankOf(x) == 2)
    return channels;
  SmallVector<int64_t> shape(Emitter::shapeOf(channels));
  shape[0] = Emitter::shapeOf(x)[0];
  return e.expand(channels, shape);
}

/// Notes what a micro-batch contributes to a running statistic. Where the model normalizes with the same
/// scale, bias and statistics once more, the two contributions are folded one after the other: as one,
/// m2 (m1 r + (1 - m1) c1) + (1 - m2) c2.
static LogicalResult addStatistic(NodeBuilder &n, graph::ParameterOp parameter, Value value,
                                  double momentum) {
  Emitter &e = n.e;
  Emitter::Statistic added{parameter, value, momentum, /*sequential=*/false, {}};
  for (int i = 0; i < 4; ++i)
    added.normalization[i] = n.inputName(i + 1).str();
  auto known = llvm::find_if(e.statistics, [&](const auto &other) { return other.parameter == parameter; });
  if (known == e.statistics.end()) {
    e.statistics.push_back(std::move(added));
    return success();
  }
  const std::array<std::string, 4> &names = added.normalization;
  bool isOne = known->normalization == names;
  for (int i = 0; i < 4; ++i)
    isOne &= llvm::count(names, names[i]) == 1;
  if (!isOne)
    return n.error()
           << "has running statistic '" << parameter.getModelName()
           << "', which belongs to two batch normalizations that train, expected one of its own for "
              "each (-untie='"
           << parameter.getModelName() << "' takes apart what an exporter merged)";
  double left = known->momentum * momentum;
  if (left < 1)
    known->value = e.add(e.mul(known->value, e.scalar(momentum * (1 - known->momentum) / (1 - left), value)),
                         e.mul(value, e.scalar((1 - momentum) / (1 - left), value)));
  known->momentum = left;
  return success(known->value != nullptr);
}

/// With given statistics, or with the batch's own. Those change the running statistics: as further outputs,
/// as ONNX has it, and where they are parameters by what each micro-batch contributes, as PyTorch has it,
/// whose running variance is the unbiased one.
static LogicalResult batchNormalization(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  if (!x || Emitter::rankOf(x) < 2)
    return x ? n.error() << "has an input of type " << Emitter::typeOf(x) << ", expected rank 2 or more"
             : failure();
  graph::ParameterOp statistics[] = {n.parameter(3), n.parameter(4)};
  Value mean = perChannel(n, n.input(3), x), variance = perChannel(n, n.input(4), x);
  Value scale = perChannel(n, n.input(1), x), bias = perChannel(n, n.input(2), x);
  if (!mean || !variance || !scale || !bias)
    return failure();
  if (n.integerAttr("spatial", 1) == 0)
    return n.error() << "has spatial 0, expected 1: statistics of channels (no newer opset has others)";
  Value centered;
  if (n.normalizesByBatch()) {
    int64_t channels = Emitter::shapeOf(x)[1],
            count = Emitter::typeOf(x).getNumElements() / std::max<int64_t>(channels, 1);
    // Only who compares a node with ONNX's own definition wants its training of a program that trains
    // nothing.
    bool isTracked = statistics[0] && statistics[1] && n.options.returns != Returns::Outputs;
    Value inTraining;
    auto choose = [&](Value own, Value running) {
      return isTracked ? e.where(inTraining, own, running) : own;
    };
    if (isTracked && !(Emitter::elementOf(x).isF32() && Emitter::elementOf(mean).isF32()))
      return n.error() << "has running statistics of type " << Emitter::typeOf(mean)
                       << " for an input of type " << Emitter::typeOf(x) << ", expected both in f32 to train";
    if (isTracked) {
      Value context = graph::getOrAddContext(cast<func::FuncOp>(e.builder.getBlock()->getParentOp()));
      inTraining = e.convert(e.slice(context, 0, DSOPT_TRAINING, 1), e.builder.getI1Type());
    }
    Value ownMean = meanOverBatch(e, x), usedMean = choose(ownMean, mean);
    centered = e.sub(x, forSamples(e, usedMean, x));
    Value ownVariance = meanOverBatch(e, e.mul(centered, centered));
    double momentum = n.floatAttr("momentum", 0.9f);
    auto running = [&](int output, Value old, Value own) {
      Value mixed = e.add(e.mul(old, e.scalar(momentum, x)), e.mul(own, e.scalar(1 - momentum, x)));
      return n.set(output, mixed ? e.reshape(mixed, channels) : Value());
    };
    if ((n.wants(1) && failed(running(1, mean, ownMean))) ||
        (n.wants(2) && failed(running(2, variance, ownVariance))) ||
        (n.wants(3) && failed(n.set(3, e.reshape(ownMean, channels)))) ||
        (n.wants(4) && failed(n.set(4, e.reshape(ownVariance, channels)))))
      return failure();
    if (isTracked) {
      double unbiased = count > 1 ? (double)count / (count - 1) : 1;
      Value variance = e.mul(ownVariance, e.scalar(unbiased, x));
      if (failed(addStatistic(n, statistics[0], e.reshape(ownMean, channels), momentum)) ||
          failed(addStatistic(n, statistics[1], e.reshape(variance, channels), momentum)))
        return failure();
    }
    variance = choose(ownVariance, variance);
  } else {
    ++e.frozenNorms;
    if ((n.wants(1) && failed(n.set(1, n.input(3)))) || (n.wants(2) && failed(n.set(2, n.input(4)))))
      return failure();
    centered = e.sub(x, forSamples(e, mean, x));
  }
  Value deviation = e.make<graph::SqrtOp>(e.add(variance, e.scalar(n.floatAttr("epsilon", 1e-5f), x)));
  Value factor = e.mul(scale, e.make<graph::ReciprocalOp>(deviation));
  return n.set(0, e.add(e.mul(centered, forSamples(e, factor, x)), forSamples(e, bias, x)));
}

static LogicalResult lpNormalization(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  FailureOr<int64_t> axis = axisOf(n, x, -1);
  int64_t p = n.integerAttr("p", 2);
  if (failed(axis))
    return failure();
  if (p != 1 && p != 2)
    return n.error() << "has p " << p << ", expected 1 or 2";
  Value sum = e.sum(p == 1 ? e.make<graph::AbsOp>(x) : e.mul(x, x), *axis);
  // Rows of zeros stay what they are; a root of zero would have no derivative.
  Value divisor = e.where(e.equal(sum, e.scalar(0, x)), e.scalar(1, x), sum);
  return n.set(0, e.div(x, p == 1 ? divisor : e.make<graph::SqrtOp>(divisor)));
}

static LogicalResult meanVarianceNormalization(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  if (!x)
    return failure();
  SmallVector<int64_t> axes{0, 2, 3};
  if (n.attribute("axes"))
    axes = n.integersAttr("axes");
  for (int64_t &entry : axes) {
    FailureOr<int64_t> axis = n.axis(entry, Emitter::rankOf(x));
    if (failed(axis))
      return failure();
    entry = *axis;
  }
  llvm::sort(axes);
  Value centered = e.sub(x, e.mean(x, axes));
  Value deviation = e.make<graph::SqrtOp>(e.mean(e.mul(centered, centered), axes));
  return n.set(0, e.div(centered, e.add(deviation, e.scalar(1e-9, x))));
}

/// Divides by a power of the sum of squares of the neighbouring channels.
static LogicalResult localResponse(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  if (!x)
    return failure();
  int64_t size = n.integerAttr("size", 1);
  if (Emitter::rankOf(x) < 2 || size < 1)
    return n.error() << "has size " << size << " for an input of type " << Emitter::typeOf(x)
                     << ", expected 1 or more and rank 2 or more";
  Value windows =
      makeWindows(e, e.mul(x, x), 1, {{size}, {1}, {1}, {(size - 1) / 2}, {Emitter::shapeOf(x)[1]}},
                  cast<TypedAttr>(e.builder.getZeroAttr(Emitter::elementOf(x))));
  Value sum = e.sum(windows, 2, /*keepdims=*/false);
  Value base =
      e.add(e.mul(sum, e.scalar(n.floatAttr("alpha", 1e-4f) / size, x)), e.scalar(n.floatAttr("bias", 1), x));
  return n.set(0, e.div(x, e.make<graph::PowOp>({base, e.scalar(n.floatAttr("beta", 0.75f), x)})));
}

ArrayRef<OpRow> normalizationOps() {
  static const OpRow rows[] = {
      {"BatchNormalization", 7, kMaxOpset, batchNormalization},
      {"GroupNormalization", 18, kMaxOpset, groupNormalization},
      {"Hardmax", 1, kMaxOpset, hardmax},
      {"InstanceNormalization", 6, kMaxOpset, instanceNormalization},
      {"LRN", 1, kMaxOpset, localResponse},
      {"LayerNormalization", 17, kMaxOpset, layerNormalization},
      {"LogSoftmax", 1, kMaxOpset, logSoftmax},
      {"LpNormalization", 1, kMaxOpset, lpNormalization},
      {"MeanVarianceNormalization", 9, kMaxOpset, meanVarianceNormalization},
      {"RMSNormalization", 23, kMaxOpset, rmsNormalization},
      {"Softmax", 1, kMaxOpset, softmax},
  };
  return rows;
}

} // namespace dsopt::onnx_import

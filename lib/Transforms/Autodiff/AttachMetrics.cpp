//===- AttachMetrics.cpp - what metrics are made of -----------------------===//

#include "BinaryLoss.h"
#include "Idioms.h"
#include "MetricOps.h"
#include "Origins.h"
#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Probabilities.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Runtime/Metrics.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

namespace dsopt {
#define GEN_PASS_DEF_ATTACHMETRICS
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using idioms::withoutReshapes;

namespace {
enum class Kind { Hits, Likelihood, Confusion, Distance };

/// A metric as it is asked for.
struct Request {
  StringRef text, output, labels; ///< as given; its operands, empty: what the loss compares
  std::string name;
  Kind kind = Kind::Hits;
  Combine combine = Combine::Ratio;
  int64_t most = 1;      ///< of hits
  bool isSquare = false; ///< of distances
};

/// Predictions and what they are compared with. Of classes also the loss of each row, where it is there.
struct Pair {
  Value output, target, losses;
  int64_t ignored = -100;
};

constexpr StringLiteral kNames = "accuracy, top5 (or another number), perplexity, f1, precision, recall, "
                                 "mse, rmse or mae";

constexpr int64_t kMostClasses = 4096;

std::optional<Request> parse(StringRef text) {
  Request request;
  request.text = text;
  StringRef name, operands;
  std::tie(name, operands) = text.split(':');
  std::tie(request.output, request.labels) = operands.rsplit(',');
  if (text.contains(':') && (request.output.empty() || request.labels.empty()))
    return std::nullopt;
  request.name = (request.output.empty() ? "" : request.output.str() + "_") + name.str();
  auto is = [&](StringRef known, Kind kind, Combine combine) {
    if (name != known)
      return false;
    request.kind = kind;
    request.combine = combine;
    return true;
  };
  request.isSquare = name != "mae";
  if (is("accuracy", Kind::Hits, Combine::Ratio) || is("f1", Kind::Confusion, Combine::F1) ||
      is("perplexity", Kind::Likelihood, Combine::Exponential) ||
      is("precision", Kind::Confusion, Combine::Precision) ||
      is("recall", Kind::Confusion, Combine::Recall) || is("mse", Kind::Distance, Combine::Mean) ||
      is("rmse", Kind::Distance, Combine::Root) || is("mae", Kind::Distance, Combine::Mean))
    return request;
  StringRef number = name;
  if (number.consume_front("top") && !number.getAsInteger(10, request.most) && request.most > 0)
    return request;
  return std::nullopt;
}

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A constant's one number.
std::optional<int64_t> numberOf(Value value) {
  auto constant = value.getDefiningOp<graph::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  if (!elements || !elements.isSplat())
    return std::nullopt;
  return elements.getSplatValue<APInt>().getSExtValue();
}

class Attacher {
public:
  Attacher(ModuleOp module, func::FuncOp forward)
      : module(module), forward(forward), terminator(forward.front().getTerminator()), builder(terminator),
        ops(builder, forward.getLoc()) {}

  LogicalResult run() {
    leaveScores();
    for (StringRef text : options::metric(module)) {
      std::optional<Request> request = parse(text);
      if (!request)
        return forward.emitError("-metric=")
               << text << ": expected " << kNames << ", with or without :OUTPUT,LABELS";
      if (failed(attach(*request)))
        return failure();
    }
    takeOutputs();
    append();
    for (Operation *op : inOrder(graph::measuringOnly(forward)))
      moveUp(op);
    return check();
  }

private:
  LogicalResult attach(const Request &request) {
    bool isDistance = request.kind == Kind::Distance;
    FailureOr<Pair> pair = !request.output.empty() ? givenPair(request)
                           : isDistance            ? lossDistance(request)
                                                   : lossClasses(request);
    if (failed(pair))
      return failure();
    auto metric = graph::MetricAttr::get(module.getContext(), request.name, request.combine);
    auto add = [&](ValueRange values) {
      for (Value value : values)
        parts.push_back({metric, value});
    };
    if (isDistance) {
      add(ops.distance(pair->output, pair->target, request.isSquare));
      return success();
    }
    ClassPair classes{pair->output, pair->target, pair->ignored};
    if (pair->losses && request.kind == Kind::Likelihood) {
      add(ops.logLikelihood(pair->losses, pair->target, pair->ignored));
      return success();
    }
    int64_t count = typeOf(pair->output).getDimSize(1);
    if (request.most > count)
      return refuse(request) << "the scores are of " << count << " classes, expected " << request.most
                             << " or more";
    // Ranks exchange what each micro-batch has of each class.
    if (request.kind == Kind::Confusion && count > kMostClasses)
      return refuse(request) << "the scores are of " << count << " classes, expected " << kMostClasses
                             << " or fewer: each is counted in each micro-batch";
    switch (request.kind) {
    case Kind::Hits:
      add(ops.hits(classes, request.most));
      break;
    case Kind::Confusion:
      add(ops.confusion(classes));
      break;
    default:
      add(ops.logLikelihood(classes));
    }
    return success();
  }

  InFlightDiagnostic refuse(const Request &request) {
    return forward.emitError("-metric=") << request.text << ": ";
  }

  /// The result of a name that OUTPUT or LABELS gives.
  Value named(StringRef name) {
    for (OpOperand &operand : terminator->getOpOperands())
      if (auto known =
              forward.getResultAttrOfType<StringAttr>(operand.getOperandNumber(), graph::kOutputAttr);
          known && known.getValue() == name)
        return operand.get();
    return {};
  }

  FailureOr<Pair> givenPair(const Request &request) {
    Pair pair{named(request.output), named(request.labels), {}};
    for (auto [value, name] :
         {std::pair(pair.output, request.output), std::pair(pair.target, request.labels)})
      if (!value)
        return refuse(request) << "the model computes no '" << name << "' (a module has it as a result with "
                               << graph::kOutputAttr << ")";
    RankedTensorType output = typeOf(pair.output), target = typeOf(pair.target);
    Type f32 = builder.getF32Type();
    if (request.kind == Kind::Distance) {
      if (!isa<FloatType>(output.getElementType()) || output.getShape() != target.getShape())
        return refuse(request) << "compares " << output << " with " << target
                               << ", expected floats and what has their shape";
      pair.output = ops.convert(pair.output, f32);
      pair.target = ops.convert(pair.target, f32);
      return pair;
    }
    if (isColumn(output) && isColumn(target) && output.getDimSize(0) == target.getDimSize(0) &&
        isa<FloatType>(output.getElementType())) {
      FailureOr<Value> scores = scoresOf(request, pair.output, std::nullopt);
      return failed(scores) ? FailureOr<Pair>() : twoClasses(*scores, pair.target);
    }
    // Classes are last, or second as in PyTorch's images.
    SmallVector<int64_t> last(output.getShape()), second(output.getShape());
    if (last.size() > 1) {
      last.pop_back();
      second.erase(second.begin() + 1);
    }
    bool isLast = target.getShape() == ArrayRef(last);
    if (output.getRank() < 2 || !isa<FloatType>(output.getElementType()) ||
        !isa<IntegerType>(target.getElementType()) || (!isLast && target.getShape() != ArrayRef(second)))
      return refuse(request)
             << "compares " << output << " with " << target
             << ", expected scores with the classes last or second, and integer labels of the "
                "other dimensions, or one score a row and as many labels";
    auto argument = dyn_cast<BlockArgument>(pair.target);
    if (auto ignored =
            argument ? forward.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), graph::kIgnoreIndexAttr)
                     : IntegerAttr())
      pair.ignored = ignored.getInt();
    FailureOr<Value> known = scoresOf(request, pair.output, isLast ? output.getRank() - 1 : 1);
    if (failed(known))
      return failure();
    Value scores = ownScores(*known);
    if (!isLast) {
      SmallVector<int64_t> order = {0};
      llvm::append_range(order, llvm::seq<int64_t>(2, output.getRank()));
      order.push_back(1);
      scores = graph::TransposeOp::create(builder, forward.getLoc(), scores, order);
    }
    int64_t rows = target.getNumElements();
    pair.output = ops.convert(ops.reshape(scores, {rows, output.getNumElements() / rows}), f32);
    pair.target = ops.convert(ops.reshape(pair.target, rows), builder.getI64Type());
    return pair;
  }

  /// What probabilities are made of is compared, as if that had been named. Where that cannot be, the largest
  /// of them is still the largest; there is none of a single one (no axis).
  FailureOr<Value> scoresOf(const Request &request, Value output, std::optional<int64_t> axis) {
    std::optional<graph::Probabilities> known = graph::probabilitiesOf(output);
    bool isSigmoid = known && known->kind == graph::Probabilities::Sigmoid;
    if (!known || (!axis && !isSigmoid))
      return output;
    if (!known->between && (isSigmoid || known->axis == axis)) {
      Value scores = graph::scoresOf(*known, builder);
      // What the loss's own scores are to be left alone for, `leaveScores` has made already.
      copies.map(scores, copies.lookupOrDefault(scores));
      return scores;
    }
    if (axis && request.kind != Kind::Likelihood)
      return output;
    return refuse(request) << "'" << request.output << "' comes from " << known->what()
                           << (known->between ? " and then from other operations" : " along another axis")
                           << ", expected scores: name what is before it";
  }

  /// Whether a row has one element.
  static bool isColumn(RankedTensorType type) {
    return type.getRank() == 1 || (type.getRank() == 2 && type.getDimSize(1) == 1);
  }
  /// One score a row and its label, 0 or 1.
  Pair twoClasses(Value scores, Value labels) {
    int64_t rows = typeOf(labels).getNumElements();
    Value column = ops.reshape(ops.convert(ownScores(scores), builder.getF32Type()), {rows, 1});
    return {ops.beside(column), ops.numbers(ops.reshape(labels, rows)), {}};
  }

  /// The operations that the loss is made of.
  SmallVector<Operation *> lossOps() {
    llvm::DenseSet<Operation *> seen;
    SmallVector<Value> open{terminator->getOperand(0)};
    while (!open.empty())
      if (Operation *op = open.pop_back_val().getDefiningOp(); op && seen.insert(op).second)
        llvm::append_range(open, op->getOperands());
    return inOrder(seen);
  }
  SmallVector<Operation *> inOrder(const llvm::DenseSet<Operation *> &chosen) {
    SmallVector<Operation *> ordered;
    for (Operation &op : forward.front())
      if (chosen.contains(&op))
        ordered.push_back(&op);
    return ordered;
  }

  FailureOr<Pair> lossClasses(const Request &request) {
    SmallVector<Pair> found;
    for (Operation *op : lossOps()) {
      if (auto nll = dyn_cast<graph::NllOp>(op))
        found.push_back({nll.getLogits(), nll.getLabels(), nll.getLoss(), (int64_t)nll.getIgnoreIndex()});
      else if (auto picked = dyn_cast<graph::GatherElementsOp>(op))
        if (std::optional<Pair> pair = pickedClasses(picked))
          found.push_back(*pair);
    }
    SmallVector<BinaryLoss> binary;
    if (found.empty())
      binary = findBinaryLosses(lossOps(), Origins(forward));
    if (binary.size() == 1) {
      RankedTensorType scores = typeOf(binary.front().scores);
      if (!isColumn(scores))
        return refuse(request) << "the loss compares " << scores
                               << " with labels of their own, expected one score a row";
      return twoClasses(binary.front().scores, binary.front().labels);
    }
    if (found.size() != 1)
      return refuse(request) << "the loss has " << found.size() + binary.size()
                             << " cross entropies with labels; say what to compare: -metric=" << request.text
                             << ":LOGITS,LABELS";
    Pair pair = found.front();
    // The loss has compared them already.
    if (request.kind == Kind::Likelihood && pair.losses)
      return pair;
    pair.output = ops.convert(ownScores(pair.output), builder.getF32Type());
    return pair;
  }

  /// The logarithms of probabilities that a loss picks by labels, some of them ignored.
  std::optional<Pair> pickedClasses(graph::GatherElementsOp picked) {
    auto chosen = withoutReshapes(picked.getIndices()).getDefiningOp<graph::WhereOp>();
    auto ignores = chosen ? chosen.getCondition().getDefiningOp<graph::EqualOp>() : graph::EqualOp();
    if (typeOf(picked.getData()).getRank() != 2 || picked.getAxis() != 1 || !ignores)
      return std::nullopt;
    Value labels = chosen.getRhs();
    std::optional<int64_t> ignored = numberOf(ignores.getRhs());
    if (!ignored || ignores.getLhs() != labels || !typeOf(labels).getElementType().isInteger(64) ||
        typeOf(labels).getNumElements() != typeOf(picked.getData()).getDimSize(0))
      return std::nullopt;
    return Pair{picked.getData(), ops.reshape(labels, typeOf(labels).getNumElements()), {}, *ignored};
  }

  /// The difference whose squares or absolute values the loss is the mean or sum of.
  FailureOr<Pair> lossDistance(const Request &request) {
    Origins origins(forward);
    SmallVector<Pair> found;
    for (Operation *op : lossOps()) {
      auto difference = dyn_cast<graph::SubOp>(op);
      if (!difference || !isMeasured(difference))
        continue;
      Value output = difference.getLhs(), target = difference.getRhs();
      if (origins.of(output) == Origin::Input)
        std::swap(output, target);
      if (origins.of(target) == Origin::Input && origins.of(output) != Origin::Input &&
          typeOf(output).getShape() == typeOf(target).getShape())
        found.push_back(
            {ops.convert(output, builder.getF32Type()), ops.convert(target, builder.getF32Type()), {}});
    }
    if (found.size() != 1)
      return refuse(request) << "the loss is made of " << found.size()
                             << " distances between an output and a target; say what to compare: -metric="
                             << request.text << ":OUTPUT,TARGET";
    return found.front();
  }
  static bool isMeasured(graph::SubOp difference) {
    return llvm::any_of(difference->getUsers(), [&](Operation *user) {
      return isa<graph::AbsOp, graph::PowOp>(user) ||
             (isa<graph::MulOp>(user) && user->getOperand(0) == user->getOperand(1));
    });
  }

  /// What is logged of the loss's scores is made of its own ones.
  void leaveScores() {
    llvm::DenseSet<Value> scores;
    for (Operation *op : lossOps())
      if (auto nll = dyn_cast<graph::NllOp>(op))
        scores.insert(nll.getLogits());
    llvm::DenseSet<Operation *> measuring = graph::measuringOnly(forward);
    for (Operation &op : llvm::reverse(forward.front())) {
      if (llvm::none_of(op.getResults(), [&](Value result) { return scores.contains(result); }))
        continue;
      if (isa<graph::ReshapeOp, graph::AddOp>(op))
        scores.insert_range(op.getOperands());
      for (OpOperand &use : llvm::make_early_inc_range(op.getUses()))
        if (measuring.contains(use.getOwner()))
          use.set(ownScores(use.get()));
    }
  }

  /// Scores that are a product, computed once more.
  Value ownScores(Value value) {
    if (Value known = copies.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op || !isa<graph::ReshapeOp, graph::AddOp, ProductOpInterface>(op))
      return value;
    IRMapping operands;
    bool isProduct = isa<ProductOpInterface>(op);
    for (Value operand : op->getOperands())
      if (!isProduct && !operand.getDefiningOp<graph::ReadOp>()) {
        Value copy = ownScores(operand);
        isProduct |= copy != operand;
        operands.map(operand, copy);
      }
    // What is no product is as it was.
    if (!isa<ProductOpInterface>(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
          return operands.lookupOrDefault(operand) == operand;
        }))
      return value;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(op);
    Value copy = builder.clone(*op, operands)->getResult(0);
    copies.map(value, copy);
    return copy;
  }

  /// The function has no raw outputs any more.
  void takeOutputs() {
    llvm::BitVector erased(forward.getNumResults());
    for (unsigned i = 0; i < forward.getNumResults(); ++i)
      if (forward.getResultAttr(i, graph::kOutputAttr))
        erased.set(i);
    terminator->eraseOperands(erased);
    (void)forward.eraseResults(erased);
  }

  void append() {
    for (auto [metric, value] : parts) {
      unsigned index = forward.getNumResults();
      terminator->insertOperands(index, value);
      (void)forward.insertResult(index, value.getType(),
                                 builder.getDictionaryAttr(builder.getNamedAttr(graph::kMetricAttr, metric)));
    }
  }

  /// Right behind what it is made of.
  void moveUp(Operation *op) {
    Operation *last = nullptr;
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && (!last || last->isBeforeInBlock(source)))
        last = source;
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(&forward.front(), forward.front().begin());
  }

  LogicalResult check() {
    llvm::StringSet<> known;
    for (const graph::MetricPart &part : graph::metricsOf(forward)) {
      StringRef name = part.metric.getName();
      if (part.part == 0 && !known.insert(name).second)
        return forward.emitError("two metrics have the name '") << name << "': they would be one in the log";
      if (llvm::is_contained(runtime::kLogKeys, name) || name.starts_with("eval_"))
        return forward.emitError("a metric has the name '")
               << name << "', which is the log's own (-log-outputs takes the others by a glob)";
      Value value = withoutReshapes(terminator->getOperand(part.result));
      Operation *op = value.getDefiningOp();
      if (!op || isa<graph::ConstantOp, graph::ReadOp>(op))
        return forward.emitError("metric '") << name << "' is "
                                             << (!op                      ? "an input"
                                                 : isa<graph::ReadOp>(op) ? "a parameter"
                                                                          : "a constant")
                                             << " itself, expected what the model computes";
      Type type = typeOf(value).getElementType();
      if (!type.isF32())
        return forward.emitError("metric '") << name << "' has elements of " << type << ", expected f32";
    }
    return success();
  }

  ModuleOp module;
  func::FuncOp forward;
  Operation *terminator;
  OpBuilder builder;
  MetricOps ops;
  IRMapping copies; ///< of scores
  SmallVector<std::pair<graph::MetricAttr, Value>> parts;
};

struct AttachMetrics : public dsopt::impl::AttachMetricsBase<AttachMetrics> {
  using AttachMetricsBase::AttachMetricsBase;
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(graph::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock()) {
      getOperation().emitError("attach-metrics expects a function @forward with one body");
      return signalPassFailure();
    }
    auto isAsked = [&](unsigned result) {
      return forward.getResultAttr(result, graph::kOutputAttr) ||
             forward.getResultAttr(result, graph::kMetricAttr);
    };
    if (options::metric(getOperation()).empty() &&
        llvm::none_of(llvm::seq<unsigned>(0, forward.getNumResults()), isAsked))
      return;
    if (failed(Attacher(getOperation(), forward).run()))
      signalPassFailure();
  }
};
} // namespace

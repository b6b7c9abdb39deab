//===- AttachedLoss.cpp - a loss put on two values of a model --------------===//

#include "AttachedLoss.h"

#include "InputShapes.h"
#include "OpTable.h"

#include "dsopt/Dialect/Graph/Probabilities.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
class Attacher {
public:
  Attacher(Emitter &emitter, func::FuncOp function, const Loss &loss, const ImportOptions &options,
           Value output, Value &target, llvm::function_ref<std::string(Value)> nameOf, Location location)
      : emitter(emitter), function(function), loss(loss), options(options), output(output), target(target),
        nameOf(nameOf), location(location), shape(Emitter::shapeOf(output)) {}

  Value meanSquare();
  Value crossEntropy();

private:
  InFlightDiagnostic error() { return emitError(location) << "-loss=" << options.loss; }
  bool checkProbabilities();
  bool chooseClassAxis();
  bool makeTarget(RankedTensorType type);
  std::string describe();
  void say(StringRef how);
  Value twoClasses(ArrayRef<int64_t> rows);
  std::string remedy();

  Emitter &emitter;
  func::FuncOp function;
  const Loss &loss;
  const ImportOptions &options;
  Value output, &target;
  llvm::function_ref<std::string(Value)> nameOf;
  Location location;

  SmallVector<int64_t> shape;
  std::optional<graph::Probabilities> probabilities;
  /// What a cross-entropy takes: the output, or what is before its probabilities.
  Value scores;
  bool isSigmoid = false;
  /// Whether the target has probabilities, or one of two classes for each element.
  bool isSoft = false;
  int64_t classAxis = 0;
};
} // namespace

/// Makes the target an input, where the model has none of that name.
bool Attacher::makeTarget(RankedTensorType type) {
  if (target)
    return true;
  OpBuilder &b = emitter.builder;
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(
          index, type, b.getDictionaryAttr(b.getNamedAttr(graph::kNameAttr, b.getStringAttr(loss.target))),
          location)))
    return false;
  target = function.getArgument(index);
  auto data = microBatchShape(options, loss.target, type.getRank(), location);
  if (failed(data))
    return false;
  // A list of rows says nothing about how many a micro-batch has.
  if (!*data || llvm::none_of(llvm::zip(**data, type.getShape()), [](auto pair) {
        return std::get<0>(pair) >= 0 && std::get<0>(pair) != std::get<1>(pair);
      }))
    return true;
  error() << " needs '" << loss.target << "' of shape [" << type.getShape()
          << "], but its data has micro-batches of shape [" << ArrayRef(**data) << "]";
  return false;
}

Value Attacher::meanSquare() {
  if (!makeTarget(Emitter::typeOf(output)))
    return {};
  if (target.getType() != output.getType()) {
    error() << " compares " << Emitter::typeOf(output) << " with " << Emitter::typeOf(target)
            << ", expected equal types";
    return {};
  }
  Value difference = emitter.sub(output, target);
  return emitter.mean(emitter.mul(difference, difference),
                      llvm::to_vector(llvm::seq<int64_t>(0, shape.size())), /*keepdims=*/false);
}

/// What the output is, for messages: "'y' comes from a softmax (node 'head')"
std::string Attacher::describe() {
  std::string text = "'" + loss.output + "' comes from " + probabilities->what().str();
  if (auto node = dyn_cast<NameLoc>(probabilities->op->getLoc()))
    text += " (node '" + node.getName().str() + "')";
  return text;
}

std::string Attacher::remedy() {
  std::string name = nameOf(probabilities->scores);
  return "; name what is before it" + (name.empty() ? "" : ": '" + name + "'");
}

/// One line about what the loss is, where the output's name does not say it.
void Attacher::say(StringRef how) {
  if (!probabilities) {
    emitWarning(location) << "-loss=" << options.loss << ": '" << loss.output
                          << "' has one score for each label, so the loss is taken" << how;
    return;
  }
  std::string name = nameOf(probabilities->scores);
  emitWarning(location) << "-loss=" << options.loss << ": " << describe()
                        << ", so the loss is taken before it" << (name.empty() ? "" : ", of '" + name + "'")
                        << how;
}

/// Finds the scores. False after an error: where there are none, or not along one axis of the output.
bool Attacher::checkProbabilities() {
  scores = output;
  probabilities = graph::probabilitiesOf(output);
  if (!probabilities)
    return true;
  isSigmoid = probabilities->kind == graph::Probabilities::Sigmoid;
  if (Operation *between = probabilities->between) {
    auto node = dyn_cast<NameLoc>(between->getLoc());
    error() << ": " << describe() << " and then from "
            << (node ? "node '" + node.getName().str() + "'" : between->getName().getStringRef().str())
            << ", expected logits" << remedy();
    return false;
  }
  if (!isSigmoid && !probabilities->axis) {
    error() << ": " << describe() << " along what is no axis of it, expected the classes" << remedy();
    return false;
  }
  if (!isSigmoid && shape[*probabilities->axis] == 1) {
    error() << ": " << describe() << " of one class, which is 1 whatever the model computes" << remedy();
    return false;
  }
  scores = graph::scoresOf(*probabilities, emitter.builder);
  return true;
}

/// Where the classes are, of rank 2 or more. False after an error.
bool Attacher::chooseClassAxis() {
  int64_t rank = shape.size(), last = rank - 1;
  std::optional<int64_t> known = probabilities ? probabilities->axis : std::nullopt;
  // Of images of one pixel, too, the classes are second.
  bool isPixel =
      rank > 3 && llvm::all_of(ArrayRef(shape).drop_front(2), [](int64_t size) { return size == 1; });
  if ((isSigmoid && shape[1] == 1) || (!known && isPixel))
    known = 1;
  auto rowsWithout = [&](int64_t axis) {
    SmallVector<int64_t> rows(shape);
    rows.erase(rows.begin() + axis);
    return rows;
  };
  classAxis = last;
  if (!target || isSoft)
    classAxis = known == 1 || isSoft ? 1 : last;
  // Labels of PyTorch's images have the classes second.
  else if (Emitter::shapeOf(target) == ArrayRef(rowsWithout(1)) &&
           (known == 1 || Emitter::shapeOf(target) != ArrayRef(rowsWithout(last))))
    classAxis = 1;
  if (isSigmoid || !probabilities || known == classAxis)
    return true;
  error() << ": " << describe() << " along axis " << *known << ", expected axis " << classAxis
          << ", that of the classes" << remedy();
  return false;
}

/// The scores of two classes for each element, in rows of any shape, the classes last: that of the first is
/// 0.
Value Attacher::twoClasses(ArrayRef<int64_t> rows) {
  SmallVector<int64_t> column(rows);
  column.push_back(1);
  Value second = emitter.reshape(scores, column);
  Value first = second ? emitter.splat(Emitter::elementOf(second), 0, column) : Value();
  return first ? emitter.concat({first, second}, rows.size()) : Value();
}

Value Attacher::crossEntropy() {
  RankedTensorType type = Emitter::typeOf(output);
  int64_t rank = shape.size();
  if (!checkProbabilities())
    return {};
  if (rank < (isSigmoid ? 1 : 2)) {
    error() << " names '" << loss.output << "' of type " << type
            << ", expected floating point of rank 2 or more";
    return {};
  }
  isSoft = target ? isa<FloatType>(Emitter::elementOf(target)) : options.floatInputs.count(loss.target) > 0;
  // Of one score a row there are two classes, and of a sigmoid's results with as many targets.
  bool isOneScore = rank == 1 || (rank == 2 && shape[1] == 1);
  if (isSoft && (isSigmoid || isOneScore)) {
    if (!makeTarget(type))
      return {};
    if (Emitter::shapeOf(target) != ArrayRef(shape)) {
      error() << " has scores of type " << type << " and probabilities of type " << Emitter::typeOf(target)
              << " as labels, expected equal shapes";
      return {};
    }
    say(" as a binary cross-entropy of each element");
    int64_t count = type.getNumElements();
    Value logits = twoClasses(count);
    Value second = emitter.reshape(emitter.convert(target, Emitter::elementOf(scores)), {count, 1});
    Value first = emitter.sub(emitter.scalar(1, second), second);
    Value shares = first ? emitter.concat({first, second}, 1) : Value();
    return softCrossEntropy(emitter, logits ? logSoftmax(emitter, logits, 1) : Value(), shares, {}, "mean");
  }
  if (isSoft && rank != 2) {
    error() << " has probabilities as labels of logits of type " << type
            << ", expected rows and classes alone: which axis the classes are is not known";
    return {};
  }
  if (rank == 1)
    classAxis = 1;
  else if (!chooseClassAxis())
    return {};
  SmallVector<int64_t> rows(shape);
  if (rank > 1 && !isSoft)
    rows.erase(rows.begin() + classAxis);
  if (!makeTarget(isSoft ? type : RankedTensorType::get(rows, emitter.builder.getI64Type())))
    return {};
  if (isSoft) {
    if (Emitter::shapeOf(target) != ArrayRef(shape)) {
      error() << " has logits of type " << type << " and probabilities of type " << Emitter::typeOf(target)
              << " as labels, expected equal shapes";
      return {};
    }
    if (probabilities)
      say("");
    return softCrossEntropy(emitter, logSoftmax(emitter, scores, 1), target, {}, "mean");
  }
  bool isBinary = rank == 1 || shape[classAxis] == 1;
  if (probabilities || isBinary)
    say(isBinary ? " as that of two classes" : isSigmoid ? " as that of classes of which one is right" : "");
  if (isBinary) {
    scores = twoClasses(rows);
    classAxis = rows.size();
  }
  return onnx_import::crossEntropy(emitter, scores, target, classAxis, /*ignoreIndex=*/-100, "mean");
}

FailureOr<Value> attachLoss(Emitter &emitter, func::FuncOp function, const Loss &loss,
                            const ImportOptions &options, Value output, Value &target,
                            llvm::function_ref<std::string(Value)> nameOf, Location location) {
  if (!isa<FloatType>(Emitter::elementOf(output)))
    return emitError(location) << "-loss=" << options.loss << " names '" << loss.output << "' of type "
                               << Emitter::typeOf(output) << ", expected floating point"
                               << (loss.kind == Loss::CrossEntropy ? " of rank 2 or more" : "");
  Attacher attacher(emitter, function, loss, options, output, target, nameOf, location);
  Value result = loss.kind == Loss::CrossEntropy ? attacher.crossEntropy() : attacher.meanSquare();
  return result ? FailureOr<Value>(result) : FailureOr<Value>();
}

} // namespace dsopt::onnx_import

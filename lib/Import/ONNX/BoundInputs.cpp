//===- BoundInputs.cpp - inputs that are bound to values -------------------===//
//
// ONNX says by an initializer of an input's name what the input is where nobody gives it; a value of
// `-input=NAME=VALUE` becomes one, so that all that follows knows it as a constant.
//
//===----------------------------------------------------------------------===//

#include "BoundInputs.h"

#include "InputShapes.h"
#include "Tensors.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Error.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
using Dimension = onnx::TensorShapeProto::Dimension;

/// One `-input=NAME=VALUE`.
class Bound {
public:
  Bound(ModelFile &file, const ImportOptions &options, Location location, const std::string &name,
        const std::string &text)
      : file(file), options(options), location(location), name(name), text(text) {
    StringRef(text).split(values, ',');
  }

  LogicalResult bind();

private:
  InFlightDiagnostic error() const { return emitError(location) << "-input=" << name << "=" << text; }
  onnx::ValueInfoProto *findInput() const;
  std::string symbolOf(const Dimension &dimension, int64_t axis) const;
  int64_t sizeOf(const Dimension &dimension, int64_t axis) const;
  FailureOr<SmallVector<int64_t>> shapeOf(const onnx::TypeProto_Tensor &tensor);
  /// The number that a text means, as an element of this type; fails with an error.
  FailureOr<llvm::APInt> bitsOf(StringRef value, Type element) const;
  LogicalResult refuse(StringRef value, Type element, const std::string &expected) const {
    return error() << " gives '" << value << "' for input '" << name << "' of type " << element
                   << ", expected " << expected;
  }

  ModelFile &file;
  const ImportOptions &options;
  Location location;
  const std::string &name, &text;
  SmallVector<StringRef> values;
};
} // namespace

onnx::ValueInfoProto *Bound::findInput() const {
  std::string names;
  for (onnx::ValueInfoProto &input : *file.model().mutable_graph()->mutable_input()) {
    if (input.name() == name)
      return &input;
    if (file.findInitializer(input.name()) < 0)
      names += (names.empty() ? "" : ", ") + input.name();
  }
  error() << " names no input of the model, expected one of " << (names.empty() ? "none" : names);
  return nullptr;
}

/// What -dim calls a dimension.
std::string Bound::symbolOf(const Dimension &dimension, int64_t axis) const {
  bool isNamed = !dimension.dim_param().empty() && dimension.dim_param() != "?";
  return isNamed ? dimension.dim_param() : axisName(name, axis);
}

/// -1 where nothing but the number of values says it.
int64_t Bound::sizeOf(const Dimension &dimension, int64_t axis) const {
  if (dimension.has_dim_value() && dimension.dim_value() >= 0)
    return dimension.dim_value();
  auto given = options.dims.find(symbolOf(dimension, axis));
  if (given != options.dims.end())
    return given->second;
  return axis == 0 && options.microBatchSize > 0 ? options.microBatchSize : -1;
}

FailureOr<SmallVector<int64_t>> Bound::shapeOf(const onnx::TypeProto_Tensor &tensor) {
  int64_t count = values.size(), known = 1, open = -1;
  // Where the model does not say it, a list has one dimension and a number none.
  if (!tensor.has_shape())
    return count == 1 ? SmallVector<int64_t>() : SmallVector<int64_t>{count};
  SmallVector<int64_t> shape;
  for (auto [axis, dimension] : llvm::enumerate(tensor.shape().dim())) {
    shape.push_back(sizeOf(dimension, axis));
    if (shape.back() >= 0) {
      known *= std::clamp<int64_t>(shape.back(), 0, kMaxElements / std::max<int64_t>(known, 1) + 1);
    } else if (open >= 0) {
      return error() << " binds input '" << name << "', whose dimensions " << open << " and " << axis
                     << " are symbolic: give one of them a value with -dim=" << symbolOf(dimension, axis)
                     << "=VALUE";
    } else {
      open = axis;
    }
  }
  if (open >= 0 && known > 0 && count % known == 0)
    shape[open] = count / known;
  else if (open >= 0 || count != known)
    return error() << " gives " << count << (count == 1 ? " value" : " values") << " for input '" << name
                   << "', expected " << (open >= 0 ? "a multiple of " : "") << known << " for its shape ["
                   << llvm::join(llvm::map_range(shape,
                                                 [](int64_t size) {
                                                   return size < 0 ? std::string("?") : std::to_string(size);
                                                 }),
                                 ", ")
                   << "]";
  return shape;
}

FailureOr<llvm::APInt> Bound::bitsOf(StringRef value, Type element) const {
  if (element.isInteger(1)) {
    int known = llvm::StringSwitch<int>(value)
                    .Cases({"true", "True", "1"}, 1)
                    .Cases({"false", "False", "0"}, 0)
                    .Default(-1);
    return known < 0 ? FailureOr<llvm::APInt>(refuse(value, element, "true or false"))
                     : llvm::APInt(8, known);
  }
  if (auto integer = dyn_cast<IntegerType>(element)) {
    bool isUnsigned = integer.isUnsigned();
    unsigned width = integer.getWidth();
    StringRef digits = value;
    bool isNegative = digits.consume_front("-");
    if (digits.empty() || !llvm::all_of(digits, llvm::isDigit))
      return refuse(value, element, "a whole number");
    // One bit more for the sign, and room for whatever is out of range.
    llvm::APInt number(std::max<unsigned>(66, digits.size() * 4 + 2), digits, 10);
    if (isNegative)
      number.negate();
    if (isUnsigned ? number.isNegative() || number.getActiveBits() > width : !number.isSignedIntN(width))
      return refuse(value, element,
                    "a number from " + (isUnsigned ? "0" : "-2^" + std::to_string(width - 1)) + " to 2^" +
                        std::to_string(isUnsigned ? width : width - 1) + " - 1");
    return number.trunc(width);
  }
  const llvm::fltSemantics &semantics = cast<FloatType>(element).getFloatSemantics();
  llvm::APFloat number(semantics);
  // As programs write them: what else LLVM reads is for its own texts.
  bool isNumber = !value.empty() && value.find_first_not_of("+-.0123456789eEinfINF") == StringRef::npos;
  llvm::Expected<llvm::APFloat::opStatus> status =
      number.convertFromString(isNumber ? value : "no number", llvm::APFloat::rmNearestTiesToEven);
  if (!status) {
    llvm::consumeError(status.takeError());
    return refuse(value, element, "a number");
  }
  if (*status & llvm::APFloat::opOverflow) {
    SmallString<16> largest;
    llvm::APFloat::getLargest(semantics).toString(largest, /*FormatPrecision=*/4);
    return refuse(value, element, "a number of at most " + largest.str().str());
  }
  return number.bitcastToAPInt();
}

LogicalResult Bound::bind() {
  onnx::ValueInfoProto *input = findInput();
  if (!input)
    return failure();
  if (!input->type().has_tensor_type())
    return error() << " binds input '" << name << "', which is no tensor, expected one";
  if (options.inputShapes.count(name))
    return error() << " binds an input of which the data has an array as well: leave one of them out";
  onnx::TypeProto_Tensor &tensor = *input->mutable_type()->mutable_tensor_type();
  Type element = elementType(tensor.elem_type(), "input '" + name + "'", location);
  auto shape = element ? shapeOf(tensor) : FailureOr<SmallVector<int64_t>>();
  if (failed(shape))
    return failure();
  onnx::TensorProto value;
  value.set_name(name);
  value.set_data_type(tensor.elem_type());
  for (int64_t size : *shape)
    value.add_dims(size);
  std::string bytes;
  int64_t width = graph::elementBytes(element);
  for (StringRef one : values) {
    FailureOr<llvm::APInt> bits = bitsOf(one, element);
    if (failed(bits))
      return failure();
    bytes.append(reinterpret_cast<const char *>(bits->getRawData()), width);
  }
  value.set_raw_data(bytes);
  // What the number of values said of a symbol holds for all inputs.
  for (auto [axis, dimension] : llvm::enumerate(tensor.shape().dim())) {
    std::string symbol = symbolOf(dimension, axis);
    if (options.dims.count(symbol))
      continue;
    for (onnx::ValueInfoProto &other : *file.model().mutable_graph()->mutable_input())
      if (&other != input && other.type().tensor_type().has_shape())
        for (Dimension &own : *other.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
          if (own.dim_param() == symbol)
            own.set_dim_value((*shape)[axis]);
  }
  file.bindInput(value);
  return success();
}

LogicalResult bindToValues(ModelFile &file, const ImportOptions &options, Location location) {
  std::map<std::string, std::string> bound;
  for (auto &[name, text] : options.inputs) {
    auto [known, isNew] = bound.try_emplace(name, text);
    if (!isNew)
      return emitError(location) << "-input=" << name << "=" << known->second << " and -input=" << name << "="
                                 << text << " bind one input twice";
    if (failed(Bound(file, options, location, name, text).bind()))
      return failure();
  }
  return success();
}

std::string howToBind(Value value, StringRef name) {
  // Sizes and axes; other lists are data.
  static constexpr int64_t kMostSizes = 8;
  auto isSetting = [](RankedTensorType type) {
    bool isList = type.getRank() == 1 && type.getDimSize(0) <= kMostSizes;
    return type.getNumElements() == 1 || (isList && type.getElementType().isSignlessInteger(64));
  };
  std::vector<std::string> names;
  llvm::DenseSet<Value> seen{value};
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (auto argument = op ? BlockArgument() : cast<BlockArgument>(next)) {
      auto forward = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
      auto name = forward ? forward.getArgAttrOfType<StringAttr>(argument.getArgNumber(), graph::kNameAttr)
                          : StringAttr();
      if (!name || !isSetting(cast<RankedTensorType>(next.getType())))
        return "";
      names.push_back(name.str());
    } else if (op->getNumOperands() == 0 && !isa<graph::ConstantOp>(op)) {
      return ""; // a parameter, or drawn
    } else {
      for (Value operand : op->getOperands())
        if (seen.insert(operand).second)
          open.push_back(operand);
    }
  }
  if (names.empty())
    return "";
  llvm::sort(names);
  return "; -input=" + llvm::join(names, "=VALUE -input=") + "=VALUE makes '" + name.str() +
         "' known when the model is compiled";
}

} // namespace dsopt::onnx_import

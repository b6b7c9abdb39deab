//===- InputShapes.cpp - the shapes of a model's inputs --------------------===//

#include "InputShapes.h"

#include "RefusedOperators.h"
#include "Tensors.h"

#include <set>

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
using Dimension = onnx::TensorShapeProto::Dimension;

class Binder {
public:
  Binder(const ModelFile &file, ArrayRef<const onnx::ValueInfoProto *> inputs, const ImportOptions &options,
         Location location)
      : file(file), inputs(inputs), options(options), location(location) {}

  LogicalResult bind() {
    if (failed(bindGiven()))
      return failure();
    for (const onnx::ValueInfoProto *input : inputs)
      if (failed(bindFromData(*input)))
        return failure();
    bindSequence();
    return bindMicroBatch();
  }
  FailureOr<RankedTensorType> typeOf(const onnx::ValueInfoProto &input);
  LogicalResult checkArrays();

private:
  InFlightDiagnostic error() { return emitError(location); }
  LogicalResult bindGiven();
  LogicalResult bindFromData(const onnx::ValueInfoProto &input);
  LogicalResult bindMicroBatch();
  void bindSequence();

  /// The dimension's value; -1 if it isn't known.
  int64_t valueOf(const Dimension &dimension) {
    if (dimension.has_dim_value())
      return dimension.dim_value();
    auto found = values.find(dimension.dim_param());
    return dimension.dim_param().empty() || found == values.end() ? -1 : found->second;
  }
  const ModelFile &file;
  ArrayRef<const onnx::ValueInfoProto *> inputs;
  const ImportOptions &options;
  Location location;
  std::map<std::string, int64_t> values;
};
} // namespace

std::string axisName(const std::string &input, int64_t axis) { return input + ":" + std::to_string(axis); }

/// The rank of an input whose shape the model does not say; -1 if nothing else says it.
static int64_t rankOf(const onnx::ValueInfoProto &input, const ModelFile &file,
                      const ImportOptions &options) {
  int64_t rank = 0;
  while (options.dims.count(axisName(input.name(), rank)))
    ++rank;
  auto array = options.inputShapes.find(input.name());
  if (rank || array == options.inputShapes.end())
    return rank ? rank : -1;
  // Axes before those of a micro-batch are before those of the other inputs as well.
  int64_t leading = 0;
  for (const onnx::ValueInfoProto &other : file.graph().input()) {
    const onnx::TypeProto_Tensor &tensor = other.type().tensor_type();
    auto data = options.inputShapes.find(other.name());
    if (tensor.has_shape() && data != options.inputShapes.end())
      leading = std::max<int64_t>(leading, (int64_t)data->second.size() - tensor.shape().dim_size());
  }
  return std::max<int64_t>(0, (int64_t)array->second.size() - leading);
}

void nameOpenDimensions(ModelFile &file, const ImportOptions &options) {
  for (onnx::ValueInfoProto &input : *file.model().mutable_graph()->mutable_input()) {
    if (!input.type().has_tensor_type() || file.findInitializer(input.name()) >= 0)
      continue;
    onnx::TypeProto_Tensor &tensor = *input.mutable_type()->mutable_tensor_type();
    if (!tensor.has_shape()) {
      int64_t rank = rankOf(input, file, options);
      if (rank < 0)
        continue;
      tensor.mutable_shape();
      for (int64_t i = 0; i < rank; ++i)
        tensor.mutable_shape()->add_dim();
    }
    for (auto [i, dimension] : llvm::enumerate(*tensor.mutable_shape()->mutable_dim()))
      if (dimension.has_dim_value() ? dimension.dim_value() < 0
                                    : dimension.dim_param().empty() || dimension.dim_param() == "?")
        dimension.set_dim_param(axisName(input.name(), i));
  }
}

FailureOr<std::optional<std::vector<int64_t>>>
microBatchShape(const ImportOptions &options, const std::string &input, int64_t rank, Location location) {
  auto found = options.inputShapes.find(input);
  if (found == options.inputShapes.end())
    return std::optional<std::vector<int64_t>>();
  const std::vector<int64_t> &array = found->second;
  if ((int64_t)array.size() < rank)
    return emitError(location) << "input '" << input << "' has rank " << rank << ", but its data has shape ["
                               << ArrayRef(array) << "], expected at least as many axes";
  std::vector<int64_t> shape(array.end() - rank, array.end());
  if ((int64_t)array.size() == rank && rank > 0)
    shape.front() = -1;
  return std::optional(shape);
}

LogicalResult Binder::bindGiven() {
  std::set<std::string> names;
  // By input and axis.
  std::map<std::string, const Dimension *> places;
  for (const onnx::ValueInfoProto &input : file.graph().input())
    for (auto [axis, dimension] : llvm::enumerate(input.type().tensor_type().shape().dim())) {
      if (!dimension.dim_param().empty())
        names.insert(dimension.dim_param());
      places[axisName(input.name(), axis)] = &dimension;
    }
  for (auto &[name, value] : options.dims) {
    if (!names.count(name)) {
      InFlightDiagnostic diagnostic = error() << "-dim=" << name << "=" << value;
      if (auto place = places.find(name); place != places.end()) {
        if (place->second->has_dim_value())
          return diagnostic << " names a dimension that is " << place->second->dim_value() << " in the model";
        const std::string &symbol = place->second->dim_param();
        return diagnostic << " names a dimension that the model calls '" << symbol
                          << "', expected -dim=" << symbol << "=" << value;
      }
      diagnostic << " names no symbolic dimension of the model";
      for (auto [i, known] : llvm::enumerate(names))
        diagnostic << (i == 0 ? ", expected one of " : ", ") << known;
      return diagnostic;
    }
    if (value < 1 || value > kMaxElements)
      return error() << "-dim=" << name << "=" << value << " is out of range, expected 1 to 2^48";
    values[name] = value;
  }
  return success();
}

LogicalResult Binder::bindFromData(const onnx::ValueInfoProto &input) {
  const onnx::TensorShapeProto &shape = input.type().tensor_type().shape();
  auto found = microBatchShape(options, input.name(), shape.dim_size(), location);
  if (failed(found))
    return failure();
  const std::optional<std::vector<int64_t>> &data = *found;
  if (!data)
    return success();
  for (auto [i, dimension] : llvm::enumerate(shape.dim())) {
    int64_t size = (*data)[i], known = valueOf(dimension);
    if (size < 0)
      continue;
    if (options.paddedDims.count(dimension.dim_param()))
      continue;
    if (known >= 0 && known != size)
      return error() << "dimension " << i << " of input '" << input.name() << "' is " << known
                     << (dimension.has_dim_value() ? "" : " (" + dimension.dim_param() + ")")
                     << ", but its data has micro-batches of shape [" << ArrayRef(*data) << "]";
    if (!dimension.dim_param().empty())
      values[dimension.dim_param()] = size;
  }
  return success();
}

/// One sequence of as many positions as are asked for, where the model leaves both open.
void Binder::bindSequence() {
  for (const onnx::ValueInfoProto *input : inputs)
    for (auto [axis, dimension] : llvm::enumerate(input->type().tensor_type().shape().dim()))
      if (options.positions && axis < 2 && !dimension.dim_param().empty())
        values.try_emplace(dimension.dim_param(), axis == 0 ? 1 : options.positions);
}

LogicalResult Binder::bindMicroBatch() {
  if (options.microBatchSize == 0)
    return success();
  if (options.microBatchSize < 0 || options.microBatchSize > kMaxElements)
    return error() << "-micro-batch-size=" << options.microBatchSize
                   << " is out of range, expected 1 to 2^48";
  bool isUsed = false;
  const onnx::ValueInfoProto *other = nullptr;
  for (const onnx::ValueInfoProto *input : inputs) {
    const onnx::TensorShapeProto &shape = input->type().tensor_type().shape();
    if (shape.dim_size() == 0)
      continue;
    if (options.paddedDims.count(shape.dim(0).dim_param())) {
      isUsed = true;
      continue;
    }
    if (valueOf(shape.dim(0)) < 0 && !shape.dim(0).dim_param().empty())
      values[shape.dim(0).dim_param()] = options.microBatchSize;
    int64_t rows = valueOf(shape.dim(0));
    if (rows < 0 || rows == options.microBatchSize)
      isUsed = true;
    else
      other = input;
  }
  if (!isUsed && other) {
    const Dimension &rows = other->type().tensor_type().shape().dim(0);
    InFlightDiagnostic diagnostic = error() << "-micro-batch-size=" << options.microBatchSize
                                            << " does not match input '" << other->name()
                                            << "', whose first dimension is " << valueOf(rows);
    if (rows.has_dim_value())
      diagnostic << " in the model: a model takes other sizes if it is exported with a symbolic first "
                    "dimension (dynamic_shapes of torch.onnx.export and dsopt.export)";
    return diagnostic;
  }
  return success();
}

/// Data that are given have an array for each input that needs one for its shape; all that lack it are said.
LogicalResult Binder::checkArrays() {
  std::string missing;
  for (const onnx::ValueInfoProto *input : inputs) {
    const onnx::TypeProto_Tensor &tensor = input->type().tensor_type();
    bool isOpen = !tensor.has_shape();
    for (auto [axis, dimension] : llvm::enumerate(tensor.shape().dim()))
      isOpen |=
          valueOf(dimension) < 0 && !dimension.has_dim_value() && (axis > 0 || options.microBatchSize == 0);
    if (isOpen && !options.inputShapes.count(input->name()))
      missing += (missing.empty() ? "'" : ", '") + input->name() + "'";
  }
  if (missing.empty() || options.inputShapes.empty())
    return success();
  return error() << "the data has no array for input " << missing
                 << ", whose shape the model leaves open: give one of that name, or sizes with -dim";
}

FailureOr<RankedTensorType> Binder::typeOf(const onnx::ValueInfoProto &input) {
  if (!input.type().has_tensor_type())
    return error() << "input '" << input.name() << "' is no tensor, expected one";
  const onnx::TypeProto_Tensor &tensor = input.type().tensor_type();
  if (tensor.elem_type() == onnx::TensorProto::STRING)
    return error() << "input '" << input.name() << "' is of text: " << remedyForText();
  std::string what = "input '" + input.name() + "'";
  Type element = elementType(tensor.elem_type(), what, location, Types::WithSmall);
  // No data has integers of less than 8 bits.
  if (isa_and_nonnull<IntegerType>(element) && isNarrow(element))
    element = elementType(tensor.elem_type(), what, location);
  if (!element)
    return failure();
  if (!tensor.has_shape())
    return error()
           << "input '" << input.name()
           << "' has no shape in the model: give data that has an array of that name, or each size with "
              "-dim="
           << axisName(input.name(), 0) << "=VALUE and so on";
  auto data = microBatchShape(options, input.name(), tensor.shape().dim_size(), location);
  if (failed(data))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [i, dimension] : llvm::enumerate(tensor.shape().dim())) {
    int64_t size = valueOf(dimension);
    bool isOpen = !dimension.has_dim_value();
    if (size < 0 && isOpen && *data)
      size = (**data)[i];
    if (size < 0 && isOpen && i == 0 && options.microBatchSize > 0)
      size = options.microBatchSize;
    if (size < 0 && isOpen) {
      InFlightDiagnostic diagnostic = error()
                                      << "dimension " << i << " of input '" << input.name() << "' is ";
      diagnostic << "symbolic: give it a value with -dim=" << dimension.dim_param() << "=VALUE, or ";
      if (*data && i == 0)
        diagnostic << "say how many rows of its data's [" << ArrayRef(options.inputShapes.at(input.name()))
                   << "] a micro-batch has with -micro-batch-size=B";
      else
        diagnostic << "give data";
      if (!*data && i == 0)
        diagnostic << ", or the rows of a micro-batch with -micro-batch-size=B";
      return diagnostic;
    }
    shape.push_back(size);
  }
  for (int64_t size : shape)
    if (size < (options.returns == Returns::Loss ? 1 : 0))
      return error() << "input '" << input.name() << "' has dimensions [" << shape
                     << "], expected 1 or more each";
  if (!isSaneShape(shape))
    return error() << "input '" << input.name() << "' has dimensions [" << shape
                   << "], expected at most 2^48 elements";
  return RankedTensorType::get(shape, element);
}

FailureOr<std::vector<RankedTensorType>> bindInputs(const ModelFile &file,
                                                    ArrayRef<const onnx::ValueInfoProto *> inputs,
                                                    const ImportOptions &options, Location location) {
  Binder binder(file, inputs, options, location);
  if (failed(binder.bind()) || failed(binder.checkArrays()))
    return failure();
  std::vector<RankedTensorType> types;
  for (const onnx::ValueInfoProto *input : inputs) {
    FailureOr<RankedTensorType> type = binder.typeOf(*input);
    if (failed(type))
      return failure();
    types.push_back(*type);
  }
  return types;
}

std::map<std::string, std::string> takeUnbound(const ModelFile &file,
                                               std::vector<const onnx::ValueInfoProto *> &inputs,
                                               const llvm::StringSet<> &optional,
                                               const ImportOptions &options, Location location) {
  std::vector<const onnx::ValueInfoProto *> always;
  llvm::copy_if(inputs, std::back_inserter(always),
                [&](const onnx::ValueInfoProto *input) { return !optional.contains(input->name()); });
  std::map<std::string, std::string> problems;
  llvm::erase_if(inputs, [&](const onnx::ValueInfoProto *input) {
    if (!optional.contains(input->name()))
      return false;
    always.push_back(input);
    std::string problem;
    bool isWrong =
        failed(withoutErrors(problem, location, [&] { return bindInputs(file, always, options, location); }));
    always.pop_back();
    if (isWrong)
      problems[input->name()] = problem;
    return isWrong;
  });
  return problems;
}

} // namespace dsopt::onnx_import

//===- Initializers.cpp - what initializers become -------------------------===//

#include "Initializers.h"

#include "NaN.h"
#include "NodeBuilder.h"
#include "Scopes.h"
#include "TensorValues.h"
#include "Tensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace mlir;

namespace dsopt::onnx_import {

/// A parameter is hashed in pieces of this size.
static constexpr int64_t kChunkBytes = 1 << 20;
/// Frozen floats up to this size take part in folding.
static constexpr int64_t kFoldedFloatBytes = 1 << 10;
/// Integers, bools and what has to be known are constants up to this size.
static constexpr int64_t kFoldedIntegerBytes = 1 << 20;

Type Initializers::modelType(const llvm::StringSet<> &needed) {
  Type common;
  for (const onnx::TensorProto &tensor : file.graph().initializer()) {
    if (!needed.contains(tensor.name()))
      continue;
    Type element = elementType(tensor.data_type(), module.getContext());
    if (!element || !isa<FloatType>(element) || rules.decide(tensor, element).role != Role::Trained)
      continue;
    if (!isNarrow(element) || (common && common != element))
      return Type();
    common = element;
  }
  return common;
}

FailureOr<Initializer> Initializers::make(int index) {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  Location location = module.getLoc();
  std::string what = "initializer '" + tensor.name() + "'";
  RankedTensorType type = tensorType(tensor, what, location);
  if (!type)
    return failure();

  Type element = type.getElementType(), narrow = isNarrow(element) ? element : Type();
  ParameterRule rule = rules.decide(tensor, element);
  if (rule.role == Role::Trained && element.isF64() && options.returns == Returns::Predictions)
    rule = {Role::Frozen, kOfDouble.str()};
  if (rule.role == Role::Trained && element.isF64())
    return emitError(location) << what
                               << " is of type f64, expected a parameter of f32, bf16 or f16: convert "
                               << "the model (model.float() in PyTorch), or keep it as it is with -freeze="
                               << tensor.name();
  if (isConstant(index, type)) {
    FailureOr<DenseElementsAttr> constant = makeConstant(index, type);
    if (failed(constant))
      return failure();
    made[index] = "";
    return Initializer{{}, narrow ? widened(*constant) : *constant, narrow};
  }
  FailureOr<graph::ParameterOp> parameter = makeParameter(index, type, rule);
  if (failed(parameter))
    return failure();
  made[index] = parameter->getSymName().str();
  return Initializer{*parameter, {}, narrow};
}

bool Initializers::isConstant(int index, RankedTensorType type) const {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  ParameterRule rule = rules.decide(tensor, type.getElementType());
  // What a shape or a branch needs has to be known; what was a constant in the file stays one of any size.
  bool isDeciding = rules.isDeciding(tensor.name());
  bool isNeeded = !isa<FloatType>(type.getElementType()) || isDeciding;
  bool isSmall =
      file.isLifted(index) || graph::numBytes(type) <= (isNeeded ? kFoldedIntegerBytes : kFoldedFloatBytes);
  // What training changes is no constant.
  bool isWeight = rule.role == Role::Trained || (rule.role == Role::Frozen && !isDeciding) ||
                  rules.isFolded(tensor.name());
  return (isSmall && !isWeight) || type.getNumElements() == 0;
}

void Initializers::forEachTyped(llvm::function_ref<void(int, RankedTensorType)> f) {
  for (auto [index, tensor] : llvm::enumerate(file.graph().initializer()))
    if (RankedTensorType type = possibleType(tensor, module.getContext()))
      f(index, type);
}

ImportReport::Initializer Initializers::rowOf(int index, RankedTensorType type, ImportReport::Use use) const {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  ParameterRule rule = rules.decide(tensor, type.getElementType());
  ImportReport::Initializer row{tensor.name(), type, use, rule.why, rule.inDoubt};
  if (use == ImportReport::Unused && rule.role == Role::Trained)
    row.why = "not needed for what is computed";
  row.inDoubt &= use != ImportReport::Unused;
  if (use == ImportReport::Trained && type.getElementType().isF64()) {
    row.use = ImportReport::Frozen;
    row.why = kOfDouble.str();
  }
  return row;
}

std::vector<ImportReport::Initializer> Initializers::foresee(const llvm::StringSet<> &needed) {
  std::vector<ImportReport::Initializer> rows;
  forEachTyped([&](int index, RankedTensorType type) {
    const onnx::TensorProto &tensor = file.graph().initializer(index);
    bool isNeeded = needed.contains(tensor.name()), isFolded = isConstant(index, type);
    if (!isa<FloatType>(type.getElementType()) && (!isNeeded || isFolded))
      return;
    Role role = rules.decide(tensor, type.getElementType()).role;
    ImportReport::Initializer row = rowOf(index, type,
                                          !isNeeded                            ? ImportReport::Unused
                                          : isFolded || role == Role::Constant ? ImportReport::Constant
                                          : role == Role::Trained              ? ImportReport::Trained
                                                                               : ImportReport::Frozen);
    if (!file.isLifted(index) || row.use == ImportReport::Trained || row.inDoubt)
      rows.push_back(row);
  });
  return rows;
}

std::vector<ImportReport::Initializer> Initializers::report() {
  std::vector<ImportReport::Initializer> rows;
  SymbolTable symbols(module);
  forEachTyped([&](int index, RankedTensorType type) {
    auto found = made.find(index);
    bool isFolded = found != made.end() && found->second.empty();
    auto parameter = found == made.end() || isFolded ? graph::ParameterOp()
                                                     : symbols.lookup<graph::ParameterOp>(found->second);
    if (!isa<FloatType>(type.getElementType()) && !parameter)
      return;
    ImportReport::Use use = ImportReport::Unused;
    if (parameter && !parameter.getFrozen())
      use = ImportReport::Trained;
    else if (parameter && !parameter.getConstant())
      use = ImportReport::Frozen;
    else if (parameter || isFolded)
      use = ImportReport::Constant;
    ImportReport::Initializer row = rowOf(index, type, use);
    if (parameter && parameter.getWhy())
      row.why = *parameter.getWhy();
    // Of constants that were nodes only those count that may be weights.
    if (!file.isLifted(index) || row.use == ImportReport::Trained || row.inDoubt)
      rows.push_back(row);
  });
  return rows;
}

/// Checks that an extent has the type's size.
static LogicalResult checkBytes(const Extent &extent, RankedTensorType type, StringRef name,
                                Location location) {
  int64_t expected = graph::numBytes(type);
  if (extent.bytes == expected || (extent.isExternal && extent.bytes == -1))
    return success();
  return emitError(location) << "initializer '" << name << "' has " << extent.bytes
                             << " bytes of data, expected " << expected << " for " << type;
}

FailureOr<DenseElementsAttr> Initializers::makeConstant(int index, RankedTensorType type) {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  const Extent &extent = file.extent(index);
  Location location = module.getLoc();
  int64_t bytes = graph::numBytes(type);
  if (type.getNumElements() == 0)
    return constantOf(type, {});
  if (extent.file.empty()) {
    FailureOr<std::string> data = typedBytes(tensor, type, "initializer '" + tensor.name() + "'", location);
    return failed(data) ? FailureOr<DenseElementsAttr>() : constantOf(type, *data);
  }
  if (failed(checkBytes(extent, type, tensor.name(), location)))
    return failure();
  const llvm::MemoryBuffer *data = file.weights(extent, bytes, tensor.name(), location);
  if (!data)
    return failure();
  return constantOf(type, data->getBuffer().substr(extent.offset, bytes));
}

FailureOr<Extent> Initializers::spill(StringRef bytes) {
  Location location = module.getLoc();
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  std::string name =
      llvm::utohexstr(hash.high64, true, 16) + llvm::utohexstr(hash.low64, true, 16) + ".dsopt-weights";
  SmallString<128> path(options.spillFolder);
  llvm::sys::path::append(path, name);
  llvm::sys::fs::make_absolute(path);
  Extent extent{path.str().str(), 0, (int64_t)bytes.size(), true};
  uint64_t present;
  if (options.weights == WeightFiles::Ignore ||
      (!llvm::sys::fs::file_size(path, present) && present == bytes.size()))
    return extent;
  // Under another name first: nobody ever sees half a file.
  SmallString<128> temporary(path);
  temporary += ".%%%%%%";
  int descriptor;
  std::error_code error = llvm::sys::fs::createUniqueFile(temporary, descriptor, temporary);
  if (!error) {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error();
    if (!error)
      error = llvm::sys::fs::rename(temporary, path);
    if (error)
      llvm::sys::fs::remove(temporary);
  }
  if (error)
    return emitError(location) << "cannot write '" << path << "': " << error.message();
  return extent;
}

std::string Initializers::symbolOf(StringRef name) {
  std::string symbol = name.str();
  auto isTaken = [&] {
    return symbol == graph::kForwardFunction || symbols.contains(symbol) ||
           (symbol != name && file.findInitializer(symbol) >= 0);
  };
  while (isTaken())
    symbol = "~" + symbol;
  symbols.insert(symbol);
  return symbol;
}

FailureOr<graph::ParameterOp> Initializers::makeParameter(int index, RankedTensorType type,
                                                          const ParameterRule &rule) {
  const onnx::TensorProto &tensor = file.graph().initializer(index);
  const std::string &name = tensor.name();
  Location location = module.getLoc();
  int64_t bytes = graph::numBytes(type);
  Extent extent = file.extent(index);
  if (extent.file.empty()) {
    FailureOr<std::string> data = typedBytes(tensor, type, "initializer '" + name + "'", location);
    FailureOr<Extent> spilled = failed(data) ? FailureOr<Extent>() : spill(*data);
    if (failed(spilled))
      return failure();
    extent = *spilled;
  } else if (failed(checkBytes(extent, type, name, location))) {
    return failure();
  }

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  IntegerAttr fileBytes;
  DenseI64ArrayAttr chunks;
  if (options.weights != WeightFiles::Ignore) {
    bool absent = false;
    bool mayBeAbsent = options.weights == WeightFiles::IfPresent;
    const llvm::MemoryBuffer *data =
        file.weights(extent, bytes, name, location, mayBeAbsent ? &absent : nullptr);
    if (!data && !absent)
      return failure();
    if (data) {
      StringRef content = data->getBuffer().substr(extent.offset, bytes);
      auto element = dyn_cast<FloatType>(type.getElementType());
      bool isOdd = false;
      SmallVector<int64_t> hashes;
      for (int64_t at = 0; at < bytes; at += kChunkBytes) {
        StringRef chunk = content.substr(at, kChunkBytes);
        hashes.push_back((int64_t)XXH3_64bits(chunk.data(), chunk.size()));
        isOdd |= element && hasNaN(chunk, element);
      }
      if (isOdd)
        warnOfNaN(content, element, name, location);
      chunks = builder.getDenseI64ArrayAttr(hashes);
      fileBytes = builder.getI64IntegerAttr(data->getBufferSize());
    }
  }
  Type element = type.getElementType();
  std::string symbol = symbolOf(name);
  bool trained = rule.role == Role::Trained;
  auto unit = [&](bool holds) { return holds ? builder.getUnitAttr() : UnitAttr(); };
  if (isNarrow(element))
    type = RankedTensorType::get(type.getShape(), builder.getF32Type());
  const AskedCut *asked = configurations.find(file.originalName(name));
  return graph::ParameterOp::create(
      builder, location, builder.getStringAttr(symbol), TypeAttr::get(type),
      builder.getStringAttr(extent.file), builder.getI64IntegerAttr(extent.offset),
      builder.getI64IntegerAttr(bytes), fileBytes, chunks, unit(!trained),
      trained ? StringAttr() : builder.getStringAttr(rule.why), unit(rule.role == Role::Constant),
      symbol == name ? StringAttr() : builder.getStringAttr(name),
      isNarrow(element) ? TypeAttr::get(element) : TypeAttr(), /*storage=*/nullptr, /*lr_scale=*/nullptr,
      /*decay_scale=*/nullptr, /*statistic=*/nullptr, /*branch=*/nullptr, /*part_of=*/nullptr,
      /*part_begin=*/nullptr, /*part_runs=*/nullptr, /*uncut=*/nullptr,
      asked ? builder.getI64IntegerAttr(asked->dim) : IntegerAttr(),
      asked ? builder.getStringAttr(asked->by) : StringAttr(),
      unit(rules.isTransposed(file.originalName(name)) && type.getRank() == 2));
}

void warnOfMergedInitializers(ModelFile &file, ArrayRef<const onnx::NodeProto *> nodes, Location location) {
  llvm::StringMap<int> uses;
  llvm::StringMap<std::string> source;
  std::vector<std::string> merged;
  auto use = [&](const onnx::NodeProto &node, int input) {
    if (input >= node.input_size())
      return;
    auto copy = source.find(node.input(input));
    std::string name = copy == source.end() ? node.input(input) : copy->second;
    int initializer = file.findInitializer(name);
    if (initializer < 0)
      return;
    const onnx::TensorProto &tensor = file.graph().initializer(initializer);
    bool isVector = tensor.dims_size() == 1 && tensor.dims(0) > 1;
    bool isFloat = isFloatType(tensor.data_type());
    // Weights that differ were trained as one.
    auto isFresh = [&] {
      RankedTensorType type = possibleType(tensor, location.getContext());
      return type && TensorValues(file, tensor, type, location).areEqual();
    };
    if (isVector && isFloat && ++uses[name] == 2 && isFresh())
      merged.push_back(name);
  };
  for (const onnx::NodeProto *node : nodes) {
    StringRef op = node->op_type();
    if (op == "Identity" && node->input_size() == 1 && node->output_size() == 1) {
      auto copy = source.find(node->input(0));
      source[node->output(0)] = copy == source.end() ? node->input(0) : copy->second;
    } else if (op == "LayerNormalization" || op == "BatchNormalization") {
      use(*node, 1);
      use(*node, 2);
    } else if (op == "Gemm") {
      use(*node, 2);
    } else if (op == "Add") {
      use(*node, 0);
      use(*node, 1);
    }
  }
  if (merged.empty())
    return;
  InFlightDiagnostic warning = emitWarning(location);
  warning << "initializer '" << merged.front() << "' is the scale or bias of " << uses[merged.front()]
          << " operations";
  if (merged.size() > 1)
    warning << ", and " << merged.size() - 1 << " others are shared too";
  warning << ": exporters merge equal fresh weights, which are then trained as one; -untie='"
          << merged.front() << "' separates them, so does exporting with optimize=False";
}

static void warnOfDoubts(ArrayRef<ImportReport::Initializer> report, Location location) {
  static constexpr size_t kNamed = 5;
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto list = [&](bool trained, StringRef what, StringRef option) {
    std::vector<const ImportReport::Initializer *> found;
    for (const ImportReport::Initializer &one : report)
      if (one.inDoubt && one.use != ImportReport::Unused && (one.use == ImportReport::Trained) == trained)
        found.push_back(&one);
    if (found.empty())
      return;
    stream << (text.empty() ? "" : "; ") << what << " ";
    for (size_t i = 0; i < std::min(found.size(), kNamed); ++i)
      stream << (i ? ", " : "") << "'" << found[i]->name << "' (" << found[i]->why << ")";
    if (found.size() > kNamed)
      stream << " and " << found.size() - kNamed << " more";
    stream << ", unless " << option;
  };
  list(true, "trained are", "-freeze=NAME");
  list(false, "left as they are", "-train=NAME");
  if (!text.empty())
    emitWarning(location) << "nothing says whether some initializers are parameters: " << text;
}

void Initializers::finish() {
  std::vector<ImportReport::Initializer> rows = report();
  if (options.returns == Returns::Loss)
    warnOfDoubts(rows, module.getLoc());
  configurations.warnOfOthers(
      [&](StringRef name) {
        auto found = made.find(file.findInitializer(name));
        return found != made.end() && !found->second.empty();
      },
      module.getLoc());
  if (options.report)
    options.report->initializers = std::move(rows);
}

} // namespace dsopt::onnx_import

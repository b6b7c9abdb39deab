//===- ParameterRules.cpp - which initializers are trained -----------------===//

#include "ParameterRules.h"

#include "NodeBuilder.h"
#include "OpTable.h"
#include "Scopes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// torch.export's mark of what an initializer was, and what its optimizer made one from.
static constexpr StringLiteral kKindKey = "pkg.torch.export.graph_signature.InputSpec.kind";
static constexpr StringLiteral kFoldedKey = "pkg.onnxscript.optimizer.folded_from";
/// What its graph has of the exported program: a line "p_0_weight: PARAMETER target='0.weight'" for each.
static constexpr StringLiteral kSignatureKey = "pkg.torch.export.ExportedProgram.graph_signature";

/// Of a kind that an exporter gave: nothing where it is unknown.
static std::optional<ParameterRule> ruleOfKind(StringRef kind) {
  if (kind.equals_insensitive("parameter"))
    return ParameterRule{Role::Trained, "parameter"};
  if (kind.equals_insensitive("buffer"))
    return ParameterRule{Role::Buffer, "buffer"};
  if (kind.equals_insensitive("constant_tensor"))
    return ParameterRule{Role::Constant, "constant tensor"};
  return std::nullopt;
}

void ParameterRules::readMap() {
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(file.property(kParametersKey));
  if (!parsed)
    return llvm::consumeError(parsed.takeError());
  const llvm::json::Array *rows = parsed->getAsArray();
  if (!rows)
    return;
  for (const llvm::json::Value &value : *rows) {
    const llvm::json::Object *row = value.getAsObject();
    auto name = row ? row->getString("onnx") : std::nullopt;
    auto kind = row ? row->getString("kind") : std::nullopt;
    auto rule = kind ? ruleOfKind(*kind) : std::nullopt;
    if (name && row->getBoolean("transposed").value_or(false))
      transposed.insert(*name);
    if (!name || !rule)
      continue;
    hasRoles = true;
    if (rule->role == Role::Trained && !row->getBoolean("trainable").value_or(true))
      rule = ParameterRule{Role::Frozen, "requires_grad is False"};
    roles[*name] = *rule;
  }
}

void ParameterRules::readMarks() {
  for (const onnx::ValueInfoProto &info : file.graph().value_info()) {
    if (StringRef kind = metadataOf(info, kKindKey); !kind.empty()) {
      marks[info.name()] = kind.str();
      hasMarks |= kind == "PARAMETER" && file.findInitializer(info.name()) >= 0;
    }
    if (StringRef folded = metadataOf(info, kFoldedKey); !folded.empty())
      foldedFrom[info.name()] = folded.str();
  }
}

/// The signature tells of names whose values the exporter changed, which have no mark any more.
void ParameterRules::readSignature() {
  SmallVector<StringRef> lines;
  metadataOf(file.graph(), kSignatureKey).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    StringRef kind = line.split(": ").second.split(' ').first;
    StringRef target = line.split(" target='").second.split('\'').first;
    if (target.empty() || !ruleOfKind(kind))
      continue;
    marks.try_emplace(target, kind.str());
    hasMarks = true;
  }
}

void ParameterRules::readUses() {
  // Where an exporter has merged equal initializers it writes an Identity for the others.
  llvm::StringMap<StringRef> copies;
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1)
      copies[node.output(0)] = node.input(0);
  });
  // What is invalid may be a cycle; what lies on the way is shortened, so that long ones cost no more.
  auto original = [&](StringRef name) {
    SmallVector<StringRef> passed;
    for (auto found = copies.find(name);
         found != copies.end() && found->second != name && passed.size() < copies.size();
         found = copies.find(name)) {
      passed.push_back(name);
      name = found->second;
    }
    for (StringRef copy : passed)
      copies[copy] = name;
    return name;
  };
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    StringRef op = node.op_type();
    // The first input is what the operator returns; then the buffers, and then what they become.
    if (node.domain() == kDsoptDomain && op == "UpdateBuffers")
      for (int i = 1; i <= node.input_size() / 2; ++i) {
        statistics.insert(original(node.input(i)));
        folded.insert(original(node.input(i)));
      }
    for (int i = 0; i < node.input_size(); ++i) {
      StringRef name = original(node.input(i));
      if (op == "BatchNormalization" && (i == 3 || i == 4)) {
        statistics.insert(name);
        if (NodeBuilder::normalizesByBatch(node, file.opset(), options.batchNorm))
          folded.insert(name);
      } else if (op == "Resize" && (i == 1 || i == 2)) {
        sizes.insert(name);
      } else if ((op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss") && i == 2) {
        classWeights.insert(name);
      }
    }
  });
}

/// Every glob of -train must name something that can be trained.
LogicalResult ParameterRules::checkTrained() const {
  for (const std::string &glob : options.train) {
    const onnx::TensorProto *other = nullptr;
    bool trains = false;
    for (const onnx::TensorProto &tensor : file.graph().initializer()) {
      if (!matches(glob, tensor.name()))
        continue;
      Type element = elementType(tensor.data_type(), "initializer '" + tensor.name() + "'", location);
      if (!element)
        return failure();
      if (isa<FloatType>(element) && !file.isBound(tensor.name()))
        trains = true;
      else
        other = &tensor;
    }
    if (!trains && file.isBound(other->name()))
      return emitError(location) << "-train=" << glob << " names '" << other->name()
                                 << "', which -input binds to a value";
    if (!trains)
      return emitError(location) << "-train=" << glob << " names initializer '" << other->name()
                                 << "' of type "
                                 << onnx::TensorProto::DataType_Name(
                                        (onnx::TensorProto::DataType)other->data_type())
                                 << ", expected one of floating point";
  }
  return success();
}

LogicalResult ParameterRules::read() {
  readMap();
  readMarks();
  readSignature();
  readUses();
  SmallVector<StringRef> results;
  llvm::SplitString(options.loss, results, ":,");
  uses = std::make_unique<InitializerUses>(file, results, location);
  if (failed(checkGlobs(file, "freeze", options.freeze, location)) ||
      failed(checkGlobs(file, "train", options.train, location)))
    return failure();
  return checkTrained();
}

std::optional<ParameterRule> ParameterRules::saidByFile(StringRef name) const {
  if (hasRoles) {
    auto role = roles.find(name);
    return role == roles.end() ? ParameterRule{Role::Constant, "constant"} : role->second;
  }
  auto mark = marks.find(name);
  return mark == marks.end() ? std::nullopt : ruleOfKind(mark->second);
}

std::optional<ParameterRule> ParameterRules::saidOfSources(StringRef name) const {
  static const llvm::Regex madeUp("^val_[0-9]+$");
  auto from = foldedFrom.find(name);
  // Where nothing is marked, the sources' names say nothing either.
  if (from == foldedFrom.end() || !(hasRoles || hasMarks))
    return std::nullopt;
  SmallVector<StringRef> sources;
  StringRef(from->second).trim("[]").split(sources, ',', -1, /*KeepEmpty=*/false);
  std::optional<ParameterRule> rule;
  for (StringRef source : sources) {
    source = source.trim(" '\"");
    if (auto said = saidByFile(source); said && (!rule || said->role == Role::Trained))
      rule = said;
    else if (!said && !rule && !madeUp.match(source))
      rule = ParameterRule{Role::Trained, "takes part in a gradient"};
  }
  return rule;
}

ParameterRule ParameterRules::decide(const onnx::TensorProto &tensor, Type element) const {
  if (file.isBound(tensor.name()))
    return {Role::Constant, "bound by -input"};
  bool isFloat = isa<FloatType>(element), isLifted = file.isLifted(file.findInitializer(tensor.name()));
  // Where the model is only computed, what is a constant in the file stays one.
  bool isFrozen = matches(options.freeze, tensor.name()) || (isLifted && options.returns == Returns::Outputs);
  if (isFloat && matches(options.train, tensor.name()) && !isFrozen)
    return {Role::Trained, "-train"};
  auto known = decided.find(tensor.name());
  if (known == decided.end())
    known = decided.try_emplace(tensor.name(), decideAlone(tensor, element)).first;
  ParameterRule rule = known->second;
  // What would not be trained anyway stays what it is, and so does what is a constant in the file: these may
  // have to be known.
  if (isFloat && rule.role == Role::Trained && isFrozen)
    return {isLifted ? Role::Constant : Role::Frozen, "-freeze"};
  rule.inDoubt &= !isFrozen;
  return rule;
}

/// Whether an exporter makes up such names for constants.
static bool isExportersName(StringRef name) {
  static const llvm::Regex madeUp("^onnx::|^_?val_[0-9]+$|^_?[0-9]+$|_output_[0-9]+$|const_fold|"
                                  "(^|[/.:_])[cC]onst(ant)?s?([0-9/.:_]|$)|^(fill|assign)_|^p2o\\.|"
                                  "lifted_tensor|^(scalar|initializer|var|tmp|arg)_?[0-9]+$|/[xy]:0$|"
                                  "^ConstantFolding/|^auto\\.cast\\.[0-9]+$");
  return madeUp.match(name);
}

ParameterRule ParameterRules::decideByUse(const onnx::TensorProto &tensor, Type element) const {
  Purpose purpose = uses->purpose(tensor);
  switch (purpose.kind) {
  case Purpose::Weight:
    return {Role::Trained, purpose.why};
  case Purpose::ClosedForm:
    return {Role::Constant, purpose.why, /*inDoubt=*/true};
  case Purpose::Constant:
    return {Role::Constant, purpose.why};
  case Purpose::Plain:
  case Purpose::Number:
  case Purpose::Tensor:
    break;
  }
  // An exporter that marks parameters marks no constants.
  if (hasMarks)
    return {Role::Constant, "constant of the exporter"};
  StringRef original = file.originalName(tensor.name());
  if (isExportersName(original))
    return {Role::Constant, "an exporter's name for a constant", /*inDoubt=*/true};
  if (purpose.kind == Purpose::Number && foldedFrom.count(original))
    return {Role::Constant, purpose.why + ", which the exporter has folded", /*inDoubt=*/true};
  // What cannot be trained is no parameter where it may well be a number.
  if (purpose.kind == Purpose::Number)
    return {element.isF64() ? Role::Constant : Role::Trained, purpose.why, /*inDoubt=*/true};
  return {Role::Trained, purpose.why};
}

ParameterRule ParameterRules::decideAlone(const onnx::TensorProto &tensor, Type element) const {
  StringRef name = tensor.name(), original = file.originalName(name);
  std::optional<ParameterRule> said = saidByFile(original);
  if (!isa<FloatType>(element))
    return {said ? said->role : Role::Constant, element.isInteger(1) ? "bool" : "integer"};
  if (statistics.contains(name))
    return {Role::Buffer, "running statistic"};
  if (!said)
    said = saidOfSources(original);
  if (said)
    return *said;
  if (sizes.contains(name))
    return {Role::Constant, "size"};
  if (classWeights.contains(name))
    return {Role::Constant, "class weights"};
  return decideByUse(tensor, element);
}

} // namespace dsopt::onnx_import

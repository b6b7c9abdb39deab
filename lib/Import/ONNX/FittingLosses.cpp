//===- FittingLosses.cpp - which loss fits a model's outputs ---------------===//

#include "FittingLosses.h"

#include "Declarations.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
class Chooser {
public:
  Chooser(const ModelFile &file, const llvm::StringMap<KnownProbabilities> &probabilities)
      : probabilities(probabilities) {
    for (const onnx::ValueInfoProto &input : file.graph().input())
      names.insert(input.name());
    for (const onnx::TensorProto &tensor : file.graph().initializer())
      names.insert(tensor.name());
    for (const onnx::NodeProto &node : file.graph().node())
      for (const std::string &output : node.output()) {
        names.insert(output);
        producers[output] = &node;
      }
  }

  void addFitting(const Inspection::Value &output, std::vector<Inspection::Loss> &classes,
                  std::vector<Inspection::Loss> &numbers) const;

private:
  const onnx::NodeProto *producer(StringRef value) const;
  bool isProduct(StringRef value) const;
  /// A name that the model does not have.
  std::string freeName(StringRef wanted) const {
    std::string name = wanted.str();
    for (int i = 1; names.contains(name); ++i)
      name = wanted.str() + "_" + std::to_string(i);
    return name;
  }

  const llvm::StringMap<KnownProbabilities> &probabilities;
  llvm::StringSet<> names;
  llvm::StringMap<const onnx::NodeProto *> producers;
};
} // namespace

/// What computes a value, perhaps renamed or in another type.
const onnx::NodeProto *Chooser::producer(StringRef value) const {
  const onnx::NodeProto *node = producers.lookup(value);
  // What is invalid may be a cycle.
  for (int steps = 0; node && steps < 8 && node->input_size() > 0; ++steps) {
    if (node->op_type() != "Identity" && node->op_type() != "Cast")
      break;
    node = producers.lookup(node->input(0));
  }
  return node;
}

/// Whether a value is a product, perhaps with a bias.
bool Chooser::isProduct(StringRef value) const {
  const onnx::NodeProto *node = producer(value);
  if (node && node->op_type() == "Add")
    return llvm::any_of(node->input(), [&](const std::string &input) {
      const onnx::NodeProto *term = producer(input);
      return term && (term->op_type() == "MatMul" || term->op_type() == "Gemm");
    });
  return node && (node->op_type() == "MatMul" || node->op_type() == "Gemm");
}

void Chooser::addFitting(const Inspection::Value &output, std::vector<Inspection::Loss> &classes,
                         std::vector<Inspection::Loss> &numbers) const {
  ArrayRef<int64_t> sizes = *output.sizes;
  int64_t rank = sizes.size(), count = sizes.empty() ? 1 : sizes.back();
  Inspection::Value labels{freeName("labels"), "i64", {}, std::vector<int64_t>(sizes), true, count};
  auto known = probabilities.find(output.name);
  if (known != probabilities.end() && known->second.isSigmoid) {
    labels.type = "f32";
    labels.bound = 2;
    classes.push_back({"cross-entropy:" + output.name + "," + labels.name,
                       "'" + output.name +
                           "' has a probability in each place, and the loss is taken before "
                           "their Sigmoid",
                       labels});
  } else if (known != probabilities.end()) {
    int64_t axis = known->second.axis;
    if (rank >= 2 && (axis == 1 || axis == rank - 1) && sizes[axis] > 1) {
      labels.bound = sizes[axis];
      labels.sizes->erase(labels.sizes->begin() + axis);
      classes.push_back({"cross-entropy:" + output.name + "," + labels.name,
                         "'" + output.name + "' has probabilities of " + std::to_string(labels.bound) +
                             " classes, and the loss is taken before their " +
                             (known->second.isLog ? "LogSoftmax" : "Softmax"),
                         labels});
    }
  } else if (sizes.size() >= 2 && sizes.size() <= 3 && count > 1 && isProduct(output.name)) {
    labels.sizes->pop_back();
    classes.push_back({"cross-entropy:" + output.name + "," + labels.name,
                       "'" + output.name + "' may be scores of " + std::to_string(count) + " classes",
                       labels});
  }
  std::string target = freeName("target");
  numbers.push_back({"mse:" + output.name + "," + target,
                     "'" + output.name + "' may be numbers to come close to",
                     {target, output.type, {}, std::vector<int64_t>(sizes), true, 0}});
}

std::vector<Inspection::Loss> fittingLosses(const ModelFile &file, ArrayRef<Inspection::Value> outputs,
                                            const llvm::StringMap<KnownProbabilities> &probabilities) {
  std::vector<Inspection::Loss> classes, numbers;
  Chooser chooser(file, probabilities);
  std::string own;
  int scalars = 0;
  for (const onnx::ValueInfoProto &output : file.graph().output())
    if (isScalarFloat(output) && output.name() != "loss") {
      own = output.name();
      ++scalars;
    }
  // What is computed counts, whatever is declared.
  auto isLoss = [](StringRef name) {
    return [name](const Inspection::Value &output) {
      return output.name == name &&
             (!output.sizes || llvm::all_of(*output.sizes, [](int64_t size) { return size == 1; }));
    };
  };
  if (llvm::any_of(outputs, isLoss("loss")))
    own = "loss";
  else if (scalars != 1 || llvm::none_of(outputs, isLoss(own)))
    own.clear();
  if (!own.empty())
    return {{"", "'" + own + "' is the model's own", {}}};
  for (const Inspection::Value &output : outputs)
    if (output.sizes && llvm::is_contained({"f32", "f16", "bf16", "f64"}, output.type))
      chooser.addFitting(output, classes, numbers);
  classes.insert(classes.end(), numbers.begin(), numbers.end());
  return classes;
}

} // namespace dsopt::onnx_import

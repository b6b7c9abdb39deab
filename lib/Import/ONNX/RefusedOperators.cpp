//===- RefusedOperators.cpp - the way out of an operator there is not ------===//

#include "RefusedOperators.h"

using llvm::StringRef;

namespace dsopt::onnx_import {

static constexpr RefusedFamily kQuantized{"quantized",
                                          "use the float model that this one was quantized from"},
    kZipMap{"ai.onnx.ml", "it makes maps of probabilities, which are no tensors: convert with "
                          "options={id(model): {'zipmap': False}} (skl2onnx) or zipmap=False (onnxmltools)"},
    kMachineLearning{"ai.onnx.ml",
                     "it is no part of a network and has no gradient: use the part of the model "
                     "before it (-outputs=GLOB, or cut with onnx.utils.extract_model)"},
    kFeatures{"ai.onnx.ml",
              "features are prepared before a network: begin the model behind it, with prepared numbers as "
              "inputs (onnx.utils.extract_model cuts), or end it before it (-outputs=GLOB)"},
    kBoxes{"data-decided shape",
           "data decide how many results it has: export the network without what chooses "
           "among its boxes (nms=False in Ultralytics' export, --outputs of tf2onnx, a "
           "module that returns boxes and scores in PyTorch)"},
    kChosen{"data-decided shape",
            "data decide how many results it has: export a model that masks what it does "
            "not choose, torch.where(mask, x, 0) for x[mask]"},
    kText{"text", "text is prepared before a network: begin the model behind it, with numbers as inputs "
                  "(onnx.utils.extract_model cuts)"},
    kTraining{"training", "the file has a backward pass of its own: use the model that it was made from, of "
                          "which dsopt makes one"},
    kAten{"ATen",
          "the exporter knew no operator of ONNX for it: export without its fallback "
          "(operator_export_type=torch.onnx.OperatorExportTypes.ONNX), with dynamo=True or dsopt.export"},
    kFused{"onnxruntime", "onnxruntime's optimizer wrote it: use the file before it (the exporter's own, "
                          "Optimum's without --optimize, graph_optimization_level=ORT_DISABLE_ALL)"},
    kOther{"other", "docs/Operators.md has those that are; a function in the model that is made of them "
                    "(onnx.helper.make_function) is inlined"};

/// Parts of names by which onnxruntime calls what computes with integers in the place of floats.
static bool isQuantized(StringRef op) {
  for (StringRef part : {"QLinear", "Quantize", "quantize", "QGemm", "QAttention", "QMoE", "QOrdered",
                         "QEmbed", "NBits", "Bnb4", "FpQ4"})
    if (op.contains(part))
      return true;
  return op.contains("Integer") && (op.starts_with("MatMul") || op.starts_with("Conv"));
}

/// Of ai.onnx.ml: what turns columns of a table into numbers.
static bool preparesFeatures(StringRef op) {
  return llvm::is_contained({"ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper",
                             "DictVectorizer", "FeatureVectorizer", "Imputer", "LabelEncoder", "Normalizer",
                             "OneHotEncoder", "Scaler"},
                            op);
}

const RefusedFamily &familyOf(StringRef domain, StringRef op) {
  if (domain == "ai.onnx.ml")
    return op == "ZipMap" ? kZipMap : preparesFeatures(op) ? kFeatures : kMachineLearning;
  if (domain == "ai.onnx.contrib" || op == "Tokenizer")
    return kText;
  if (domain.contains("training") || (domain.contains("microsoft") && op.ends_with("Grad")))
    return kTraining;
  if (domain.contains("aten") || op == "ATen")
    return kAten;
  bool isRuntimes = domain.starts_with("com.microsoft") || domain.starts_with("com.ms.");
  if ((isOnnx(domain) || isRuntimes) && isQuantized(op))
    return kQuantized;
  if (isRuntimes)
    return kFused;
  if (!isOnnx(domain))
    return kOther;
  if (op.starts_with("String") || op.starts_with("Regex") || op == "TfIdfVectorizer")
    return kText;
  return op == "NonMaxSuppression" ? kBoxes : op == "Unique" ? kChosen : kOther;
}

StringRef remedyForChoice() { return kChosen.remedy; }

StringRef remedyForText() { return kText.remedy; }

StringRef familyOfChoice(StringRef op) {
  return op == "NonZero" || op == "Compress" ? kChosen.name : kOther.name;
}

} // namespace dsopt::onnx_import

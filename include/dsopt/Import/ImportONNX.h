//===- ImportONNX.h - an ONNX model as a module of graph operations -*- C++ -*-===//
//
// Stage 1: reads a model and emits `@forward`, one `graph.parameter` for each
// weight that the loss needs, and nothing else. Weights are named, not read:
// a parameter says in which file its bytes are.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_IMPORT_IMPORTONNX_H
#define DSOPT_IMPORT_IMPORTONNX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace llvm::json {
class OStream;
} // namespace llvm::json

namespace dsopt {

/// Why weights of f64 stay as they are where nothing is trained; training refuses them.
inline constexpr llvm::StringLiteral kOfDouble = "of f64, which is not trained";

/// What the importer does about files of weights.
enum class WeightFiles {
  Ignore,    ///< opens none; parameters are unverified
  IfPresent, ///< hashes those that exist
  Required,  ///< an absent one is an error
};

/// How batch normalizations behave (`-batchnorm`).
enum class BatchNorm {
  Model,  ///< as each node says
  Train,  ///< with each micro-batch's statistics, which are folded into the running ones
  Frozen, ///< with the running statistics, which stay as they are
};

/// What `@forward` returns.
enum class Returns {
  Loss,
  Outputs,     ///< the model's, as ONNX defines them
  Predictions, ///< those of `ImportOptions::predicted`, which a run is to write (`-predict`)
};

/// What became of a model's nodes.
struct ImportReport {
  struct Operator {
    /// Nodes of the type, and those whose results were computed while importing.
    int64_t nodes = 0, folded = 0;
  };
  enum Use { Trained, Frozen, Constant, Unused };
  /// An initializer of floats, or one of another type that is a weight.
  struct Initializer {
    std::string name;
    mlir::RankedTensorType type;
    Use use;
    /// The rule that decided.
    std::string why;
    /// Whether it may well be otherwise.
    bool inDoubt = false;
  };
  /// In the file's order.
  std::vector<Initializer> initializers;
  /// The nodes that the loss needs, by operator.
  std::map<std::string, Operator> operators;
  /// Nodes of the graph, functions' bodies in the place of their calls.
  int64_t nodes = 0;
  /// How many times each of the model's functions was inlined.
  std::map<std::string, int64_t> functions;
};

struct ImportOptions {
  std::string path;
  /// Values of symbolic dimensions (`-dim=NAME=VALUE`).
  std::map<std::string, int64_t> dims;
  /// Those of them that data may be shorter in: micro-batches are filled up.
  std::set<std::string> paddedDims;
  /// Values of inputs, which are constants then (`-input=NAME=VALUE`).
  std::vector<std::pair<std::string, std::string>> inputs;
  /// Shapes of the data's arrays, by input; they bind symbolic dimensions. Of an
  /// array with more axes than the input the last ones are a micro-batch; an
  /// array of the input's rank is a list of rows.
  std::map<std::string, std::vector<int64_t>> inputShapes;
  /// The data's arrays of floating point.
  std::set<std::string> floatInputs;
  /// Binds the first dimension of inputs where it is symbolic; 0: not given.
  int64_t microBatchSize = 0;
  /// Of a program that generates: a sequence's positions, where the model leaves open how many there are, and
  /// how many sequences. Inputs that follow from positions are bound to what they are then. 0: none is made.
  int64_t positions = 0;
  Returns returns = Returns::Loss;
  /// Globs of outputs that are predicted; empty: all.
  std::vector<std::string> predicted;
  /// Empty, an output's name, "cross-entropy:LOGITS,LABELS" or "mse:OUT,TARGET".
  std::string loss;
  /// Globs of outputs of one element that are metrics (`-log-outputs`), and names of values that metrics
  /// compare (`-metric=NAME:OUTPUT,LABELS`).
  std::vector<std::string> logOutputs, compared;
  /// Globs of initializers.
  std::vector<std::string> freeze, train, untie;
  /// Embeddings (globs) and the row whose look-ups have no gradient: PyTorch's
  /// padding_idx, which exporters drop.
  std::vector<std::pair<std::string, int64_t>> paddingIndex;
  /// Whether to leave dropout out (`-dropout=off`).
  bool dropoutOff = false;
  BatchNorm batchNorm = BatchNorm::Model;
  /// That the program is compiled for, of which a model's device configurations are; 0: not known yet.
  int64_t tensorShards = 0;
  /// Whether that is a choice, which exporters' habits are no reason to doubt.
  bool batchNormIsSaid = false;
  /// Whether all nodes are looked at, though some are refused: each of those gives an error.
  bool triesAll = false;
  /// Where external data lies; empty: beside the model.
  std::string weightsFolder;
  /// Where weights that are not plain bytes in a file of the model are written.
  std::string spillFolder = ".";
  WeightFiles weights = WeightFiles::Required;
  /// Filled, if there is one.
  ImportReport *report = nullptr;
};

/// Imports a model. Emits one error and fails where that is impossible. The
/// context must have loaded the graph and func dialects.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importONNX(mlir::MLIRContext &context,
                                                              const ImportOptions &options);

/// Prints the operators of ONNX that can be imported, one a line: name, first and last opset.
void listOperators(llvm::raw_ostream &os);

/// Prints what became of each initializer: name, type, bytes, its use and the rule that decided, as a table
/// or as JSON.
void listParameters(llvm::ArrayRef<ImportReport::Initializer> initializers, bool json, llvm::raw_ostream &os);
/// The array of the same as JSON, as a value of what is being written.
void writeParameters(llvm::ArrayRef<ImportReport::Initializer> initializers, llvm::json::OStream &json);
/// "trained", "frozen", "constant" or "unused".
llvm::StringRef nameOf(ImportReport::Use use);
/// The rows of a module that was imported already: its parameters.
std::vector<ImportReport::Initializer> parametersOf(mlir::ModuleOp module);
/// One line that counts what is trained, and what is not and why; empty where all is, but for numbers.
std::string summarizeParameters(llvm::ArrayRef<ImportReport::Initializer> initializers);

/// What the model's metadata say under a key; empty where they say nothing. Emits an error and fails where
/// `path` is no model.
llvm::FailureOr<std::string> readModelProperty(llvm::StringRef path, llvm::StringRef key,
                                               mlir::MLIRContext &context);

/// The model at `path`, serialized without the initializers that are parameters
/// of `module`; other external initializers are inlined. A serialized ModelProto
/// whose graph holds just those initializers, appended to it, gives a whole
/// model (messages that follow one another are merged).
llvm::FailureOr<std::string> modelWithoutParameters(llvm::StringRef path, mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_IMPORT_IMPORTONNX_H

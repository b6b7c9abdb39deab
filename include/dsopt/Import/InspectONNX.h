//===- InspectONNX.h - what is in an ONNX model -------------------*- C++ -*-===//
//
// What the owner of a file asks first: what it wants, what it gives, what would train, which loss fits, and
// what stands in the way. Needs no loss and no data, and reads no more weights than the rule of what is
// trained does.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_IMPORT_INSPECTONNX_H
#define DSOPT_IMPORT_INSPECTONNX_H

#include "dsopt/Import/ImportONNX.h"

#include <optional>

namespace dsopt {

struct Inspection {
  int64_t irVersion = 0;
  /// By domain; ONNX's own is "".
  std::map<std::string, int64_t> opsets;
  std::string producer;

  /// An input or an output as the file declares it.
  struct Value {
    std::string name, type;
    /// Sizes and symbols; nothing where the file does not say the rank.
    std::optional<std::vector<std::string>> shape;
    /// Of a micro-batch, once all sizes are known or tried.
    std::optional<std::vector<int64_t>> sizes;
    /// Of an input: whether an output needs it, and below what its integers have to be (0: any).
    bool isUsed = true;
    int64_t bound = 0;
    /// Whether the options give its value (`-input`): then it is no input any more.
    bool isGiven = false;
  };
  std::vector<Value> inputs, outputs;
  /// Values that symbols were tried with; those that the options do not give, too.
  std::map<std::string, int64_t> tried;
  /// Whether the first dimensions of all inputs are one number of rows, which is a symbol or fixed.
  bool hasRows = true;
  /// Whether every node was looked at, so that what is refused is known.
  bool isTried = false;

  struct Operator {
    int64_t nodes = 0;
    bool isAvailable = true;
  };
  /// As the file names them, subgraphs' and functions' too.
  std::map<std::string, Operator> operators;
  int64_t nodes = 0;
  std::map<std::string, int64_t> functions;

  std::vector<ImportReport::Initializer> initializers;

  /// A file of external data.
  struct Weights {
    std::string file;
    int64_t initializers = 0, bytes = 0;
    bool isThere = true;
  };
  std::vector<Weights> weights;

  /// A loss that fits: what -loss takes, and the input that it adds (of the model's own loss: none).
  struct Loss {
    std::string option, why;
    Value target;
  };
  std::vector<Loss> losses;

  /// What is refused, or was when the sizes were tried.
  struct Refusal {
    std::string what, family, message;
    int64_t nodes = 0;
  };
  std::vector<Refusal> refusals;
  /// Outputs that need nothing of that, where others do.
  std::vector<std::string> remaining;
  /// What the import warns of.
  std::vector<std::string> notes;
};

/// Looks into a model. Emits an error and fails where the file cannot be read, or is damaged.
llvm::FailureOr<Inspection> inspectONNX(mlir::MLIRContext &context, const ImportOptions &options);

} // namespace dsopt

#endif // DSOPT_IMPORT_INSPECTONNX_H

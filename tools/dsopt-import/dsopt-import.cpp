//===- dsopt-import.cpp - the importer alone, for its tests ----------------===//
//
// Prints the imported module, its parameters or the model without them; or
// computes the loss by folding, which checks the importer and the folders
// against other implementations of ONNX.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "dsopt/Interfaces/OneLine.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> model(cl::Positional, cl::desc("MODEL.onnx"));
static cl::opt<bool> listsOperators("list-operators",
                                    cl::desc("print what can be imported, without a model"));
static cl::list<std::string> dims("dim", cl::desc("NAME=VALUE"));
static cl::list<std::string> bound("bind", cl::desc("NAME=VALUE of an input"));
static cl::list<std::string> shapes("input-shape", cl::desc("INPUT=8,2,32: shape of the data"));
static cl::opt<int64_t> microBatchSize("micro-batch-size");
static cl::opt<std::string> loss("loss");
static cl::list<std::string> freeze("freeze"), train("train"), untie("untie");
static cl::opt<std::string> dropout("dropout"), batchNorm("batchnorm"), weightsFolder("weights");
static cl::opt<bool> list("list-parameters"), noWeights("no-weights"), saveModel("save-onnx");
static cl::list<std::string> inputs("input", cl::desc("NAME=FILE: computes the loss of these raw bytes"));
static cl::opt<bool> evaluates("evaluate", cl::desc("compute the loss"));

/// The bytes of a file as a constant; null with a message.
static DenseElementsAttr readConstant(RankedTensorType type, llvm::StringRef path, int64_t offset) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  int64_t bytes = dsopt::graph::numBytes(type);
  if (!buffer || (int64_t)(*buffer)->getBufferSize() < offset + bytes) {
    llvm::errs() << "error: cannot read " << bytes << " bytes of " << path << "\n";
    return {};
  }
  llvm::StringRef data = (*buffer)->getBuffer().substr(offset, bytes);
  if (!type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(data.data(), data.size()));
  SmallVector<bool> values(data.begin(), data.end());
  return DenseElementsAttr::get(type, values);
}

/// Replaces inputs and parameters by constants and folds.
static LogicalResult evaluate(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>(dsopt::graph::kForwardFunction);
  OpBuilder builder(forward.getBody());
  auto replace = [&](Value value, llvm::StringRef path, int64_t offset) {
    DenseElementsAttr constant = readConstant(cast<RankedTensorType>(value.getType()), path, offset);
    if (constant)
      value.replaceAllUsesWith(dsopt::graph::ConstantOp::create(builder, value.getLoc(), constant));
    return constant != nullptr;
  };
  for (BlockArgument argument : forward.getArguments()) {
    auto name = forward.getArgAttrOfType<StringAttr>(argument.getArgNumber(), dsopt::graph::kNameAttr);
    for (llvm::StringRef input : inputs)
      if (input.rsplit('=').first == name.getValue() && !replace(argument, input.rsplit('=').second, 0))
        return failure();
  }
  SmallString<128> folder(module->getAttrOfType<StringAttr>(dsopt::graph::kModelFolderAttr).getValue());
  for (Operation &op : llvm::make_early_inc_range(forward.getBody().front())) {
    builder.setInsertionPoint(&op);
    if (auto read = dyn_cast<dsopt::graph::ReadOp>(op)) {
      auto parameter = module.lookupSymbol<dsopt::graph::ParameterOp>(read.getState());
      SmallString<128> path(folder);
      if (llvm::sys::path::is_absolute(parameter.getFile()))
        path = parameter.getFile();
      else
        llvm::sys::path::append(path, parameter.getFile());
      if (parameter.getSource()) {
        llvm::errs() << "error: parameter '" << parameter.getModelName() << "' is converted at run time\n";
        return failure();
      }
      if (!replace(read.getResult(), path, parameter.getOffset()))
        return failure();
      continue;
    }
    SmallVector<Value> results;
    if (succeeded(builder.tryFold(&op, results)) && !results.empty()) {
      op.replaceAllUsesWith(results);
      op.erase();
    }
  }
  auto loss =
      forward.getBody().front().getTerminator()->getOperand(0).getDefiningOp<dsopt::graph::ConstantOp>();
  auto value = loss ? dyn_cast<DenseElementsAttr>(loss.getValue()) : DenseElementsAttr();
  if (!value) {
    llvm::errs() << "error: the loss does not fold\n";
    return failure();
  }
  llvm::outs() << llvm::format("%.9g\n", value.getSplatValue<float>());
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv);
  if (listsOperators) {
    dsopt::listOperators(llvm::outs());
    return 0;
  }
  dsopt::ImportOptions options;
  options.path = model;
  auto parse = [](llvm::StringRef text) {
    int64_t value = -1;
    text.getAsInteger(10, value);
    return value;
  };
  for (llvm::StringRef dim : dims)
    options.dims[dim.rsplit('=').first.str()] = parse(dim.rsplit('=').second);
  for (llvm::StringRef value : bound)
    options.inputs.emplace_back(value.rsplit('=').first.str(), value.rsplit('=').second.str());
  for (llvm::StringRef shape : shapes) {
    llvm::SmallVector<llvm::StringRef> sizes;
    shape.rsplit('=').second.split(sizes, ',', -1, /*KeepEmpty=*/false);
    std::vector<int64_t> &values = options.inputShapes[shape.rsplit('=').first.str()];
    for (llvm::StringRef size : sizes)
      values.push_back(parse(size));
  }
  options.microBatchSize = microBatchSize;
  options.loss = loss;
  options.freeze = freeze;
  options.train = train;
  options.untie = untie;
  options.dropoutOff = dropout == "off";
  if (!batchNorm.empty())
    options.batchNorm = batchNorm == "train" ? dsopt::BatchNorm::Train : dsopt::BatchNorm::Frozen;
  options.weightsFolder = weightsFolder;
  if (noWeights)
    options.weights = dsopt::WeightFiles::Ignore;

  MLIRContext context;
  context.loadDialect<dsopt::graph::GraphDialect, func::FuncDialect>();
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    llvm::errs() << (diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error: " : "warning: ")
                 << dsopt::oneLine(diagnostic.str()) << "\n";
  });
  dsopt::ImportReport report;
  options.report = &report;
  auto module = dsopt::importONNX(context, options);
  if (failed(module))
    return 1;
  if (evaluates)
    return failed(evaluate(**module));
  if (saveModel) {
    auto text = dsopt::modelWithoutParameters(model, **module);
    if (failed(text))
      return 1;
    llvm::outs() << *text;
  } else if (list) {
    dsopt::listParameters(report.initializers, /*json=*/false, llvm::outs());
  } else {
    (*module)->print(llvm::outs());
  }
  return 0;
}

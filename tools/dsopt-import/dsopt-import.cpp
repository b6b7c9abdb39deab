//===- dsopt-import.cpp - the importer alone, for its tests ----------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("MODEL.onnx"));
static cl::list<std::string> dims("dim", cl::desc("NAME=VALUE"));
static cl::list<std::string> shapes("input-shape", cl::desc("INPUT=2,32: shape of a micro-batch"));
static cl::opt<int64_t> microBatchSize("micro-batch-size");
static cl::opt<std::string> loss("loss");
static cl::list<std::string> freeze("freeze"), train("train"), untie("untie");
static cl::opt<std::string> dropout("dropout"), weightsFolder("weights");
static cl::opt<bool> list("list-parameters"), noWeights("no-weights"), saveModel("save-onnx");

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv);
  dsopt::ImportOptions options;
  options.path = model;
  auto parse = [](llvm::StringRef text) {
    int64_t value = -1;
    text.getAsInteger(10, value);
    return value;
  };
  for (llvm::StringRef dim : dims)
    options.dims[dim.rsplit('=').first.str()] = parse(dim.rsplit('=').second);
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
  options.weightsFolder = weightsFolder;
  if (noWeights)
    options.weights = dsopt::WeightFiles::Ignore;

  MLIRContext context;
  context.loadDialect<dsopt::graph::GraphDialect, func::FuncDialect>();
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    llvm::errs() << (diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error: " : "warning: ")
                 << diagnostic.str() << "\n";
  });
  auto module = dsopt::importONNX(context, options);
  if (failed(module))
    return 1;
  if (saveModel) {
    auto text = dsopt::modelWithoutParameters(model, **module);
    if (failed(text))
      return 1;
    llvm::outs() << *text;
  } else if (list) {
    dsopt::listParameters(**module, llvm::outs());
  } else {
    (*module)->print(llvm::outs());
  }
  return 0;
}

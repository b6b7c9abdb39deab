//===- dsopt-forward.cpp - models' outputs, for comparison with others ----===//
//
// For each folder named on standard input: imports FOLDER/model.onnx, compiles it, runs it
// on FOLDER/INPUT.in (raw bytes) with 1 and 3 threads and writes FOLDER/0.out, 1.out and so
// on. Prints a line for each: the folder, "ok" and the outputs' types, or "error" and why.
// With --gradients it compares gradients with finite differences instead; behind "ok" are
// the numbers of elements that were compared and that have no derivative.
//
//===----------------------------------------------------------------------===//

#include "CheckGradients.h"
#include "CompiledForward.h"

#include "Kernels/CPU/Runtime.h"
#include "dsopt/Import/ImportONNX.h"
#include "dsopt/Pipeline/RegisterAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <iostream>

using namespace mlir;

/// Every FOLDER/NAME.in, by name.
static std::map<std::string, std::vector<char>> readInputs(llvm::StringRef folder) {
  std::map<std::string, std::vector<char>> inputs;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(file->path());
    if (!name.consume_back(".in"))
      continue;
    if (auto buffer = llvm::MemoryBuffer::getFile(file->path(), false, false))
      inputs[name.str()].assign((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
  }
  return inputs;
}

/// Runs one model; the line about it.
static std::string runFolder(const std::string &folder, const DialectRegistry &registry, bool gradients) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty())
      message = diagnostic.str();
    return success();
  });
  dsopt::ImportOptions options;
  options.path = folder + "/model.onnx";
  options.spillFolder = folder;
  options.returns = Returns::Outputs;
  auto module = dsopt::importONNX(context, options);
  if (failed(module))
    return "error " + message;
  if (gradients) {
    auto counts = dsopt::checkGradients(**module, readInputs(folder));
    if (failed(counts))
      return "error " + message;
    return "ok " + std::to_string(counts->compared) + " " + std::to_string(counts->kinks);
  }
  auto results = dsopt::runForward(**module, readInputs(folder), {1, 3});
  if (failed(results))
    return "error " + message;
  std::string line = "ok";
  llvm::raw_string_ostream stream(line);
  for (auto [index, tensor] : llvm::enumerate(*results)) {
    std::error_code error;
    llvm::raw_fd_ostream file(folder + "/" + std::to_string(index) + ".out", error);
    if (error)
      return "error cannot write to " + folder + ": " + error.message();
    file.write(tensor.bytes.data(), tensor.bytes.size());
    stream << " " << tensor.type;
  }
  return line;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  bool gradients = argc > 1 && llvm::StringRef(argv[1]) == "--gradients";
  DialectRegistry registry;
  dsopt::registerAllDialects(registry);
  dsopt::registerAllPasses();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto target = dsopt::resolveTarget(UnknownLoc::get(&context), "native", /*threads=*/1);
  if (failed(target))
    return 1;
  dsopt::runtime::limitLibraries(dsopt::statedFeatures(*target));
  for (std::string folder; std::getline(std::cin, folder);)
    std::cout << folder << " " << runFolder(folder, registry, gradients) << std::endl;
  return 0;
}

//===- KernelFigures.cpp - what ptxas says of each kernel -----------------===//

#include "Assemble.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dsopt;

/// The number that a line has before these words; none where it does not have them.
static std::optional<int64_t> numberBefore(StringRef line, StringRef words) {
  size_t at = line.find(words);
  int64_t number = 0;
  if (at == StringRef::npos || line.take_front(at).rtrim().rsplit(' ').second.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

KernelFigures dsopt::readKernelFigures(StringRef said) {
  KernelFigures figures;
  StringRef kernel;
  for (StringRef line : llvm::split(said, '\n')) {
    // ptxas info    : Compiling entry function 'NAME' for 'sm_80'
    if (auto [before, after] = line.split("entry function '"); !after.empty())
      kernel = after.split('\'').first;
    if (kernel.empty())
      continue;
    KernelFigure &figure = figures[kernel];
    figure.spills = numberBefore(line, " bytes spill stores").value_or(figure.spills);
    figure.registers = numberBefore(line, " registers").value_or(figure.registers);
    figure.shared = numberBefore(line, " bytes smem").value_or(figure.shared);
  }
  return figures;
}

FailureOr<KernelFigures> dsopt::assembleKernels(ModuleOp module, StringRef ptx, TargetAttr target,
                                                const ObjectOptions &options, StringRef assembler) {
  Assembled made = assemble(assembler, ptx, target, options);
  if (!made.error.empty())
    return module.emitError("cannot be assembled for ") << target.getArch() << ": " << made.error;
  return readKernelFigures(made.said);
}

FailureOr<std::vector<KernelFigures>> dsopt::assembleKernels(ModuleOp module, const ObjectOptions &options,
                                                             StringRef assembler) {
  FailureOr<TargetAttr> target = getTarget(module);
  FailureOr<std::vector<std::string>> texts = emitPTX(module, options);
  if (failed(target) || failed(texts))
    return failure();
  std::vector<KernelFigures> figures;
  for (auto [one, text] : llvm::zip_equal(splitArchitectures(*target), *texts)) {
    FailureOr<KernelFigures> made = assembleKernels(module, text, one, options, assembler);
    if (failed(made))
      return failure();
    figures.push_back(std::move(*made));
  }
  return figures;
}

//===- GenerateCode.cpp - bitcode to machine code, by LLVM ----------------===//
//
// The sum of this file is in the names of the cache's objects (CMakeLists.txt):
// other passes or flags here make other objects.
//
//===----------------------------------------------------------------------===//

#include "GenerateCode.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"

#include <mutex>

using namespace mlir;
using namespace dsopt;

namespace {
/// Which processor or feature of the target LLVM does not know; it would leave them out. Empty if none.
std::string findUnknown(const llvm::Target &found, const llvm::Triple &triple, TargetAttr target) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(found.createMCSubtargetInfo(triple, "", ""));
  if (!info->isCPUStringValid(target.getArch()))
    return ("unknown processor '" + target.getArch() + "'").str();
  llvm::StringSet<> known;
  for (const llvm::SubtargetFeatureKV &feature : info->getAllProcessorFeatures())
    known.insert(feature.Key);
  for (StringRef feature : target.getFeatures().getAsValueRange<StringAttr>())
    if (!known.contains(feature.drop_front()))
      return ("unknown feature '" + feature.drop_front() + "'").str();
  return "";
}

} // namespace

std::unique_ptr<llvm::TargetMachine> dsopt::createMachine(TargetAttr target, unsigned optLevel,
                                                          std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(target.getTriple());
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (found)
    error = findUnknown(*found, triple, target);
  if (!error.empty())
    return nullptr;
  auto level = llvm::CodeGenOpt::getLevel(optLevel).value_or(llvm::CodeGenOptLevel::Aggressive);
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, target.getArch(), featureText(target), llvm::TargetOptions(),
                                 llvm::Reloc::PIC_, std::nullopt, level));
}

namespace {
void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = optLevel > 1;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                            llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  auto level = levels[std::min(optLevel, 3u)];
  auto passes =
      optLevel ? builder.buildPerModuleDefaultPipeline(level) : builder.buildO0DefaultPipeline(level);
  passes.run(module, modules);
}

std::unique_ptr<llvm::MemoryBuffer> generate(llvm::Module &module, llvm::TargetMachine &machine) {
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  auto type = machine.getTargetTriple().isNVPTX() ? llvm::CodeGenFileType::AssemblyFile
                                                  : llvm::CodeGenFileType::ObjectFile;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return nullptr;
  passes.run(module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes), "dsopt.o",
                                                         /*RequiresNullTerminator=*/false);
}

} // namespace

std::unique_ptr<llvm::MemoryBuffer> dsopt::generateCode(llvm::ArrayRef<char> bitcode,
                                                        llvm::TargetMachine &machine, unsigned optLevel,
                                                        std::string &error) {
  llvm::LLVMContext context;
  // What its passes warn of are loops of ours: nothing that a user could act upon.
  auto keepErrors = [](const llvm::DiagnosticInfo *info, void *kept) {
    if (info->getSeverity() != llvm::DS_Error)
      return;
    llvm::raw_string_ostream os(*static_cast<std::string *>(kept));
    llvm::DiagnosticPrinterRawOStream printer(os);
    info->print(printer);
  };
  context.setDiagnosticHandlerCallBack(keepErrors, &error);
  auto module = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(StringRef(bitcode.data(), bitcode.size()), "dsopt"), context);
  if (!module) {
    error = llvm::toString(module.takeError());
    return nullptr;
  }
  optimize(**module, machine, optLevel);
  auto object = generate(**module, machine);
  if (!object)
    error = "the target writes no object files";
  return error.empty() ? std::move(object) : nullptr;
}

//===- ResolveTarget.cpp - the processor that code is compiled for --------===//

#include "dsopt/Target/Target.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;

/// Features that a program states as required: those that LLVM and
/// __builtin_cpu_supports name alike and that vector code depends on.
static constexpr llvm::StringLiteral kStated[] = {"avx",      "avx2",     "fma",      "bmi",
                                                  "bmi2",     "f16c",     "avx512f",  "avx512bw",
                                                  "avx512dq", "avx512vl", "avx512cd", "avx512bf16"};

llvm::FailureOr<dsopt::ResolvedTarget> dsopt::resolveTarget(Location loc, StringRef arch) {
  ResolvedTarget target;
  target.triple = llvm::sys::getProcessTriple();
  llvm::Triple triple(target.triple);
  llvm::StringSet<> enabled;
  std::vector<std::string> features;
  if (arch == "native") {
    target.cpu = llvm::sys::getHostCPUName().str();
    for (const auto &feature : llvm::sys::getHostCPUFeatures()) {
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
      if (feature.second)
        enabled.insert(feature.first());
    }
    llvm::sort(features);
  } else {
    if (!triple.isX86() || llvm::X86::parseArchX86(arch, /*Only64Bit=*/true) == llvm::X86::CK_None)
      return emitError(loc) << "unknown -arch=" << arch
                            << ", expected native, x86-64-v2, x86-64-v3, x86-64-v4 or "
                            << "a processor as clang's -march names it";
    target.cpu = arch.str();
    // The list leaves out what its members imply.
    llvm::StringMap<bool> implied;
    SmallVector<StringRef> names;
    llvm::X86::getFeaturesForCPU(arch, names);
    for (StringRef name : names) {
      features.push_back("+" + name.str());
      implied[name] = true;
      llvm::X86::updateImpliedFeatures(name, /*Enabled=*/true, implied);
    }
    for (const auto &feature : implied)
      if (feature.second)
        enabled.insert(feature.first());
  }
  target.features = llvm::join(features, ",");
  for (StringRef name : kStated)
    if (triple.isX86() && enabled.contains(name))
      target.required.push_back(name.str());
  target.wideVectors = triple.isX86() && enabled.contains("avx512f");
  target.bf16 = target.wideVectors && enabled.contains("avx512bf16");
  return target;
}

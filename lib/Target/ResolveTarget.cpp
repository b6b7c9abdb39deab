//===- ResolveTarget.cpp - the processor that code is compiled for --------===//

#include "dsopt/Target/Target.h"

#include "mlir/IR/Builders.h"
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
static constexpr llvm::StringLiteral kStated[] = {
    "avx",      "avx2",     "fma",      "bmi",      "bmi2",       "f16c",     "avx512f",
    "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512bf16", "amx-tile", "amx-bf16"};

/// The features of an x86 processor that there are. Lists leave out what their members imply.
static llvm::StringSet<> enabledFeatures(ArrayRef<StringRef> features) {
  llvm::StringMap<bool> implied;
  for (StringRef feature : features)
    if (feature.consume_front("+")) {
      implied[feature] = true;
      llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, implied);
    }
  llvm::StringSet<> enabled;
  for (const auto &feature : implied)
    if (feature.second && !llvm::is_contained(features, ("-" + feature.first()).str()))
      enabled.insert(feature.first());
  return enabled;
}

std::vector<std::string> dsopt::statedFeatures(TargetAttr target) {
  if (!llvm::Triple(target.getTriple()).isX86())
    return {};
  llvm::StringSet<> enabled =
      enabledFeatures(llvm::to_vector(target.getFeatures().getAsValueRange<StringAttr>()));
  std::vector<std::string> stated;
  for (StringRef name : kStated)
    if (enabled.contains(name))
      stated.push_back(name.str());
  return stated;
}

std::string dsopt::featureText(TargetAttr target) {
  return llvm::join(target.getFeatures().getAsValueRange<StringAttr>(), ",");
}

bool dsopt::convertsF16(TargetAttr target) {
  return target.getKind() == TargetKind::CUDA || llvm::is_contained(statedFeatures(target), "f16c");
}

llvm::FailureOr<dsopt::TargetAttr> dsopt::resolveTarget(Location loc, StringRef arch, int64_t threads) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string cpu = arch.str();
  std::vector<std::string> features;
  if (arch == "native") {
    cpu = llvm::sys::getHostCPUName().str();
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(features);
  } else {
    if (!triple.isX86() || llvm::X86::parseArchX86(arch, /*Only64Bit=*/true) == llvm::X86::CK_None)
      return emitError(loc) << "unknown -arch=" << arch
                            << ", expected native, x86-64-v2, x86-64-v3, x86-64-v4 or "
                            << "a processor as clang's -march names it";
    SmallVector<StringRef> names;
    llvm::X86::getFeaturesForCPU(arch, names);
    for (StringRef name : names)
      features.push_back("+" + name.str());
  }
  SmallVector<StringRef> list(features.begin(), features.end());
  llvm::StringSet<> enabled = triple.isX86() ? enabledFeatures(list) : llvm::StringSet<>();
  int64_t vectorBits = enabled.contains("avx512f") ? 512 : enabled.contains("avx") ? 256 : 128;
  auto error = [&] { return emitError(loc); };
  auto target = TargetAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(error), loc.getContext(),
                                       TargetKind::CPU, StringRef(triple.str()), StringRef(cpu), threads,
                                       vectorBits, Builder(loc.getContext()).getStrArrayAttr(list));
  if (!target)
    return failure();
  return target;
}

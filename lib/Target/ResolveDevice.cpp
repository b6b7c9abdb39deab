//===- ResolveDevice.cpp - NVIDIA's architectures, and their host ---------===//

#include "dsopt/Target/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace dsopt;

namespace {
/// An architecture, and the PTX that it needs.
struct Architecture {
  llvm::StringLiteral name, ptx;
};
} // namespace

/// In ascending order.
static constexpr Architecture kArchitectures[] = {{"sm_80", "+ptx80"},
                                                  {"sm_89", "+ptx80"},
                                                  {"sm_90", "+ptx80"},
                                                  {"sm_90a", "+ptx80"},
                                                  {"sm_100a", "+ptx87"}};
static constexpr llvm::StringLiteral kDefault = "sm_90", kTriple = "nvptx64-nvidia-cuda";

/// What all servers with such devices have.
static constexpr llvm::StringLiteral kHost = "x86-64-v3";

FailureOr<TargetAttr> dsopt::resolveDevice(Location loc, StringRef arch, int64_t threads) {
  SmallVector<StringRef> given;
  (arch == "native" ? StringRef(kDefault) : arch).split(given, ',');
  for (StringRef name : given)
    if (!llvm::is_contained(llvm::map_range(kArchitectures, [](const Architecture &one) { return one.name; }),
                            name)) {
      InFlightDiagnostic diag = emitError(loc) << "unknown -arch=" << name << ", expected";
      for (const Architecture &known : kArchitectures)
        diag << (&known == &kArchitectures[0] ? " " : ", ") << known.name;
      return diag << " or several of them, separated by commas";
    }
  std::string list;
  for (const Architecture &known : kArchitectures)
    if (llvm::is_contained(given, known.name))
      list += (list.empty() ? "" : ",") + known.name.str();
  auto error = [&] { return emitError(loc); };
  auto target = TargetAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(error), loc.getContext(),
                                       TargetKind::CUDA, StringRef(kTriple), StringRef(list), threads,
                                       /*vectorBits=*/int64_t(128), ArrayAttr::get(loc.getContext(), {}));
  if (!target)
    return failure();
  return target;
}

FailureOr<TargetAttr> dsopt::resolveTarget(Location loc, TargetKind kind, StringRef arch, int64_t threads) {
  return kind == TargetKind::CUDA ? resolveDevice(loc, arch, threads) : resolveTarget(loc, arch, threads);
}

std::vector<TargetAttr> dsopt::splitArchitectures(TargetAttr target) {
  std::vector<TargetAttr> targets;
  MLIRContext *context = target.getContext();
  for (StringRef name : llvm::split(target.getArch(), ',')) {
    StringRef ptx;
    for (const Architecture &known : kArchitectures)
      if (known.name == name)
        ptx = known.ptx;
    auto features = ptx.empty() ? ArrayAttr::get(context, {}) : Builder(context).getStrArrayAttr({ptx});
    targets.push_back(TargetAttr::get(context, target.getKind(), target.getTriple(), name,
                                      target.getThreads(), target.getVectorBits(), features));
  }
  return targets;
}

FailureOr<TargetAttr> dsopt::getHostTarget(ModuleOp module) {
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target) || target->getKind() == TargetKind::CPU)
    return target;
  bool isX86 = llvm::Triple(llvm::sys::getProcessTriple()).isX86();
  return resolveTarget(module.getLoc(), isX86 ? StringRef(kHost) : StringRef("native"), target->getThreads());
}

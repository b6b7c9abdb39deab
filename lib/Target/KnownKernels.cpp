//===- KnownKernels.cpp - kernels that were compiled before ---------------===//
//
// To lower kernels takes most of a compilation whose objects are all in the cache. What
// they become follows from their text, the passes and the libraries that run these, so
// the cache has a second name for each object, by which it is found before.
//
//===----------------------------------------------------------------------===//

#include "BuildIds.h"
#include "CompileGroups.h"
#include "ObjectCache.h"

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/KernelFunction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace dsopt;

/// The kernels of a module that holds nothing else.
static SmallVector<func::FuncOp> collectKernels(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || !(function->hasAttr(graph::kIterateAttr) || function->hasAttr(exec::kProductAttr)))
      return {};
    kernels.push_back(function);
  }
  return kernels;
}

static std::string print(ArrayRef<func::FuncOp> kernels) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (func::FuncOp kernel : kernels)
    kernel->print(os, OpPrintingFlags().useLocalScope().assumeVerified());
  return text;
}

static void declare(func::FuncOp kernel) {
  OpBuilder builder(kernel);
  LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), kernel.getName(),
                           kernelFunctionType(builder.getContext()));
  kernel.erase();
}

KnownKernels dsopt::findKnownKernels(ModuleOp module, StringRef passes, const ObjectOptions &options) {
  KnownKernels known;
  if (options.cache.empty() || isForDevice(module))
    return known;
  std::string buildIds = collectBuildIds();
  if (buildIds.empty())
    return known;
  ObjectCache cache(options.cache, options.cacheBytes);
  for (auto nested : module.getOps<ModuleOp>()) {
    auto target = nested->getAttrOfType<TargetAttr>(kTargetAttr);
    if (!target)
      continue;
    SmallVector<func::FuncOp> kernels = collectKernels(nested);
    for (size_t from = 0; from < kernels.size(); from += kGroup) {
      ArrayRef group = ArrayRef(kernels).slice(from, std::min(kGroup, kernels.size() - from));
      std::string name = ObjectCache::key(print(group), passes, buildIds, target, options.optLevel);
      auto object = cache.find(name);
      for (func::FuncOp kernel : group) {
        known.groups[kernel.getName()] = name;
        if (object)
          declare(kernel);
      }
      if (object)
        known.objects[name] = std::move(object);
    }
  }
  return known;
}

//===- KernelToNVVM.cpp - kernels of threads to device functions ----------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_KERNELTONVVM
#include "dsopt/Conversion/Passes.h.inc"

namespace {
/// Global memory is where pointers are that say nothing.
unsigned addressSpace(gpu::AddressSpace space) {
  switch (space) {
  case gpu::AddressSpace::Global:
    return 0;
  case gpu::AddressSpace::Workgroup:
    return static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
  case gpu::AddressSpace::Private:
    return 0;
  }
  llvm_unreachable("not an address space");
}

/// PTX has no dots in names.
std::string deviceName(StringRef name) {
  std::string made = name.str();
  std::replace(made.begin(), made.end(), '.', '$');
  return made;
}

struct KernelToNVVM : impl::KernelToNVVMBase<KernelToNVVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    llvm::StringMap<Attribute> kernels; ///< threads of a block, by name
    StringRef threads = gpu::GPUDialect::KnownBlockSizeAttrHelper::getNameStr();
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(graph::kIterateAttr)) {
        kernels[function.getName()] = function->getAttr(threads);
        function.setPublic();
        for (StringRef name : {StringRef(graph::kIterateAttr), StringRef(graph::kRangeAttr),
                               StringRef(graph::kInPlaceAttr), threads})
          function->removeAttr(name);
      }

    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    populateGpuMemorySpaceAttributeConversions(converter, addressSpace);
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(*context);
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addIllegalDialect<gpu::GPUDialect>();
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
      if (function.isExternal()) {
        function.emitError("is called by kernels, but a device has no library to take it from");
        return signalPassFailure();
      }
      if (auto found = kernels.find(function.getName()); found != kernels.end()) {
        function.setName(deviceName(function.getName()));
        function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), UnitAttr::get(context));
        function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), found->second);
      }
    }
  }
};
} // namespace
} // namespace dsopt

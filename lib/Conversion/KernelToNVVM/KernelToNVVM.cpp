//===- KernelToNVVM.cpp - kernels of threads to device functions ----------===//

#include "ThreadLoops.h"

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Target.h"

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

/// What a launch has to know of a kernel.
struct Kernel {
  DenseI32ArrayAttr threads; ///< of a block
  int64_t perBlock;          ///< elements of the range
};

/// Elements of the range that a block does at a time: a row, a warp's columns, one for each thread.
int64_t elementsOfBlock(func::FuncOp function, DenseI32ArrayAttr threads) {
  switch (*graph::getIteration(function)) {
  case graph::Iteration::Rows:
    return 1;
  case graph::Iteration::Columns:
    return kWarp;
  case graph::Iteration::Flat:
    return threads[0];
  }
  llvm_unreachable("not an iteration");
}

struct KernelToNVVM : impl::KernelToNVVMBase<KernelToNVVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    // The host's kernels are functions already.
    if (auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
        target && target.getKind() == TargetKind::CPU)
      return;
    llvm::StringMap<Kernel> kernels; ///< by name
    StringRef threads = gpu::GPUDialect::KnownBlockSizeAttrHelper::getNameStr();
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(graph::kIterateAttr)) {
        auto block = function->getAttrOfType<DenseI32ArrayAttr>(threads);
        kernels[function.getName()] = {block, elementsOfBlock(function, block)};
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
        function.emitError("'") << function.getName()
                                << "' is called by kernels, but a device has no library to take it from";
        return signalPassFailure();
      }
      if (auto found = kernels.find(function.getName()); found != kernels.end()) {
        function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), UnitAttr::get(context));
        function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), found->second.threads);
        function->setAttr(exec::kPerBlockAttr, Builder(context).getI64IntegerAttr(found->second.perBlock));
      }
    }
  }
};
} // namespace
} // namespace dsopt

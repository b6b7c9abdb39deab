//===- KernelToLLVM.cpp - loops over buffers to LLVM functions ------------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/KernelFunction.h"
#include "dsopt/Interfaces/Target.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/AMX/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_KERNELTOLLVM
#include "dsopt/Conversion/Passes.h.inc"

namespace {
struct KernelToLLVM : impl::KernelToLLVMBase<KernelToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    SmallVector<std::string> names;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(graph::kIterateAttr) || function->hasAttr(exec::kProductAttr)) {
        names.push_back(function.getName().str());
        for (StringRef name : {graph::kIterateAttr, graph::kRangeAttr, graph::kInPlaceAttr,
                               exec::kProductAttr, exec::kBlockingAttr, exec::kPacksAttr})
          function->removeAttr(name);
      }

    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    if (lacksBF16(module)) {
      RewritePatternSet expansions(context);
      arith::populateExpandBFloat16Patterns(expansions);
      if (failed(applyPatternsGreedily(module, std::move(expansions))))
        return signalPassFailure();
      // What is left are bits. As floats LLVM would extend them, and round them again, where it moves them.
      module.walk(toBits);
      converter.addConversion([](BFloat16Type type) { return IntegerType::get(type.getContext(), 16); });
    }

    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    populateAMXLegalizeForLLVMExportPatterns(converter, patterns);
    LLVMConversionTarget target(*context);
    configureAMXLegalizeForExportTarget(target);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();

    // The conversion leaves a loop's annotation where the translation ignores it.
    module.walk([](LLVM::BrOp branch) {
      if (Attribute annotation = branch->removeDiscardableAttr("llvm.loop_annotation"))
        branch.setLoopAnnotationAttr(cast<LLVM::LoopAnnotationAttr>(annotation));
    });
    for (const std::string &name : names)
      wrap(module, module.lookupSymbol<LLVM::LLVMFuncOp>(name));
  }

private:
  /// Whether LLVM would call a library to round to bf16.
  static bool lacksBF16(ModuleOp module) {
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
    return target && !target.hasFeature("avx512bf16");
  }
  /// A constant of bf16 as one of its bits.
  static void toBits(arith::ConstantOp constant) {
    Type type = constant.getType(), bits = IntegerType::get(constant.getContext(), 16);
    if (!getElementTypeOrSelf(type).isBF16())
      return;
    TypedAttr value;
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      value = elements.bitcast(bits);
    else
      value = IntegerAttr::get(bits, cast<FloatAttr>(constant.getValue()).getValue().bitcastToAPInt());
    OpBuilder builder(constant);
    Value given = arith::ConstantOp::create(builder, constant.getLoc(), value);
    constant.replaceAllUsesWith(
        arith::BitcastOp::create(builder, constant.getLoc(), type, given).getResult());
    constant.erase();
  }
  /// Makes `body` internal and gives its name to a function of the ABI's type.
  void wrap(ModuleOp module, LLVM::LLVMFuncOp body) {
    std::string name = body.getName().str();
    body.setName(name + ".body");
    body.setLinkage(LLVM::Linkage::Internal);
    body->setAttr("no_inline", UnitAttr::get(body.getContext()));
    body->removeAttr(SymbolTable::getVisibilityAttrName());

    ImplicitLocOpBuilder b(body.getLoc(), module.getContext());
    b.setInsertionPointAfter(body);
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto wrapper = LLVM::LLVMFuncOp::create(b, name, kernelFunctionType(b.getContext()));
    Block *entry = wrapper.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    SmallVector<Value> arguments{entry->getArgument(0), entry->getArgument(1)};
    for (int32_t i = 0, count = body.getNumArguments() - 2; i < count; ++i) {
      Value place =
          LLVM::GEPOp::create(b, pointer, pointer, entry->getArgument(2), ArrayRef<LLVM::GEPArg>{i});
      arguments.push_back(LLVM::LoadOp::create(b, pointer, place));
    }
    LLVM::CallOp::create(b, body, arguments);
    LLVM::ReturnOp::create(b, ValueRange());
  }
};
} // namespace
} // namespace dsopt

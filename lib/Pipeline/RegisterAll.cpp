//===- RegisterAll.cpp - everything a tool can name -----------------------===//
//
// One line for each stage: its external models in registerAllDialects, its
// passes in registerAllPasses.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Pipeline/RegisterAll.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Conversion/Routines.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Costs.h"
#include "dsopt/Dialect/Graph/Derivatives.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Lowerings.h"
#include "dsopt/Dialect/Graph/Names.h"
#include "dsopt/Dialect/Graph/Optimizers.h"
#include "dsopt/Dialect/Graph/Sharding.h"
#include "dsopt/Dialect/Graph/Tiling.h"
#include "dsopt/Interfaces/OptionsDialect.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Target/Passes.h"
#include "dsopt/Target/Target.h"
#include "dsopt/Transforms/Arena/Passes.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "dsopt/Transforms/Generate/Passes.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "dsopt/Transforms/Offload/Passes.h"
#include "dsopt/Transforms/Order/Passes.h"
#include "dsopt/Transforms/Overlap/Passes.h"
#include "dsopt/Transforms/Parallel/Passes.h"
#include "dsopt/Transforms/Place/Passes.h"
#include "dsopt/Transforms/Step/Passes.h"
#include "dsopt/Transforms/Wire/Passes.h"
#include "dsopt/Verify/Passes.h"

#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Extensions/ShardingExtensions.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void dsopt::registerAllDialects(DialectRegistry &registry) {
  registry.insert<OptionsDialect, graph::GraphDialect, dist::DistDialect, exec::ExecDialect>();
  registry.insert<func::FuncDialect, arith::ArithDialect, math::MathDialect, linalg::LinalgDialect,
                  tensor::TensorDialect, memref::MemRefDialect, scf::SCFDialect, LLVM::LLVMDialect,
                  gpu::GPUDialect, NVVM::NVVMDialect>();
  graph::registerDerivatives(registry);
  graph::registerDecompositions(registry);
  graph::registerLowerings(registry);
  registerRoutines(registry);
  registerRuntimeCalls(registry);
  registerTargetDialects(registry);
  graph::registerCosts(registry);
  graph::registerTiling(registry);
  graph::registerNames(registry);
  graph::registerOptimizers(registry);
  graph::registerShardings(registry);
  graph::registerShardedReductions(registry);
  graph::registerSequences(registry);
  registerValueCollectives(registry);
  registerSequenceAttention(registry);
  registerCollectiveActions(registry);
  registry.insert<shard::ShardDialect>();
  func::registerShardingInterfaceExternalModels(registry);
}

void dsopt::registerAllPasses() {
  registerTransformsPasses();
  shard::registerShardPasses();
  registerPlacePasses();
  registerGeneratePasses();
  registerAutodiffPasses();
  registerFusePasses();
  registerParallelPasses();
  registerMemoryPasses();
  registerOrderPasses();
  registerStepPasses();
  registerOverlapPasses();
  registerOffloadPasses();
  registerWirePasses();
  registerArenaPasses();
  registerVerifyPasses();
  registerConversionPasses();
  registerTargetPasses();
  registerProgramSteps();
  // Upstream's conversions that kernels go through.
  for (std::unique_ptr<Pass> (*create)() :
       {+[] { return createSCFToControlFlowPass(); }, +[] { return createConvertMathToLLVMPass(); },
        +[] { return createConvertMathToLibmPass(); }, +[] { return createReconcileUnrealizedCastsPass(); }})
    registerPass(create);
  auto addAll = [](OpPassManager &manager, llvm::ArrayRef<const char *> passes) {
    std::vector<std::string> names(passes.begin(), passes.end());
    std::string text = pipelineText(names);
    (void)parsePassPipeline(llvm::StringRef(text).drop_front(strlen("builtin.module(")).drop_back(), manager);
  };
  static PassPipelineRegistration<> lowerKernels(
      "lower-kernels", "turn kernels into functions of the LLVM dialect",
      [addAll](OpPassManager &manager) { addAll(manager, kernelPasses()); });
  static PassPipelineRegistration<> lowerKernelsLikeDevices(
      "lower-kernels-like-devices", "as lower-kernels, with what devices compute for a library's functions",
      [addAll](OpPassManager &manager) {
        llvm::SmallVector<const char *> passes(kernelPasses());
        std::replace_if(
            passes.begin(), passes.end(), [](llvm::StringRef pass) { return pass == "approximate-math"; },
            "approximate-math{all=true}");
        addAll(manager, passes);
      });
  static PassPipelineRegistration<> lowerKernelsToNVVM(
      "lower-kernels-to-nvvm", "turn kernels into functions for NVIDIA's devices",
      [addAll](OpPassManager &manager) { addAll(manager, deviceKernelPasses()); });
}

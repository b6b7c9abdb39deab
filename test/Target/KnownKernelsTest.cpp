//===- KnownKernelsTest.cpp - kernels are lowered once --------------------===//

#include "dsopt/Conversion/Products.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Pipeline/RegisterAll.h"
#include "dsopt/Target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dsopt;
namespace fs = llvm::sys::fs;

namespace {
constexpr const char *kLowering = "builtin.module(builtin.module(lower-kernels))";
constexpr int64_t kCount = 6; ///< kernels: a whole group and a part of one

/// Modules of products' kernels, number i of (i + 1) x `columns` x 3.
class Kernels : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("dsopt-known", folder));
    registerAllPasses();
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    options.cache = folder.str();
  }
  void TearDown() override { fs::remove_directories(folder); }

  OwningOpRef<ModuleOp> make(ArrayRef<int64_t> columns = {5, 5, 5, 5, 5, 5}, StringRef arch = "x86-64-v3") {
    Location loc = UnknownLoc::get(&context);
    TargetAttr target = *resolveTarget(loc, arch, /*threads=*/1);
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    (*module)->setAttr(kTargetAttr, target);
    OpBuilder builder(module->getBodyRegion());
    auto kernels = ModuleOp::create(builder, loc, exec::kKernelsModule);
    kernels->setAttr(kTargetAttr, target);
    builder.setInsertionPointToStart(kernels.getBody());
    for (auto [i, n] : llvm::enumerate(columns)) {
      Type type = builder.getF32Type();
      auto product = exec::ProductAttr::get(
          &context, /*m=*/i + 1, n, /*k=*/3, type, type, /*lda=*/3, /*ldb=*/n, /*ldc=*/n,
          /*transpose_a=*/false, /*transpose_b=*/false, /*addend=*/false, /*accumulates=*/false,
          /*bias=*/false, /*packed=*/false, /*batch=*/nullptr, /*strides_a=*/nullptr, /*strides_b=*/nullptr,
          /*strides_c=*/nullptr);
      createProductKernel(builder, loc, "product" + std::to_string(i), product, target, exec::BlockingAttr());
    }
    return module;
  }

  /// Compiles it; `known` is how many kernels came from the cache.
  ObjectBuffers compile(ModuleOp module, int64_t known, StringRef lowering = kLowering) {
    KnownKernels found = findKnownKernels(module, lowering, options);
    auto kernels = *module.getOps<ModuleOp>().begin();
    EXPECT_EQ(llvm::range_size(kernels.getOps<LLVM::LLVMFuncOp>()), known);
    ObjectBuffers objects;
    EXPECT_TRUE(succeeded(runPipeline(module, kLowering)));
    EXPECT_TRUE(succeeded(emitObjects(module, options, ProgramTable(), "", objects, "", std::move(found))));
    return objects;
  }

  static bool areEqual(const ObjectBuffers &one, const ObjectBuffers &other) {
    return one.size() == other.size() && llvm::all_of(llvm::zip(one, other), [](const auto &pair) {
             return std::get<0>(pair)->getBuffer() == std::get<1>(pair)->getBuffer();
           });
  }

  llvm::SmallString<128> folder;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  ObjectOptions options;
};
} // namespace

TEST_F(Kernels, ComeFromTheCacheWithTheSameObjects) {
  ObjectBuffers first = compile(*make(), 0);
  EXPECT_TRUE(areEqual(compile(*make(), kCount), first));
  options.cache.clear();
  EXPECT_TRUE(areEqual(compile(*make(), 0), first));
}

TEST_F(Kernels, OfOtherTextAreLowered) {
  compile(*make(), 0);
  // The second group differs.
  OwningOpRef<ModuleOp> other = make({5, 5, 5, 5, 5, 9});
  ObjectBuffers mixed = compile(*other, 4);
  options.cache.clear();
  EXPECT_TRUE(areEqual(mixed, compile(*make({5, 5, 5, 5, 5, 9}), 0)));
}

TEST_F(Kernels, OfOtherPassesTargetsAndLevelsAreLowered) {
  compile(*make(), 0);
  compile(*make(), 0, "builtin.module(cse,builtin.module(lower-kernels))");
  compile(*make({5, 5, 5, 5, 5, 5}, "x86-64-v4"), 0);
  options.optLevel = 2;
  compile(*make(), 0);
}

TEST_F(Kernels, AreLoweredWhereAnObjectIsDamaged) {
  ObjectBuffers first = compile(*make(), 0);
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    llvm::raw_fd_ostream(it->path(), error) << "no object";
  ASSERT_FALSE(error);
  EXPECT_TRUE(areEqual(compile(*make(), 0), first));
}

TEST_F(Kernels, BesideOtherCodeAreLowered) {
  compile(*make(), 0);
  OwningOpRef<ModuleOp> module = make();
  auto kernels = *module->getOps<ModuleOp>().begin();
  auto builder = OpBuilder::atBlockEnd(kernels.getBody());
  auto helper = func::FuncOp::create(builder, module->getLoc(), "helper", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(helper.addEntryBlock());
  func::ReturnOp::create(builder, module->getLoc());
  EXPECT_TRUE(findKnownKernels(*module, kLowering, options).groups.empty());
}

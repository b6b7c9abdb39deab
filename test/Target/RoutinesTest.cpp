//===- RoutinesTest.cpp - what a program holds of the runtime's routines --===//

#include "CollectRoutines.h"
#include "dsopt/Dialect/Exec/Exec.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace dsopt;

namespace {
/// The images of a module whose segment makes a call, with these attributes.
std::vector<std::string> imagesOf(const std::string &call, const std::string &attributes = "") {
  MLIRContext context;
  context.loadDialect<LLVM::LLVMDialect, exec::ExecDialect>();
  context.allowUnregisteredDialects();
  std::string text = "module attributes {" + attributes + "} {\n  llvm.func @" + call +
                     "()\n  llvm.func @segment() {\n    llvm.call @" + call +
                     "() : () -> ()\n    llvm.return\n  }\n}";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  std::vector<std::string> names;
  for (const runtime::RoutineImage *image : collectRoutines(*module))
    names.push_back(image->name);
  return names;
}

using Names = std::vector<std::string>;
} // namespace

TEST(Routines, AreThoseThatSegmentsCall) {
  EXPECT_EQ(imagesOf("dsopt_rt_gemm"), Names());
  EXPECT_EQ(imagesOf("dsopt_rt_launch_device"), Names());
  EXPECT_EQ(imagesOf("dsopt_rt_accumulate"), Names({"Elementwise"}));
  EXPECT_EQ(imagesOf("dsopt_rt_ctc"), Names({"Ctc"}));
  EXPECT_EQ(imagesOf("dsopt_rt_ctc_grad"), Names({"Ctc"}));
  EXPECT_EQ(imagesOf("dsopt_rt_linear_nll"), Names({"LinearNll"}));
  EXPECT_EQ(imagesOf("dsopt_rt_scatter"), Names({"Scatter"}));
  EXPECT_EQ(imagesOf("dsopt_rt_scatter_add"), Names({"ScatterAdd", "Sort"}));
}

/// Where nobody says which types there are, all are taken.
TEST(Routines, OfOneTypeAreForIt) {
  auto calls = [](const std::string &type) {
    return "exec.calls = [{kind = \"attention\", what = \"\", type = " + type + ", bytes = 0, flops = 0}]";
  };
  EXPECT_EQ(imagesOf("dsopt_rt_attention"), Names({"Attention", "AttentionBf16", "AttentionF16"}));
  EXPECT_EQ(imagesOf("dsopt_rt_attention", calls("bf16")), Names({"Attention", "AttentionBf16"}));
  EXPECT_EQ(imagesOf("dsopt_rt_attention", calls("f16")), Names({"Attention", "AttentionF16"}));
  EXPECT_EQ(imagesOf("dsopt_rt_attention", calls("f32")), Names({"Attention"}));
  EXPECT_EQ(imagesOf("dsopt_rt_attention_grad", calls("f32")), Names({"AttentionGrad"}));
  EXPECT_EQ(imagesOf("dsopt_rt_attention_grad", calls("bf16")),
            Names({"AttentionGrad", "AttentionGradBf16"}));
  EXPECT_EQ(imagesOf("dsopt_rt_attention_grad", calls("f16")), Names({"AttentionGrad", "AttentionGradF16"}));
}

TEST(Routines, AddUpPartsOfRanks) {
  EXPECT_EQ(imagesOf("dsopt_rt_gemm", "dsopt.options = {dp = 2 : i64}"), Names({"TreeSum"}));
  EXPECT_EQ(imagesOf("dsopt_rt_gemm", "dsopt.options = {dp = 1 : i64}"), Names());
}

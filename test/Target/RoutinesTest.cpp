//===- RoutinesTest.cpp - what a program holds of the runtime's routines --===//

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Runtime/RoutineImages.h"
#include "dsopt/Target/Target.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dsopt;

namespace {
using Names = std::vector<std::string>;

/// The routines of a module with these attributes.
Names routinesWith(const std::string &attributes, const std::string &body = "") {
  MLIRContext context;
  context.loadDialect<exec::ExecDialect>();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>("module attributes {" + attributes + "} {" + body + "}", &context);
  EXPECT_TRUE(module);
  Names names;
  for (const Routine &routine : collectRoutines(*module))
    names.push_back(routine.name.str());
  return names;
}

std::string call(const std::string &kind, const std::string &type = "f32", int head = 0) {
  return "{kind = \"" + kind + "\", what = \"\", type = " + type + ", bytes = 0, flops = 0" +
         (head ? ", head = " + std::to_string(head) + " : i64" : "") + "}";
}

Names routinesOfCall(const std::string &kind, const std::string &type = "f32", int head = 0) {
  return routinesWith("exec.calls = [" + call(kind, type, head) + "]");
}
} // namespace

TEST(Routines, AreThoseThatSegmentsCall) {
  EXPECT_EQ(routinesWith("exec.calls = []"), Names());
  EXPECT_EQ(routinesOfCall("product"), Names());
  EXPECT_EQ(routinesOfCall("kernel"), Names());
  EXPECT_EQ(routinesOfCall("accumulate"), Names({"Elementwise"}));
  EXPECT_EQ(routinesOfCall("ctc"), Names({"Ctc"}));
  EXPECT_EQ(routinesOfCall("ctc_grad"), Names({"Ctc"}));
  EXPECT_EQ(routinesOfCall("linear_nll"), Names({"LinearNll"}));
  EXPECT_EQ(routinesOfCall("scatter"), Names({"Scatter"}));
  EXPECT_EQ(routinesOfCall("scatter_add"), Names({"ScatterAdd", "Sort"}));
  EXPECT_EQ(
      routinesWith("exec.calls = [" + call("scatter") + ", " + call("ctc") + ", " + call("ctc_grad") + "]"),
      Names({"Ctc", "Scatter"}));
}

/// By the larger size of a head of q or of v.
TEST(Routines, OfAttentionAreForTypeAndHead) {
  EXPECT_EQ(routinesOfCall("attention", "f32", 16), Names({"Attention"}));
  EXPECT_EQ(routinesOfCall("attention", "f32", 256), Names({"Attention"}));
  EXPECT_EQ(routinesOfCall("attention", "bf16", 128), Names({"AttentionBf16"}));
  EXPECT_EQ(routinesOfCall("attention", "f16", 128), Names({"AttentionF16"}));
  EXPECT_EQ(routinesOfCall("attention", "bf16", 129), Names({"AttentionWideBf16"}));
  EXPECT_EQ(routinesOfCall("attention", "f16", 129), Names({"AttentionWideF16"}));
  EXPECT_EQ(routinesOfCall("attention_grad", "f32", 16), Names({"AttentionDots", "AttentionGrad"}));
  EXPECT_EQ(routinesOfCall("attention_grad", "bf16", 64), Names({"AttentionDots", "AttentionGradBf16"}));
  EXPECT_EQ(routinesOfCall("attention_grad", "f16", 64), Names({"AttentionDots", "AttentionGradF16"}));
  EXPECT_EQ(routinesOfCall("attention_grad", "bf16", 200), Names({"AttentionDots", "AttentionGradWideBf16"}));
  EXPECT_EQ(routinesOfCall("attention_grad", "f16", 200), Names({"AttentionDots", "AttentionGradWideF16"}));
}

TEST(Routines, AreAllWhereNobodyHasDescribedTheCalls) {
  EXPECT_EQ(routinesWith("").size(), runtime::routineImages().size());
}

TEST(Routines, AddUpPartsOfRanks) {
  EXPECT_EQ(routinesWith("exec.calls = []", "dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]"),
            Names({"TreeSum"}));
  EXPECT_EQ(routinesWith("exec.calls = []", "dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]"),
            Names({"TreeSum"}));
  EXPECT_EQ(routinesWith("exec.calls = []", "dist.grid @grid [pp = 1, edp = 1, ep = 1, sp = 1, tp = 1]"),
            Names());
}

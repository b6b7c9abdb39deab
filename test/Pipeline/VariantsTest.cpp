//===- VariantsTest.cpp - whether programs of two sizes have one form -----===//

#include "dsopt/Pipeline/Variants.h"
#include "dsopt/Pipeline/RegisterAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dsopt;
using namespace mlir;

/// What is said of a function of 2 rows beside one of 8; empty: they are the same.
static std::string compare(StringRef one, StringRef other) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  auto module = parseSourceString<ModuleOp>(one, &context),
       twin = parseSourceString<ModuleOp>(other, &context);
  EXPECT_TRUE(module && twin) << message;
  bool same = succeeded(verifySameFunctions(*module, *twin, 8));
  EXPECT_EQ(same, message.empty());
  return message;
}

static constexpr StringRef kOne = "func.func @f(%a: memref<2x4xf32>, %i: index) -> f32 {\n"
                                  "  %x = memref.load %a[%i, %i] : memref<2x4xf32>\n"
                                  "  %y = arith.addf %x, %x : f32\n"
                                  "  return %y : f32\n"
                                  "}";

static std::string change(StringRef from, StringRef to) {
  std::string text = kOne.str();
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

static const char kFormed[] =
    "@f is formed otherwise for 8 rows: the bits of a row would depend on how many there are";

TEST(Variants, SizesAloneAreNoOtherForm) { EXPECT_EQ(compare(kOne, change("2x4", "8x4")), ""); }

TEST(Variants, OtherOperationsAre) {
  EXPECT_EQ(compare(kOne, change("addf", "mulf")), kFormed);
  EXPECT_EQ(compare(kOne, change("  return", "  %z = arith.negf %y : f32\n  return")), kFormed);
}

TEST(Variants, OtherTypesAre) { EXPECT_EQ(compare(kOne, change("f32", "bf16")), kFormed); }

TEST(Variants, FunctionsThatAreNotThereAre) { EXPECT_EQ(compare(kOne, change("@f", "@g")), kFormed); }

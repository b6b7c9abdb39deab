//===- DeviceLimitsTest.cpp - what GPUs can do at most --------------------===//

#include "dsopt/Interfaces/DeviceLimits.h"
#include "dsopt/Interfaces/OptionsDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace dsopt;

namespace {

DeviceLimits only(StringRef arch) { return devicesOf(arch).front(); }

TEST(DeviceLimits, AreOfAnArchitecture) {
  EXPECT_EQ(only("sm_80").name, "A100");
  EXPECT_EQ(only("sm_89").name, "L40");
  EXPECT_EQ(only("sm_100a").name, "B200");
  ASSERT_EQ(devicesOf("sm_90a").size(), 2u);
  EXPECT_EQ(devicesOf("sm_90")[1].name, "H200");
  EXPECT_TRUE(devicesOf("sm_75").empty());
}

TEST(DeviceLimits, ArePlannedWithForTheLastArchitecture) {
  MLIRContext context;
  context.loadDialect<OptionsDialect>();
  auto target = [&](TargetKind kind, StringRef arch) {
    return TargetAttr::get(&context, kind, "triple", arch, 1, 128, ArrayAttr::get(&context, {}));
  };
  EXPECT_EQ(deviceOf(target(TargetKind::CUDA, "sm_80,sm_90a"))->name, "H100");
  EXPECT_EQ(deviceOf(target(TargetKind::CUDA, "sm_80"))->name, "A100");
  EXPECT_FALSE(deviceOf(target(TargetKind::CPU, "native")));
  EXPECT_FALSE(deviceOf(TargetAttr()));
}

// As the toolkit's occupancy calculator has them.
TEST(DeviceLimits, HoldBlocksByWhateverIsScarcest) {
  EXPECT_EQ(only("sm_80").residentBlocks(256, 32, 0), 8);      // warps: 64 of 64
  EXPECT_EQ(only("sm_80").residentBlocks(256, 33, 0), 6);      // registers: 40 a thread are taken
  EXPECT_EQ(only("sm_80").residentBlocks(32, 16, 0), 32);      // blocks
  EXPECT_EQ(only("sm_80").residentBlocks(128, 255, 0), 2);     // 65536 / (256 * 32 * 4)
  EXPECT_EQ(only("sm_80").residentBlocks(128, 32, 40960), 4);  // 164 KiB / (40 + 1)
  EXPECT_EQ(only("sm_80").residentBlocks(128, 32, 167936), 0); // and none of 164 KiB
  EXPECT_EQ(only("sm_89").residentBlocks(256, 32, 0), 6);      // warps: 48 of 48
  EXPECT_EQ(only("sm_89").residentBlocks(256, 32, 49152), 2);  // 100 KiB / (48 + 1)
  EXPECT_EQ(only("sm_90").residentBlocks(128, 32, 40960), 5);  // 228 KiB / (40 + 1)
  EXPECT_EQ(only("sm_100a").residentBlocks(1024, 64, 0), 1);
}

TEST(DeviceLimits, AreOfMemoryOrOfUnits) {
  MLIRContext context;
  Builder b(&context);
  DeviceLimits h100 = only("sm_90");
  EXPECT_DOUBLE_EQ(h100.limitSeconds(b.getBF16Type(), true, 989e12, 1), 1);
  EXPECT_DOUBLE_EQ(h100.limitSeconds(b.getBF16Type(), false, 67e12, 1), 1);
  EXPECT_DOUBLE_EQ(h100.limitSeconds(b.getF32Type(), true, 67e12, 1), 1);
  EXPECT_DOUBLE_EQ(h100.limitSeconds(b.getBF16Type(), true, 1, 6.7e12), 2);
}

} // namespace

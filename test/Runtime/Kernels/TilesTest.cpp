//===- TilesTest.cpp - Linux is asked for AMX's tiles ----------------------===//

#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/Error.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dsopt::runtime;

TEST(Tiles, AreAskedForWhereAProgramHasThem) {
  EXPECT_NO_THROW(allowTiles({"avx512f", "avx512bf16"}));
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("amx-tile")) {
    allowTiles({"amx-tile", "amx-bf16"});
    unsigned long allowed = 0;
    constexpr long kGetPermissions = 0x1022;
    ASSERT_EQ(syscall(SYS_arch_prctl, kGetPermissions, &allowed), 0);
    EXPECT_TRUE(allowed & 1ul << 18);
    return;
  }
  try {
    allowTiles({"amx-tile", "amx-bf16"});
    FAIL() << "this machine has no tiles";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("compiled for AMX, which Linux does not let it use: "),
              std::string::npos)
        << error.what();
  }
#endif
}

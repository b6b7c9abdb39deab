//===- DiskMemoryTest.cpp - what is moved to disk and back ------------------===//

#include "Core/DiskMemory.h"
#include "dsopt/Runtime/Fault.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace dsopt::runtime;

namespace {
constexpr int64_t kBytes = (3 << 20) + 192;

/// A folder with files: where tests run.
class DiskMemoryTest : public testing::Test {
protected:
  std::unique_ptr<DiskMemory> open(DiskOptions options = {}) {
    return std::make_unique<DiskMemory>(testing::TempDir(), kBytes, 3, options, waker);
  }
  void TearDown() override { fault::start(""); }

  /// Moves parts of any length at any place there and back, each known by address as well.
  void moveParts(DiskMemory &disk) {
    std::mt19937 random(1);
    std::vector<char> memory(kBytes + 8192), back(kBytes + 8192);
    for (char &byte : memory)
      byte = static_cast<char>(random());
    auto aligned = [](std::vector<char> &bytes) {
      return reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(bytes.data()) + 4095) / 4096 * 4096);
    };
    DiskTransfer transfer;
    auto move = [&](char *to, const char *from, int64_t bytes) {
      transfer.to = to;
      transfer.from = from;
      transfer.bytes = bytes;
      disk.submit(transfer);
      disk.wait(transfer);
      ASSERT_TRUE(disk.poll(transfer));
    };
    for (int i = 0; i < 60; ++i) {
      // Most of them begin at a block, in memory and on disk; all may end within one.
      int64_t unit = i % 4 ? 4096 : 64, bytes = 64 + random() % (i % 3 ? 20000 : 2 << 20) / 64 * 64;
      int64_t place = random() % (kBytes - bytes) / unit * unit, at = random() % 4096 / unit * unit;
      char *from = aligned(memory) + at, *to = aligned(back) + at;
      move(disk.begin() + place, from, bytes);
      ASSERT_EQ(std::memcmp(disk.begin() + place, from, bytes), 0) << i;
      if (i % 5 == 0)
        disk.begin()[place] ^= 1;
      if (i % 7 == 0)
        disk.settle();
      move(to, disk.begin() + place, bytes);
      ASSERT_EQ(std::memcmp(disk.begin() + place, to, bytes), 0) << i;
      ASSERT_EQ(to[0], i % 5 == 0 ? from[0] ^ 1 : from[0]) << i;
    }
  }

  Waker::Bell bell{};
  Waker waker{bell, false, {}};
};
} // namespace

TEST_F(DiskMemoryTest, MovesPartsOfAnyLength) {
  for (DiskOptions options : {DiskOptions(), DiskOptions{4096, 1}, DiskOptions{8192, 5}})
    moveParts(*open(options));
}

/// What is under way may still touch the memory: the rank ends there, and says why.
TEST_F(DiskMemoryTest, ARingThatCannotBeEnteredIsNamed) {
  for (const char *fault : {"ringEnter:error=ENOMEM", "ringEnter,nth=2:error=ENOMEM"})
    EXPECT_DEATH(
        {
          fault::start(fault);
          moveParts(*open());
        },
        "dsopt: error: .*: rank 3 cannot (read|write) its file there \\(-nvme-path\\): io_uring: Cannot "
        "allocate memory");
}

TEST_F(DiskMemoryTest, MovesThemWithoutRingsAndDirectIO) {
  for (const char *fault :
       {"ring:error=ENOSYS", "pread:error=EINVAL", "ringRead,every=2:short;ringWrite,every=3:short"}) {
    fault::start(fault);
    auto disk = open({4096, 7});
    EXPECT_EQ(disk->obstacle().empty(), fault[4] == 'R');
    moveParts(*disk);
  }
}

TEST_F(DiskMemoryTest, NamesFolderAndRank) {
  auto failure = [&](const char *fault, auto body) -> std::string {
    fault::start(fault);
    try {
      body();
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusFailure);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(failure("fallocate:error=EIO", [&] { open(); }),
            testing::TempDir() + ": rank 3 cannot reserve its file there (-nvme-path): Input/output error");
  std::vector<char> memory(1 << 16);
  for (const char *fault : {"ringWrite,nth=2:error=EIO", "ring:error=EPERM;pwrite:error=EIO"})
    EXPECT_EQ(failure(fault,
                      [&] {
                        auto disk = open({4096, 4});
                        auto *from = reinterpret_cast<char *>(
                            (reinterpret_cast<uintptr_t>(memory.data()) + 4095) / 4096 * 4096);
                        DiskTransfer transfer;
                        transfer.to = disk->begin();
                        transfer.from = from;
                        transfer.bytes = 40960;
                        disk->submit(transfer);
                        disk->wait(transfer);
                        disk->poll(transfer);
                      }),
              testing::TempDir() + ": rank 3 cannot write its file there (-nvme-path): Input/output error");
}

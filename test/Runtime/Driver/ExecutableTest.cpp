//===- ExecutableTest.cpp - a program and its runtime in one file ---------===//

#include "dsopt/Runtime/Executable.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Footer.h"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;

namespace {
class Executable : public ::testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/dsopt-test-XXXXXX";
    folder = mkdtemp(name);
    std::ofstream(folder + "/runtime", std::ios::binary) << std::string(5000, 'r');
    bytes = write({program});
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::vector<std::string_view> &programs) {
    writeExecutable(folder + "/runtime", programs, folder + "/train");
    std::stringstream text;
    text << std::ifstream(folder + "/train", std::ios::binary).rdbuf();
    return text.str();
  }

  /// What is opened at the end of these bytes, one behind the other; what is wrong with them; "none".
  std::string open(const std::string &bytes) {
    std::ofstream(folder + "/copy", std::ios::binary) << bytes;
    int file = ::open((folder + "/copy").c_str(), O_RDONLY);
    std::string result = "none";
    try {
      std::vector<int> programs = openEmbedded(file);
      if (!programs.empty())
        result.clear();
      for (int found : programs) {
        char text[9000];
        result.append(text, pread(found, text, sizeof text, 0));
        EXPECT_LT(pwrite(found, "x", 1, 0), 0); // what was compared stays
        close(found);
      }
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      result = error.what();
    }
    close(file);
    return result;
  }

  const std::string program = std::string(300, 'o');
  std::string folder, bytes;
};

TEST_F(Executable, IsTheRuntimeThenTheProgram) {
  dsopt_footer footer;
  ASSERT_EQ(bytes.size(), 8192 + 300 + sizeof footer);
  std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
  EXPECT_EQ(std::string(footer.magic, sizeof footer.magic), DSOPT_FOOTER_MAGIC);
  EXPECT_EQ(footer.version, uint64_t(DSOPT_FOOTER_VERSION));
  EXPECT_EQ(footer.programs[0].offset, 8192u);
  EXPECT_EQ(bytes.substr(0, 5000), std::string(5000, 'r'));
  EXPECT_EQ(bytes.substr(footer.programs[0].offset, footer.programs[0].size), program);
  EXPECT_EQ(footer.programs[1].size, 0u);
  EXPECT_EQ(open(bytes), program);
  EXPECT_EQ(access((folder + "/train").c_str(), X_OK), 0);
}

TEST_F(Executable, HasTwoPrograms) {
  std::string device = "device" + std::string(4995, 'd'), both = write({device, program});
  dsopt_footer footer;
  ASSERT_EQ(both.size(), 8192 + 8192 + 300 + sizeof footer);
  std::memcpy(&footer, both.data() + both.size() - sizeof footer, sizeof footer);
  EXPECT_EQ(footer.programs[1].offset, 16384u);
  EXPECT_EQ(open(both), device + std::string(8192 - device.size(), '\0') + program);
  for (size_t at = 8192; at < both.size(); at += at < 16384 ? 61 : 1) {
    std::string damaged = both;
    damaged[at] ^= 1 << at % 8;
    EXPECT_NE(open(damaged).find("this executable is damaged"), std::string::npos) << "byte " << at;
  }
}

TEST_F(Executable, EveryDamagedByteIsRefused) {
  for (size_t at = 0; at < bytes.size(); at += at < 8192 ? 61 : 1) {
    std::string damaged = bytes;
    damaged[at] ^= 1 << at % 8;
    EXPECT_NE(open(damaged).find("this executable is damaged"), std::string::npos)
        << "byte " << at << ": " << open(damaged);
  }
}

/// A footer whose hash is right may still point beside the program.
TEST_F(Executable, AProgramLiesBeforeItsFooter) {
  dsopt_footer good;
  std::memcpy(&good, bytes.data() + bytes.size() - sizeof good, sizeof good);
  auto opened = [&](uint64_t offset, uint64_t size) {
    dsopt_footer footer = good;
    footer.programs[0].offset = offset;
    footer.programs[0].size = size;
    footer.footer = XXH3_64bits(&footer, offsetof(dsopt_footer, footer));
    std::string changed = this->bytes;
    changed.replace(changed.size() - sizeof footer, sizeof footer, reinterpret_cast<char *>(&footer),
                    sizeof footer);
    return open(changed);
  };
  uint64_t begin = good.programs[0].offset, bytes = good.programs[0].size;
  EXPECT_EQ(opened(begin, bytes), program);
  for (auto [offset, size] :
       {std::pair(begin, bytes + 1), std::pair(begin, bytes - 1), std::pair(begin + 1, bytes - 1),
        std::pair(begin - 1, bytes + 1), std::pair(begin + 4096, bytes - 4096),
        std::pair(uint64_t(0) - 4096, bytes + 4096)})
    EXPECT_EQ(opened(offset, size),
              "this executable is damaged (the footer at its end is not what was written); compile it again")
        << offset << " " << size;
}

TEST_F(Executable, OneWithoutAProgramIsNone) {
  EXPECT_EQ(open(std::string(100, 'r')), "none");
  EXPECT_EQ(open(""), "none");
  // What is left out before the footer is missed.
  EXPECT_NE(open(bytes.substr(0, 8192) + bytes.substr(8193)).find("damaged"), std::string::npos);
}

TEST_F(Executable, ARuntimeThatIsNotThereIsAnError) {
  try {
    writeExecutable(folder + "/missing", {program}, folder + "/other");
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("cannot read"), std::string::npos);
  }
  EXPECT_NE(access((folder + "/other").c_str(), F_OK), 0);
}
} // namespace

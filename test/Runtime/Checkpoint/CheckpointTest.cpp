//===- CheckpointTest.cpp - files of trained parameters, and their hash ---===//

#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Manifest.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dsopt::runtime;

/// What close() fails with, in place of the C library's own; 0: nothing.
static int closingFails = 0;
extern "C" int close(int fd) {
  int result = static_cast<int>(syscall(SYS_close, fd));
  if (!closingFails)
    return result;
  errno = closingFails;
  return -1;
}

namespace {
class Checkpoint : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "checkpoint-test-" + std::to_string(getpid());
  std::vector<Parameter> parameters;
  std::vector<float> weight{1, 2, 3, 4, 5, 6}, bias{7, 8};

  void SetUp() override {
    mkdir(folder.c_str(), 0777);
    parameters.resize(2);
    parameters[0].name = "b.weight";
    parameters[0].type = "f32";
    parameters[0].shape = {2, 3};
    parameters[1].name = "a.bias";
    parameters[1].type = "f32";
    parameters[1].shape = {2};
  }
  void TearDown() override {
    for (const char *name : {"/out", "/out.data", "/out.run"})
      unlink((folder + name).c_str());
    EXPECT_EQ(rmdir(folder.c_str()), 0) << "something was left behind in " << folder;
  }
  void give(ParameterSink &sink) {
    sink.parameter(parameters[1], reinterpret_cast<char *>(bias.data()));
    sink.parameter(parameters[0], reinterpret_cast<char *>(weight.data()));
    sink.finish();
  }
  std::string read(const std::string &path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string out() { return folder + "/out"; }
  bool exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }
};

TEST_F(Checkpoint, SafetensorsHoldsHeaderAndTensors) {
  give(*makeSafetensorsWriter(out(), parameters));
  std::string file = read(out());
  uint64_t length;
  std::memcpy(&length, file.data(), 8);
  std::string header = file.substr(8, length);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(header.substr(0, header.find_last_of('}') + 1),
            "{\"__metadata__\":{\"format\":\"pt\"},"
            "\"b.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
            "\"a.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}");
  ASSERT_EQ(file.size(), 8 + length + 32);
  EXPECT_EQ(std::memcmp(file.data() + 8 + length, weight.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.data() + 8 + length + 24, bias.data(), 8), 0);
}

namespace {
/// A length-delimited field of less than 128 bytes.
std::string field(int number, const std::string &content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
}
} // namespace

TEST_F(Checkpoint, SafetensorsTakesTheNamesAModelCarries) {
  std::string rows = R"([{"onnx":"b.weight","torch":"layer.kernel","transposed":true},{"onnx":7}])";
  std::string model = "\x08\x09" + field(14, field(1, "other") + field(2, "[]")) +
                      field(14, field(1, "dsopt.parameters") + field(2, rows));
  OriginalNames names = originalNames(model.data(), model.size());
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names["b.weight"].name, "layer.kernel");
  give(*makeSafetensorsWriter(out(), parameters, names));
  std::string file = read(out());
  EXPECT_NE(file.find("\"layer.kernel\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}"),
            std::string::npos);
  const float turned[] = {1, 4, 2, 5, 3, 6};
  EXPECT_EQ(std::memcmp(file.data() + file.size() - 32, turned, 24), 0);
  EXPECT_EQ(std::memcmp(file.data() + file.size() - 8, bias.data(), 8), 0);
}

TEST_F(Checkpoint, OriginalNamesOfWhatIsNoModel) {
  std::string model =
      field(14, field(1, "dsopt.parameters") + field(2, "[{\"onnx\":\"a\",\"torch\":\"b\"}]"));
  for (size_t bytes = 0; bytes < model.size(); ++bytes)
    EXPECT_TRUE(originalNames(model.data(), bytes).empty()) << bytes;
  EXPECT_EQ(originalNames(model.data(), model.size()).size(), 1u);
  EXPECT_TRUE(originalNames(nullptr, 0).empty());
  EXPECT_TRUE(originalNames("\x0f\xff\xff", 3).empty());
}

TEST_F(Checkpoint, OnnxAppendsInitializersToTheModel) {
  std::string model("\x08\x09", 2); // ir_version 9
  give(*makeOnnxWriter(out(), model.data(), model.size(), parameters));
  std::string file = read(out());
  std::string first =
      std::string("\x3a\x18\x2a\x16\x08\x02\x10\x01\x42\x06", 10) + "a.bias" + std::string("\x4a\x08", 2);
  EXPECT_EQ(file.substr(0, 2 + first.size()), model + first);
  EXPECT_EQ(std::memcmp(file.data() + 2 + first.size(), bias.data(), 8), 0);
  EXPECT_FALSE(exists(out() + ".data"));
}

TEST_F(Checkpoint, LargeOnnxModelsKeepTheirValuesOutside) {
  give(*makeOnnxWriter(out(), "", 0, parameters, 10));
  std::string data = read(out() + ".data"), file = read(out());
  ASSERT_EQ(data.size(), 64u + 24);
  EXPECT_EQ(std::memcmp(data.data(), bias.data(), 8), 0);
  EXPECT_EQ(std::memcmp(data.data() + 64, weight.data(), 24), 0);
  EXPECT_NE(file.find("out.data"), std::string::npos);
  EXPECT_EQ(file.find(std::string(reinterpret_cast<char *>(weight.data()), 24)), std::string::npos);
}

TEST_F(Checkpoint, AnUnfinishedFileDoesNotAppear) {
  std::ofstream(out()) << "old";
  makeSafetensorsWriter(out(), parameters)->parameter(parameters[1], reinterpret_cast<char *>(bias.data()));
  EXPECT_EQ(read(out()), "old");
}

TEST(Degrees, DivideMicroBatchesAndHaveAPowerOfTwoOfShardsEach) {
  for (int64_t K = 1; K <= 48; ++K)
    for (int64_t V = 1; V <= 48; ++V) {
      std::vector<int64_t> right;
      for (int64_t dp = 1; dp <= K; ++dp) {
        int64_t shards = V % dp == 0 ? V / dp : 0;
        if (K % dp == 0 && (dp == 1 || (shards && (shards & (shards - 1)) == 0)))
          right.push_back(dp);
      }
      EXPECT_EQ(possibleDegrees(K, V), right) << K << " " << V;
    }
  // A file may say anything.
  int64_t most = INT64_MAX, large = int64_t(1) << 62;
  EXPECT_EQ(possibleDegrees(large, large).size(), 63u);
  EXPECT_EQ(possibleDegrees(most, 3), std::vector<int64_t>{1});
  for (int64_t V : {int64_t(0), int64_t(-4), INT64_MIN})
    EXPECT_EQ(possibleDegrees(most, V), std::vector<int64_t>{1});
}

TEST_F(Checkpoint, UnwritablePlacesAreErrors) {
  EXPECT_NO_THROW(checkWritable(out(), "save-onnx"));
  EXPECT_EQ(statusOfCreating(EIO), StatusFailure);
  EXPECT_EQ(statusOfCreating(EACCES), StatusInput);
  EXPECT_FALSE(exists(out()));
  for (std::string path : {folder + "/none/out", folder}) {
    try {
      checkWritable(path, "save-onnx");
      FAIL() << path;
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      EXPECT_EQ(std::string(error.what()).find("option -save-onnx: "), 0u);
    }
  }
}

/// Names in the folder that are not of the test.
static std::vector<std::string> temporaries(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().rfind(".dsopt-", 0) == 0)
      names.push_back(entry.path());
  return names;
}

TEST_F(Checkpoint, TemporaryNamesCannotBePredicted) {
  // Two writers of one process, as two containers' whose processes have one number.
  auto one = std::make_unique<AtomicFile>(out());
  std::vector<std::string> first = temporaries(folder);
  ASSERT_EQ(first.size(), 1u);
  AtomicFile other(out());
  EXPECT_EQ(temporaries(folder).size(), 2u);
  EXPECT_EQ(first[0].find(std::to_string(getpid()) + ".tmp"), std::string::npos);
  one->append("one", 3);
  other.append("two", 3);
  one->commit();
  EXPECT_EQ(read(out()), "one");
  other.commit();
  EXPECT_EQ(read(out()), "two");
  EXPECT_EQ(temporaries(folder).size(), 0u);
}

TEST_F(Checkpoint, WhatAKilledRunLeftGoesWithTheNext) {
  if (pid_t child = fork()) {
    int status;
    waitpid(child, &status, 0);
  } else {
    new AtomicFile(out());
    _exit(0);
  }
  ASSERT_EQ(temporaries(folder).size(), 1u);
  AtomicFile living(out());
  checkWritable(out(), "save-onnx");
  EXPECT_EQ(temporaries(folder).size(), 1u);
  living.append("x", 1);
  living.commit();
  EXPECT_EQ(read(out()), "x");
}

TEST_F(Checkpoint, DevicesAndFifosAreWrittenInPlace) {
  ASSERT_EQ(mkfifo(out().c_str(), 0600), 0);
  int reader = open(out().c_str(), O_RDONLY | O_NONBLOCK);
  checkWritable(out(), "save-onnx");
  AtomicFile file(out());
  file.append("ab", 2);
  file.append("cd", 2);
  file.writeAt(1, "B", 1);
  char got[8];
  EXPECT_LE(::read(reader, got, sizeof got), 0); // nothing before it is whole
  file.commit();
  EXPECT_EQ(std::string(got, std::max<ssize_t>(0, ::read(reader, got, sizeof got))), "aBcd");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(out()));
}

TEST_F(Checkpoint, ADiskThatFailsAtTheEndIsNamed) {
  AtomicFile file(out());
  file.append("x", 1);
  errno = ENOENT; // of something earlier
  closingFails = EIO;
  try {
    file.commit();
    closingFails = 0;
    FAIL();
  } catch (const Error &error) {
    closingFails = 0;
    EXPECT_EQ(error.status, StatusFailure);
    EXPECT_EQ(std::string(error.what()), out() + ": cannot be put in place: Input/output error");
  }
  EXPECT_FALSE(exists(out()));
  EXPECT_EQ(temporaries(folder).size(), 0u);
}

TEST_F(Checkpoint, TheUmaskIsObeyed) {
  mode_t before = umask(027);
  AtomicFile file(out()), program(out() + ".run", 0777);
  file.commit();
  program.commit();
  umask(before);
  struct stat info;
  stat(out().c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  stat((out() + ".run").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0750u);
}

TEST_F(Checkpoint, HashDependsOnEveryPartAndNotOnOrder) {
  auto hash = [&](bool reversed = false) {
    WeightsHash sink;
    if (reversed) {
      sink.parameter(parameters[0], reinterpret_cast<char *>(weight.data()));
      sink.parameter(parameters[1], reinterpret_cast<char *>(bias.data()));
      sink.finish();
    } else {
      give(sink);
    }
    return sink.hex();
  };
  // hashlib: sha256(sha256(b"a.bias\0f32\0" b"2\0" + pack("<2f", 7, 8)).digest() + ...)
  EXPECT_EQ(hash(), "5c9d939b5aa467cb08a7e7328cf55be2f6bb672bcc1dd7e330f118ca00c76c2e");
  EXPECT_EQ(hash(true), hash());
  std::string before = hash();
  parameters[0].shape = {3, 2};
  EXPECT_NE(hash(), before);
  parameters[0].shape = {2, 3};
  bias[1] = 9;
  EXPECT_NE(hash(), before);
}
} // namespace

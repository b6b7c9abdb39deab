//===- NpzTest.cpp - .npz files, and micro-batches out of them ------------===//

#include "Data/NpzSource.h"
#include "NpzWriter.h"
#include "dsopt/Runtime/Mappings.h"

#include <gtest/gtest.h>

#include <numeric>

#include <unistd.h>

using namespace dsopt::runtime;
using dsopt::test::NpzWriter;

namespace {
class Npz : public ::testing::Test {
protected:
  std::string path = ::testing::TempDir() + "npz-test-" + std::to_string(getpid()) + ".npz";
  Program program;
  void SetUp() override {
    program.grid = dsopt::Grid({1, 2, 1, 1, 1});
    program.M = 2;
    program.K = 4;
    program.V = 2;
    program.inputs.push_back({"x", "f32", {2, 3}, false, -100});
    program.inputs.push_back({"labels", "i64", {2}, true, -100});
  }
  void TearDown() override { std::remove(path.c_str()); }

  std::vector<float> floats(int n) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 0.f);
    return values;
  }
  /// Both inputs as streams of `n` micro-batches.
  NpzWriter good(int n) {
    NpzWriter writer;
    writer.add("x", "<f4", "(" + std::to_string(n) + ", 2, 3)", floats(n * 6));
    writer.add("labels", "<i8", "(" + std::to_string(n) + ", 2)", std::vector<int64_t>(n * 2, 1));
    return writer;
  }
  std::string refusal(const NpzWriter &writer) {
    writer.write(path);
    try {
      NpzSource(program, path).plannedSteps(0, 0);
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      std::string text = error.what();
      EXPECT_EQ(text.compare(0, path.size(), path), 0) << text;
      return text.substr(path.size());
    }
    return "no error";
  }
};

TEST_F(Npz, HeadersOfEveryVersionAndKindOfMember) {
  for (int version : {1, 2, 3})
    for (bool deflate : {false, true})
      for (bool zip64 : {false, true}) {
        NpzWriter writer;
        writer.npyVersion = version;
        writer.deflate = deflate;
        writer.zip64 = zip64;
        writer.add("a", "<f4", "(2, 3)", floats(6));
        writer.add("one", "<i2", "(5,)", std::vector<int16_t>{1, 2, 3, 4, -5});
        writer.add("scalar", "|b1", "()", std::vector<uint8_t>{1});
        writer.write(path);
        std::vector<NpzArray> arrays = readNpzHeaders(path);
        ASSERT_EQ(arrays.size(), 3u);
        EXPECT_EQ(describeArray(arrays[0]), "f32 [2, 3]");
        EXPECT_EQ(describeArray(arrays[1]), "i16 [5]");
        EXPECT_EQ(describeArray(arrays[2]), "i1 []");
        NpzFile file(path);
        int16_t last;
        std::memcpy(&last, file.data(*file.find("one")) + 8, 2);
        EXPECT_EQ(last, -5);
        EXPECT_EQ(std::memcmp(file.data(*file.find("a")), floats(6).data(), 24), 0);
      }
}

TEST_F(Npz, StepsTakeMicroBatchesInOrderAndWrapAround) {
  good(10).write(path);
  NpzSource source(program, path);
  source.prepare();
  EXPECT_EQ(source.plannedSteps(2, 0), 2);
  EXPECT_TRUE(source.notes().empty());
  EXPECT_EQ(source.plannedSteps(5, 0), 5);
  ASSERT_EQ(source.notes().size(), 1u);
  EXPECT_EQ(source.notes()[0].text, path + ": 5 steps of 4 micro-batches go 2.0 times through its 10");
  EXPECT_FALSE(source.notes()[0].warning);
  float x[6];
  source.fill(0, 3, 0, x);
  EXPECT_EQ(x[0], 18);
  source.fill(2, 3, 0, x); // micro-batch 11 of 10
  EXPECT_EQ(x[0], 6);
}

TEST_F(Npz, OnePassLeavesOutWhatDoesNotFillAStep) {
  good(10).write(path);
  NpzSource source(program, path);
  EXPECT_EQ(source.plannedSteps(0, 0), 2);
  ASSERT_EQ(source.notes().size(), 1u);
  EXPECT_NE(source.notes()[0].text.find("the last 2 of 10 micro-batches"), std::string::npos);
  EXPECT_TRUE(source.notes()[0].warning);
  EXPECT_EQ(NpzSource(program, path).plannedSteps(0, 3), 6);
}

TEST_F(Npz, RowsAreCutIntoMicroBatches) {
  NpzWriter writer;
  writer.add("x", "<f4", "(9, 3)", floats(27));
  writer.add("labels", "<i4", "(2, 2, 2)", std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  writer.write(path);
  NpzSource source(program, path);
  source.prepare();
  EXPECT_EQ(source.microBatches(), 4);
  ASSERT_EQ(source.notes().size(), 1u);
  EXPECT_NE(source.notes()[0].text.find("the last 1 of 9 rows do not fill a micro-batch of 2"),
            std::string::npos);
  int64_t labels[2];
  source.fill(0, 3, 1, labels);
  EXPECT_EQ(labels[0], 6);
  EXPECT_EQ(labels[1], 7);
}

TEST_F(Npz, IntegersOfEveryWidthAreConverted) {
  program.inputs = {{"labels", "i32", {2}, false, -100}};
  auto first = [&](auto value, const char *dtype) {
    NpzWriter writer;
    writer.add("labels", dtype, "(4, 2)", std::vector<decltype(value)>(8, value));
    writer.write(path);
    NpzSource source(program, path);
    source.prepare();
    int32_t labels[2];
    source.fill(0, 0, 0, labels);
    return labels[1];
  };
  EXPECT_EQ(first(int8_t(-7), "|i1"), -7);
  EXPECT_EQ(first(uint8_t(200), "|u1"), 200);
  EXPECT_EQ(first(uint16_t(65535), "<u2"), 65535);
  EXPECT_EQ(first(int64_t(-3), "<i8"), -3);
  EXPECT_THROW(first(int64_t(1) << 40, "<i8"), Error);
  EXPECT_THROW(first(uint32_t(3000000000), "<u4"), Error);
}

TEST_F(Npz, FloatsAreReadAsWiderOnes) {
  auto first = [&](const char *type, const char *dtype, auto bits, auto result, const char *source = "") {
    program.inputs = {{"x", type, {2}, false, -100}};
    program.inputs[0].source = source;
    NpzWriter writer;
    writer.add("x", dtype, "(4, 2)", std::vector<decltype(bits)>(8, bits));
    writer.write(path);
    NpzSource source_(program, path);
    source_.prepare();
    decltype(result) x[2] = {};
    source_.fill(0, 0, 0, x);
    return x[1];
  };
  EXPECT_EQ(first("f32", "<f2", uint16_t(0x3e00), 0.0f), 1.5f);
  EXPECT_EQ(first("f64", "<f2", uint16_t(0x3e00), 0.0), 1.5);
  EXPECT_EQ(first("f64", "<f4", 0.1f, 0.0), double(0.1f));
  EXPECT_EQ(first("f32", "<u2", uint16_t(0x3fc0), 0.0f, "bf16"), 1.5f);
  EXPECT_EQ(first("f32", "<f8", 0.1, 0.0f), 0.1f);
  EXPECT_THROW(first("f32", "<f8", 1e300, 0.0f), Error);
  EXPECT_THROW(first("f32", "<i4", 1, 0.0f), Error);
}

TEST_F(Npz, WhatDoesNotFitIsNamed) {
  NpzWriter missing;
  missing.add("x", "<f4", "(4, 2, 3)", floats(24));
  EXPECT_EQ(refusal(missing), ": no array 'labels' for the input i64 [2]; the file has x");

  NpzWriter wide = good(4), shape, rank, type, order, few = good(3), uneven;
  for (NpzWriter *one : {&shape, &rank, &type, &order})
    one->add("labels", "<i8", "(4, 2)", std::vector<int64_t>(8));
  shape.add("x", "<f4", "(4, 3, 3)", floats(36));
  EXPECT_EQ(refusal(shape), ": array 'x' has shape [4, 3, 3], expected a stream of micro-batches of [2, 3]");
  rank.add("x", "<f4", "(8,)", floats(8));
  EXPECT_EQ(refusal(rank),
            ": array 'x' has shape [8], expected micro-batches of [2, 3] (or more axes before it)");
  type.add("x", "<i8", "(4, 2, 3)", std::vector<int64_t>(24));
  EXPECT_EQ(refusal(type), ": array 'x' has type i64, expected f32");
  order.add("x", "<f4", "(4, 2, 3)", floats(24), "True");
  EXPECT_EQ(refusal(order), ": array 'x' is stored in Fortran order; save numpy.ascontiguousarray of it");
  EXPECT_EQ(refusal(few), ": holds 3 micro-batches, but one step takes 4 (2 dp x 2 micro-batches)");
  uneven.add("x", "<f4", "(4, 2, 3)", floats(24));
  uneven.add("labels", "<i8", "(5, 2)", std::vector<int64_t>(10));
  EXPECT_EQ(refusal(uneven), ": array 'x' holds 4 micro-batches, but 'labels' holds 5");
}

TEST_F(Npz, TruncatedAndForeignFilesAreErrors) {
  std::string whole = good(4).bytes();
  for (size_t length = 0; length < whole.size(); length += 7) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    EXPECT_THROW(readNpzHeaders(path), Error) << length;
  }
  // A changed byte may go unseen but must not crash.
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 0x55;
    std::ofstream(path, std::ios::binary) << changed;
    try {
      readNpzHeaders(path);
    } catch (const Error &) {
    }
  }
  EXPECT_THROW(readNpzHeaders("/nonexistent.npz"), Error);
}

/// What reading all arrays says is wrong with a file.
static std::string damage(const std::string &path) {
  try {
    NpzFile file(path);
    for (const NpzArray &array : file.arrays())
      file.data(array);
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusInput);
    return error.what();
  }
  return "none";
}

TEST_F(Npz, EveryDamagedByteOfAnArrayIsFound) {
  for (bool deflate : {false, true}) {
    NpzWriter writer;
    writer.deflate = deflate;
    writer.add("x", "<f4", "(30,)", floats(30));
    std::string whole = writer.bytes();
    writer.write(path);
    EXPECT_EQ(damage(path), "none");
    NpzFile file(path);
    for (uint64_t at = 0; at < file.arrays()[0].storedBytes; ++at) {
      std::string changed = whole;
      changed[file.arrays()[0].offset + at] ^= 1 << at % 8;
      std::ofstream(path + ".changed", std::ios::binary) << changed;
      std::string got = damage(path + ".changed");
      // Some bits of a deflated member mean nothing.
      if (deflate && got == "none") {
        NpzFile same(path + ".changed");
        EXPECT_EQ(std::memcmp(same.data(same.arrays()[0]), floats(30).data(), 120), 0) << at;
      } else {
        EXPECT_NE(got.find(": not a readable .npz file: array 'x' "), std::string::npos) << at << ": " << got;
      }
    }
    std::remove((path + ".changed").c_str());
  }
}

TEST_F(Npz, LargeArraysAreSummedInParts) {
  NpzWriter writer;
  writer.add("x", "<f4", "(10000000,)", floats(10000000));
  std::string whole = writer.bytes();
  writer.write(path);
  EXPECT_EQ(damage(path), "none");
  for (size_t at : {size_t(1000), whole.size() / 2, whole.size() - 200}) {
    std::string changed = whole;
    changed[at] ^= 1;
    std::ofstream(path, std::ios::binary) << changed;
    EXPECT_NE(damage(path).find("array 'x' is damaged: its checksum differs"), std::string::npos) << at;
  }
}

TEST_F(Npz, NothingIsAllocatedThatAFileOnlyClaims) {
  NpzWriter writer;
  writer.deflate = writer.zip64 = true;
  writer.add("x", "<f4", "(30,)", floats(30));
  std::string whole = writer.bytes();
  // The size before its compression, in the directory's zip64 field.
  size_t field = whole.find("x.npy", whole.find("x.npy") + 1) + 5 + 4;
  uint64_t claimed = uint64_t(1) << 45;
  std::memcpy(&whole[field], &claimed, sizeof claimed);
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_NE(damage(path).find("bytes become 35184372088832"), std::string::npos) << damage(path);
}

TEST_F(Npz, AFileThatIsCutLaterIsNamed) {
  good(4000).write(path);
  EXPECT_EXIT(
      {
        reportLostMappings(STDERR_FILENO, "error: ", '\n');
        NpzSource source(program, path);
        source.prepare();
        truncate(path.c_str(), 100);
        float x[6];
        source.fill(900, 3, 0, x);
      },
      ::testing::ExitedWithCode(StatusFailure), "error: .*npz-test.*cannot be read any more");
}

TEST_F(Npz, WhatALetterMeansElsewhereMayBeInAName) {
  std::string odd = path.substr(0, path.size() - 4) + ",a[b].npz";
  EXPECT_FALSE(namesNpz(odd));
  good(4).write(odd);
  EXPECT_TRUE(namesNpz(odd));
  EXPECT_EQ(openData(program, odd)->microBatches(), 4);
  std::remove(odd.c_str());
}
} // namespace

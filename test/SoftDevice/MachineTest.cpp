//===- MachineTest.cpp - kernels on the software device -------------------===//
//
// Compiled kernels against plain C++, and kernels with one mistake each, which must be
// found whatever the order in which warps and blocks run.
//
//===----------------------------------------------------------------------===//

#include "Machine/Numbers.h"
#include "Machine/Program.h"
#include "Machine/Warp.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace softdevice;

namespace {
const std::string folder = std::string(DSOPT_PTX_FOLDER) + "/";

std::string fileText(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

class Machine : public testing::Test {
protected:
  template <class T> uint64_t upload(const std::vector<T> &values) {
    uint64_t address = memory.allocate(values.size() * sizeof(T), "an allocation");
    std::memcpy(memory.reach(address, values.size() * sizeof(T), false, true, "upload"), values.data(),
                values.size() * sizeof(T));
    return address;
  }
  template <class T> uint64_t room(size_t count) {
    return memory.allocate(count * sizeof(T), "an allocation");
  }
  template <class T> std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), memory.reach(address, count * sizeof(T), true, false, "download"),
                count * sizeof(T));
    return values;
  }
  void launch(Program &program, const std::string &name, uint32_t blocks, uint32_t threads,
              const std::string &parameters, uint64_t seed = 1) {
    const Kernel *kernel = program.kernel(name);
    ASSERT_TRUE(kernel) << name;
    EXPECT_EQ(static_cast<int64_t>(parameters.size()), kernel->parameterBytes);
    std::mt19937_64 random(seed);
    Grid grid{*kernel, memory, parameters.data(), {blocks, 1, 1}, {threads, 1, 1}, 0, random};
    runGrid(grid);
  }
  /// What the fault says that a launch ends in; empty if it ends well.
  template <class... Values>
  std::string fault(Program &program, const std::string &name, uint32_t threads, uint64_t seed,
                    Values... values) {
    return faultOfBlocks(program, name, 1, threads, seed, values...);
  }
  template <class... Values>
  std::string faultOfBlocks(Program &program, const std::string &name, uint32_t blocks, uint32_t threads,
                            uint64_t seed, Values... values) {
    try {
      launch(program, name, blocks, threads, pack(values...), seed);
    } catch (const Fault &fault) {
      return fault.what();
    }
    return "";
  }
  template <class... Values> static std::string pack(Values... values) {
    std::string bytes;
    auto add = [&](auto value) {
      bytes.resize((bytes.size() + sizeof(value) - 1) / sizeof(value) * sizeof(value));
      bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
    };
    (add(values), ...);
    return bytes;
  }
  std::vector<float> random(size_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float &value : values)
      value = normal(generator);
    return values;
  }

  Memory memory{256 << 20};
  std::mt19937 generator{7};
};

double worst(const std::vector<float> &a, const std::vector<double> &b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::fabs(a[i] - b[i]) / (1 + std::fabs(b[i])));
  return most;
}
} // namespace

// Those of the routines, too, of which programs run a few.
TEST_F(Machine, AllSpellingsAreKnown) {
  std::vector<std::string> files = {folder + "rows.ptx", folder + "products.ptx"};
  for (const auto &entry : std::filesystem::directory_iterator(DSOPT_ROUTINES_FOLDER))
    if (entry.path().extension() == ".ptx")
      files.push_back(entry.path());
  EXPECT_GT(files.size(), 20u);
  for (const std::string &file : files) {
    Program program(memory, fileText(file));
    EXPECT_FALSE(program.kernels().empty()) << file;
    for (const std::string &name : program.kernels())
      EXPECT_EQ(program.kernel(name)->unsupported, std::vector<std::string>()) << name;
  }
}

TEST_F(Machine, Elementwise) {
  Program program(memory, fileText(folder + "rows.ptx"));
  int rows = 13, columns = 37;
  std::vector<float> a = random(rows * columns), bias = random(columns), x = random(rows * columns);
  uint64_t y = room<float>(rows * columns);
  launch(program, "bias_gelu", 3, 96, pack(upload(a), upload(bias), upload(x), y, rows, columns));
  std::vector<double> expected;
  for (int i = 0; i < rows * columns; ++i) {
    double v = a[i] + bias[i % columns];
    expected.push_back(x[i] + 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v))));
  }
  EXPECT_LT(worst(download<float>(y, rows * columns), expected), 1e-6);
}

TEST_F(Machine, RowsWithSharedMemory) {
  Program program(memory, fileText(folder + "rows.ptx"));
  for (auto [columns, threads] : {std::pair(1, 32), {100, 64}, {129, 128}, {5000, 1024}}) {
    int rows = 5;
    std::vector<float> x = random(rows * columns, 3);
    uint64_t y = room<float>(rows * columns);
    launch(program, "softmax", rows, threads, pack(upload(x), y, columns));
    std::vector<double> expected;
    for (int row = 0; row < rows; ++row) {
      double sum = 0;
      for (int i = 0; i < columns; ++i)
        sum += std::exp(x[row * columns + i]);
      for (int i = 0; i < columns; ++i)
        expected.push_back(std::exp(x[row * columns + i]) / sum);
    }
    EXPECT_LT(worst(download<float>(y, rows * columns), expected), 1e-6) << columns;
  }
}

TEST_F(Machine, AtomicsAndStructuresAsParameters) {
  Program program(memory, fileText(folder + "rows.ptx"));
  int rows = 40, columns = 33;
  std::vector<float> x = random(rows * columns);
  uint64_t sums = upload(std::vector<float>(columns));
  launch(program, "column_sums", rows, 32, pack(upload(x), sums, rows, columns));
  std::vector<double> expected(columns);
  for (int i = 0; i < rows * columns; ++i)
    expected[i % columns] += x[i];
  EXPECT_LT(worst(download<float>(sums, columns), expected), 1e-6);

  struct Step {
    float rate, decay, beta1, beta2, epsilon;
    int count;
  } step{0.01f, 0.1f, 0.9f, 0.99f, 1e-8f, 1000};
  std::vector<float> w = random(1000), g = random(1000), m = random(1000, 0.1f), v = random(1000, 0.1f);
  for (float &value : v)
    value *= value;
  uint64_t there = upload(w);
  std::string parameters = pack(there, upload(g), upload(m), upload(v));
  parameters.append(reinterpret_cast<const char *>(&step), sizeof(step));
  launch(program, "adamw", 8, 128, parameters);
  expected.clear();
  for (int i = 0; i < 1000; ++i) {
    double first = 0.9 * m[i] + 0.1 * g[i], second = 0.99 * v[i] + 0.01 * g[i] * g[i];
    expected.push_back(w[i] * (1 - 0.001) - 0.01 * first / (std::sqrt(second) + 1e-8));
  }
  EXPECT_LT(worst(download<float>(there, 1000), expected), 1e-5);
}

TEST_F(Machine, VectorsAndBranchTables) {
  Program program(memory, fileText(folder + "rows.ptx"));
  std::vector<float> x = random(512);
  x[7] = NAN, x[9] = INFINITY, x[10] = 1 + 0x1p-8f, x[11] = 1 + 3 * 0x1p-8f;
  uint64_t y = room<uint16_t>(512);
  launch(program, "to_bf16", 1, 128, pack(upload(x), y, 512));
  std::vector<uint16_t> narrow = download<uint16_t>(y, 512);
  for (int i = 0; i < 512; ++i)
    EXPECT_EQ(narrow[i], toBF16(x[i])) << i;
  EXPECT_EQ(narrow[7], 0x7fff);
  EXPECT_EQ(narrow[10], 0x3f80);
  EXPECT_EQ(narrow[11], 0x3f82);

  std::vector<int> start(100), expected;
  for (int i = 0; i < 100; ++i) {
    start[i] = i + 1;
    int64_t value = i + 1;
    for (expected.push_back(0); value != 1; ++expected.back())
      value = value % 2 ? 3 * value + 1 : value / 2;
  }
  uint64_t steps = room<int>(100);
  launch(program, "collatz", 2, 64, pack(upload(start), steps, 100));
  EXPECT_EQ(download<int>(steps, 100), expected);
}

TEST_F(Machine, ProductsOfTiles) {
  Program program(memory, fileText(folder + "products.ptx"));
  int m = 128, n = 192, k = 96;
  std::vector<uint16_t> a(m * k), b(n * k);
  for (uint16_t &value : a)
    value = toBF16(random(1)[0]);
  for (uint16_t &value : b)
    value = toBF16(random(1)[0]);
  uint64_t c = room<float>(m * n);
  launch(program, "product_bf16", m / 64 * n / 64, 128, pack(upload(a), upload(b), c, n, k));
  std::vector<double> expected(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int l = 0; l < k; ++l)
        expected[i * n + j] += double(fromBF16(a[i * k + l])) * fromBF16(b[j * k + l]);
  EXPECT_LT(worst(download<float>(c, m * n), expected), 1e-5);
  EXPECT_NE(fault(program, "product_without_wait", 128, 1, upload(a), upload(b), c, n, k)
                .find("was not waited for"),
            std::string::npos);
}

TEST_F(Machine, EveryMistakeIsFoundUnderEverySeed) {
  Program program(memory, fileText(folder + "faults.ptx"));
  std::vector<float> values(64, 1);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto expect = [&](const std::string &said, std::initializer_list<const char *> words) {
      for (const char *word : words)
        EXPECT_NE(said.find(word), std::string::npos) << word << " is not in: " << said;
    };
    uint64_t x = upload(values), y = room<float>(64);
    expect(fault(program, "past_the_end", 96, seed, y),
           {"global write", "0 bytes past the end of an allocation of 256",
            "kernel past_the_end block (0,0,0) thread (64,0,0)", "PTX line", "st.global.b32"});
    expect(fault(program, "unwritten", 64, seed, room<float>(64), y), {"nobody wrote", "ld.global"});
    expect(fault(program, "misaligned", 1, seed, x), {"no multiple"});
    EXPECT_EQ(fault(program, "with_barriers", 64, seed, x, y), "");
    expect(fault(program, "without_barrier", 64, seed, x, y), {"shared memory", "PTX line"});
    expect(fault(program, "without_barrier_behind", 64, seed, x, y), {"a race", "with no barrier between"});
    uint64_t places = upload(std::vector<int>(64, 7)), counts = room<int>(64);
    EXPECT_EQ(fault(program, "shared_atomics", 64, seed, places, counts), "");
    expect(fault(program, "shared_atomics_too_early", 64, seed, places, counts),
           {"of shared memory", "atom.shared"});
    expect(fault(program, "shared_atomics_read_too_early", 64, seed, places, counts),
           {"a race", "of shared memory"});
    expect(fault(program, "unwritten_shared", 64, seed, y), {"shared memory that nobody wrote"});
    expect(fault(program, "past_shared", 64, seed, y, 1),
           {"of shared memory past the end of a variable", "thread (63,0,0)"});
    expect(fault(program, "barrier_of_some_lanes", 64, seed, y), {"divergent lanes"});
    expect(fault(program, "barrier_of_some_warps", 64, seed, y),
           {"has ended while others wait at barrier 0"});
    expect(fault(program, "barrier_after_return", 64, seed, y, 40), {"divergent lanes"});
    expect(fault(program, "divergent_shuffle", 32, seed, y), {"divergent lanes", "shfl.sync"});
    expect(fault(program, "ends_in_a_trap", 64, seed, 40), {"a trap", "thread (40,0,0)"});
    expect(fault(program, "unknown", 32, seed, upload(std::vector<int>{1})),
           {"does not have", "nanosleep.u32"});
    EXPECT_EQ(fault(program, "barrier_after_return", 64, seed, y, 64), "");
    auto fresh = [&] { return upload(std::vector<int>(128)); };
    expect(faultOfBlocks(program, "blocks_write_the_same", 2, 32, seed, fresh()),
           {"a race: a write of", "of global memory that block", "writes with nothing between"});
    expect(faultOfBlocks(program, "block_reads_another", 2, 32, seed, fresh()), {"a race", "that block"});
    EXPECT_EQ(fault(program, "blocks_write_the_same", 32, seed, fresh()), "");
    expect(fault(program, "memory_without_barrier", 64, seed, fresh()), {"a race", "that warp"});
    EXPECT_EQ(fault(program, "memory_with_barrier", 64, seed, fresh()), "");
    expect(fault(program, "with_barriers", 2000, seed, x, y), {"2000 threads, expected at most 1024"});
  }
}

//===- ParametersTest.cpp - values from files that may have changed --------===//

#include "Core/Parameters.h"
#include "Core/SquareSums.h"
#include "Toy.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

static std::string failure(const Program &program, const std::string &folder) {
  float values[kToyElements];
  try {
    ParameterFiles files(folder);
    files.read(program.parameters[1], 3, 9, reinterpret_cast<char *>(values));
    EXPECT_EQ(values[0], std::cos(103.0f));
  } catch (const Error &error) {
    EXPECT_EQ(error.status, 1);
    return error.what();
  }
  return "";
}

TEST(Parameters, AFileThatNoLongerMatchesIsNamed) {
  Folder folder;
  Program program = toyProgram(1, 1, 1, folder.path);
  std::string path = folder.path + "/toy.bin";
  EXPECT_EQ(failure(program, folder.path), "");
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(500).put('x');
  EXPECT_EQ(failure(program, folder.path),
            "parameter 'a.w1' in file '" + path +
                "' has changed since the program was compiled (bytes 400 to 912)");
  std::ofstream(path, std::ios::binary) << "short";
  EXPECT_EQ(failure(program, folder.path),
            "'" + path +
                "', which holds parameter 'a.w1', has 5 bytes; it had 912 when the program was compiled");
  remove(path.c_str());
  EXPECT_EQ(failure(program, folder.path),
            "cannot read '" + path + "', which holds parameter 'a.w1': No such file or directory");
  program.parameters[1].chunks.clear();
  EXPECT_EQ(failure(program, folder.path),
            "the values of parameter 'a.w1' were not there when the program was "
            "compiled (file 'toy.bin'): compile it with them");
}

/// The sum of a parameter that lies in two buckets is over both, whichever is computed anew.
TEST(Parameters, SquaresOfPartsAddUp) {
  Program program;
  program.buckets.resize(2);
  for (const char *name : {"cut", "whole"}) {
    Parameter parameter;
    parameter.name = name;
    parameter.type = "f32";
    program.parameters.push_back(parameter);
  }
  program.parameters[0].shape = {3};
  program.parameters[0].parts = {{0, 0, 0, 2}, {1, 64, 2, 1}};
  program.parameters[1].shape = {1};
  program.parameters[1].bucket = 1;
  std::vector<float> first(64), second(128);
  first[0] = 1, first[1] = 2;
  second[0] = 7, second[64] = 3;
  ThreadPool pool(2, 0);
  SquareSums sums(program, 2, /*byParameter=*/true);
  size_t ranges[] = {sums.addRange(0, Element::F32, first.data(), 0, 64),
                     sums.addRange(1, Element::F32, second.data(), 0, 128)};
  for (size_t range : ranges)
    sums.compute(range, pool);
  EXPECT_EQ(sums.of(0).value(), 14);
  EXPECT_EQ(sums.of(1).value(), 49);
  first[1] = 4;
  sums.compute(ranges[0], pool);
  EXPECT_EQ(sums.total().value(), 17);
  EXPECT_EQ(sums.of(0).value(), 26);
}

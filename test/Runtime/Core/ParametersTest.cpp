//===- ParametersTest.cpp - values from files that may have changed --------===//

#include "Core/Parameters.h"
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

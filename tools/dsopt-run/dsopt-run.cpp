//===- dsopt-run.cpp - main() of every trained program --------------------===//
//
// `dsopt-run PROGRAM.so [run options]`; an executable written by `dsopt -o` is a
// copy of it with the program appended, and takes the run options alone.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Runtime/RunMain.h"

int main(int argc, char **argv) { return dsopt::runtime::runMain(argc, argv); }

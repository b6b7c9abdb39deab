//===- JsonPlaces.h - a JSON file with the place of each key ----*- C++ -*-===//
//
// LLVM's parser reads the values; this adds what it forgets: the line and column
// of each key, and keys that are there twice.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_JSONPLACES_H
#define DSOPT_TOOLS_DSOPT_JSONPLACES_H

#include "llvm/Support/JSON.h"

#include <map>
#include <string>

namespace dsopt {

struct JsonFile {
  std::string path;
  llvm::json::Value value = nullptr;
  std::map<std::string, std::string> places; ///< "line:column" of each key, by "block.key"
};

/// Reads a file that holds one object. An Error of status 1 names line and column of what is no JSON, and
/// both places of a key that is there twice.
JsonFile readJson(const std::string &path);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_JSONPLACES_H

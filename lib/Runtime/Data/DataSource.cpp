//===- DataSource.cpp - what all data has in common, and what -data names -===//

#include "NpzSource.h"
#include "StreamSource.h"
#include "TokenSource.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cstring>

#include <glob.h>

using namespace dsopt::runtime;

std::string dsopt::runtime::describeInputs(const Program &program) {
  std::string text;
  for (const Input &input : program.inputs)
    text += (text.empty() ? "" : ", ") + input.name + " " + input.type + " " + describeShape(input.shape);
  return text;
}

//===----------------------------------------------------------------------===//
// The stream
//===----------------------------------------------------------------------===//

/// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators": the finalizer.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

int64_t dsopt::runtime::permuted(int64_t index, int64_t size, uint64_t seed, uint64_t epoch) {
  // A Feistel network over the next power of four, walked until it comes back into the range (Black and
  // Rogaway 2002, "Ciphers with arbitrary finite domains", section 4).
  int half = 1;
  while ((INT64_C(1) << (2 * half)) < size)
    ++half;
  uint64_t mask = (UINT64_C(1) << half) - 1, key = mix(seed ^ mix(epoch));
  uint64_t value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half, right = value & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      uint64_t next = left ^ (mix(key + round * 0x632be59bd9b4e019 + right) & mask);
      left = right;
      right = next;
    }
    value = left << half | right;
  } while (value >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(value);
}

void DataSource::setCount(int64_t microBatches) {
  if (microBatches < 1)
    throw Error(StatusInput, name + ": holds not one micro-batch of " +
                                 std::to_string(std::max<int64_t>(program.micro_batch_size, 1)) + " rows");
  count = wrap = microBatches;
}

int64_t DataSource::plannedSteps(int64_t steps, int64_t epochs) {
  if (count < program.K)
    throw Error(StatusInput, name + ": holds " + std::to_string(count) +
                                 " micro-batches, but one step takes " + std::to_string(program.K) + " (" +
                                 std::to_string(program.dp()) + " dp x " + std::to_string(program.M) +
                                 " micro-batches)");
  if (steps > 0) {
    double passes = static_cast<double>(steps) * static_cast<double>(program.K) / static_cast<double>(count);
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", passes);
    if (passes > 1)
      lines.push_back({name + ": " + std::to_string(steps) + " steps of " + std::to_string(program.K) +
                       (program.K == 1 ? " micro-batch go " : " micro-batches go ") + text +
                       " times through its " + std::to_string(count)});
    return steps;
  }
  int64_t rest = count % program.K;
  if (rest)
    lines.push_back({name + ": the last " + std::to_string(rest) + " of " + std::to_string(count) +
                         " micro-batches do not fill a step of " + std::to_string(program.K) +
                         " and are left out",
                     true});
  wrap = count - rest;
  return (epochs > 0 ? epochs : 1) * (count / program.K);
}

void DataSource::shuffle(int64_t newSeed) {
  shuffled = true;
  seed = static_cast<uint64_t>(newSeed);
}

int64_t DataSource::itemAt(int64_t step, int64_t microBatch, int64_t item, int64_t size) const {
  int64_t at = shift + step * program.K + microBatch;
  int64_t index = at % wrap * size + item;
  return shuffled ? permuted(index, count * size, seed, static_cast<uint64_t>(at / wrap)) : index;
}

//===----------------------------------------------------------------------===//
// What -data names
//===----------------------------------------------------------------------===//

static bool isFolder(const std::string &path) {
  struct stat info;
  return sys::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// Whether text is the name of what is there: then its letters mean nothing else.
static bool exists(const std::string &text) {
  struct stat info;
  return sys::stat(text.c_str(), &info) == 0;
}

bool dsopt::runtime::namesNpz(const std::string &text) {
  return text.size() > 4 && text.compare(text.size() - 4, 4, ".npz") == 0 &&
         (text.find_first_of(",*?[") == std::string::npos || exists(text));
}

/// Files that a pattern matches, in name order.
static std::vector<std::string> matching(const std::string &pattern) {
  std::vector<std::string> paths;
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

static std::vector<std::string> tokenFiles(const std::string &text) {
  std::vector<std::string> paths;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = exists(text) ? text.size() : std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    bool folder = isFolder(part), pattern = part.find_first_of("*?[") != std::string::npos && !exists(part);
    if (!folder && !pattern) {
      paths.push_back(part);
      continue;
    }
    std::vector<std::string> found = matching(folder ? part + "/*.bin" : part);
    if (found.empty() && folder)
      found = matching(part + "/*.npy");
    if (found.empty())
      throw Error(StatusInput,
                  "option -data: " + (folder ? "the folder " + part + " holds no .bin and no .npy files"
                                             : "no file matches " + part));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

std::vector<std::string> dsopt::runtime::filesOf(const std::string &text) {
  if (text.rfind(kStreamPrefix, 0) == 0)
    return {};
  return namesNpz(text) ? std::vector<std::string>{text} : tokenFiles(text);
}

void dsopt::runtime::checkFiles(const std::string &text, int64_t tokenBytes) {
  if (text.rfind(kStreamPrefix, 0) == 0)
    return;
  if (namesNpz(text)) {
    NpzFile file(text);
    return;
  }
  for (const std::string &path : tokenFiles(text))
    if (!namesNpz(path))
      TokenFile file(path, tokenBytes);
}

std::unique_ptr<DataSource> dsopt::runtime::openData(const Program &program, const std::string &text,
                                                     const TokenOptions &tokens, bool pad) {
  if (text.empty())
    throw Error(StatusInput, "no data: give -data=FILE.npz with the arrays " + describeInputs(program) +
                                 ", or files of tokens");
  if (text.rfind(kStreamPrefix, 0) == 0)
    return std::make_unique<StreamSource>(program, text.substr(std::strlen(kStreamPrefix)), pad);
  if (namesNpz(text))
    return std::make_unique<NpzSource>(program, text, pad);
  std::vector<std::string> paths = tokenFiles(text);
  for (const std::string &path : paths)
    if (namesNpz(path))
      throw Error(StatusInput, "option -data=" + text + ": " + path +
                                   " is one of several files; expected one .npz file, or files of tokens");
  return std::make_unique<TokenSource>(program, text, paths, tokens);
}

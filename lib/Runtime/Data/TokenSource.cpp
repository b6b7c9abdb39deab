//===- TokenSource.cpp - micro-batches out of files of tokens -------------===//

#include "TokenSource.h"

#include <algorithm>

using namespace dsopt::runtime;

TokenSource::TokenSource(const Program &program, const std::string &text,
                         const std::vector<std::string> &paths, const TokenOptions &options)
    : DataSource(program, text), shifted(options.shifted) {
  for (const std::string &path : paths)
    shards.push_back({std::make_unique<TokenFile>(path, options.bytes), 0});
  assignRoles(options);
  int64_t windows = 0, tokens = 0;
  for (Shard &shard : shards) {
    if (!options.bytes)
      checkSample(*shard.file);
    shard.firstWindow = windows;
    int64_t count = shard.file->tokens();
    tokens += count;
    windows += std::max<int64_t>(0, count - (shifted ? 1 : 0)) / length;
  }
  if (windows < program.K * rows)
    throw Error(StatusInput, name + ": holds " + std::to_string(windows) + " windows of " +
                                 std::to_string(length) + " tokens (" + std::to_string(tokens) +
                                 " tokens in " + std::to_string(paths.size()) + " file" +
                                 (paths.size() == 1 ? "" : "s") + "), but one step takes " +
                                 std::to_string(program.K * rows));
  if (windows % rows)
    lines.push_back({name + ": the last " + std::to_string(windows % rows) + " of " +
                         std::to_string(windows) + " windows do not fill a micro-batch of " +
                         std::to_string(rows) + " and are dropped",
                     true});
  setCount(windows / rows);
}

void TokenSource::assignRoles(const TokenOptions &options) {
  std::string tokens = options.input.empty() ? "input_ids" : options.input;
  std::string labels = options.label.empty() ? "labels" : options.label;
  const Input *input = nullptr;
  for (const Input &candidate : program.inputs)
    if (candidate.name == tokens)
      input = &candidate;
  if (!input)
    throw Error(StatusInput, name + ": there is no input '" + tokens + "' for tokens among " +
                                 describeInputs(program) + "; -token-input=NAME names it");
  if (input->shape.empty() || input->shape.size() > 2)
    throw Error(StatusInput, name + ": input '" + tokens + "' has shape " + describeShape(input->shape) +
                                 ", expected rows of tokens");
  length = input->shape.back();
  rows = input->shape.size() == 2 ? input->shape[0] : 1;
  for (const Input &other : program.inputs) {
    Role role = Role::Tokens;
    if (other.name == labels)
      role = Role::Labels;
    else if (other.name == "attention_mask")
      role = Role::Ones;
    else if (other.name == "position_ids")
      role = Role::Positions;
    else if (other.name != tokens)
      throw Error(StatusInput, name + ": nothing gives the input '" + other.name + "': tokens become '" +
                                   tokens + "', '" + labels + "', 'attention_mask' and 'position_ids'" +
                                   (other.label ? "; -label-input=" + other.name + " takes labels" : ""));
    bool sameShape = other.shape == input->shape || (role == Role::Positions && other.shape.size() == 2 &&
                                                     other.shape[0] == 1 && other.shape[1] == length);
    if (!sameShape)
      throw Error(StatusInput, name + ": input '" + other.name + "' has shape " + describeShape(other.shape) +
                                   ", expected " + describeShape(input->shape) + " as '" + tokens + "' has");
    static const char *const types[] = {"i64", "i32", "f32", "i1"};
    bool known = std::find(std::begin(types), std::end(types), other.type) != std::end(types);
    bool integer = other.type == "i64" || other.type == "i32";
    if (!known || (!integer && role != Role::Ones))
      throw Error(StatusInput,
                  name + ": input '" + other.name + "' has type " + other.type + ", expected i64 or i32");
    roles.push_back(role);
    if (role == Role::Tokens)
      bound = other.bound;
  }
}

void TokenSource::checkSample(const TokenFile &file) const {
  for (int64_t place : file.sample())
    if (int64_t token = file.at(place); bound && (token < 0 || token >= bound))
      throw Error(StatusInput, describe(file, place) + ": is " + std::to_string(token) +
                                   ", expected 0 or more and less than " + std::to_string(bound) +
                                   ", the rows that it is looked up in (raw tokens of another width? "
                                   "-token-bytes=2|4)");
}

std::string TokenSource::describe(const TokenFile &file, int64_t token) {
  return file.path() + ", token " + std::to_string(token) + " at byte " + std::to_string(file.offset(token));
}

std::pair<const TokenFile *, int64_t> TokenSource::window(int64_t step, int64_t microBatch,
                                                          int64_t row) const {
  int64_t index = itemAt(step, microBatch, row, rows);
  auto after = std::upper_bound(shards.begin(), shards.end(), index,
                                [](int64_t value, const Shard &shard) { return value < shard.firstWindow; });
  const Shard &shard = *std::prev(after);
  return {shard.file.get(), (index - shard.firstWindow) * length};
}

void TokenSource::fill(int64_t step, int64_t microBatch, int64_t index, void *target) {
  const Input &input = program.inputs[index];
  Role role = roles[index];
  int64_t inputRows = input.shape.size() == 2 ? input.shape[0] : 1;
  auto write = [&](auto *to) {
    for (int64_t row = 0; row < inputRows; ++row, to += length) {
      if (role == Role::Ones) {
        std::fill_n(to, length, 1);
      } else if (role == Role::Positions) {
        for (int64_t i = 0; i < length; ++i)
          to[i] = i;
      } else {
        auto [file, first] = window(step, microBatch, row);
        first += role == Role::Labels && shifted;
        for (int64_t i = 0; i < length; ++i)
          to[i] = file->at(first + i);
      }
    }
  };
  if (input.type == "i64")
    write(static_cast<int64_t *>(target));
  else if (input.type == "i32")
    write(static_cast<int32_t *>(target));
  else if (input.type == "f32")
    write(static_cast<float *>(target));
  else
    write(static_cast<bool *>(target));
}

std::string TokenSource::describe(int64_t step, int64_t microBatch, int64_t input, int64_t element) {
  if (roles[input] != Role::Tokens && roles[input] != Role::Labels)
    return "";
  auto [file, first] = window(step, microBatch, element / length);
  return describe(*file, first + element % length + (roles[input] == Role::Labels && shifted));
}

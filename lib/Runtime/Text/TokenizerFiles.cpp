//===- TokenizerFiles.cpp - which files say what a tokenizer is -----------===//

#include "Data/MappedFile.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"
#include "dsopt/Runtime/Tokenizer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

using namespace dsopt::runtime;

static bool endsWith(const std::string &name, const std::string &ending) {
  return name.size() >= ending.size() &&
         name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

/// Whether a file of a folder is read.
static bool isOne(const std::string &name) {
  for (const char *known : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                            "added_tokens.json", "generation_config.json", "chat_template.jinja",
                            "chat_template.json", "tekken.json", "vocab.json", "merges.txt", "vocab.txt"})
    if (name == known)
      return true;
  return endsWith(name, ".model") || endsWith(name, ".tiktoken") || name.rfind("tokenizer.model", 0) == 0;
}

static std::string readAll(const std::string &path) {
  MappedFile file(path, "a tokenizer");
  return std::string(reinterpret_cast<const char *>(file.data()), file.size());
}

TokenizerFiles TokenizerFiles::read(const std::string &path) {
  TokenizerFiles files;
  files.where = path;
  struct stat info;
  if (sys::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    files.bytes[std::filesystem::path(path).filename()] = readAll(path);
    return files;
  }
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(path, error))
    if (std::string name = entry.path().filename(); isOne(name) && entry.is_regular_file(error))
      files.bytes[name] = readAll(entry.path());
  if (error)
    throw Error(statusOf(error.value()), path + ": cannot be read: " + error.message());
  return files;
}

// Packed, each text has its length in 8 bytes before it: the pattern, then names and bytes in turn.
std::string TokenizerFiles::pack() const {
  std::string packed;
  auto add = [&](const std::string &text) {
    uint64_t size = text.size();
    packed.append(reinterpret_cast<const char *>(&size), sizeof size).append(text);
  };
  add(pattern);
  for (const auto &[name, content] : bytes) {
    add(name);
    add(content);
  }
  return packed;
}

TokenizerFiles TokenizerFiles::unpack(std::string_view packed, const std::string &where) {
  TokenizerFiles files;
  files.where = where;
  auto take = [&] {
    uint64_t size = 0;
    if (packed.size() >= sizeof size)
      std::memcpy(&size, packed.data(), sizeof size);
    if (packed.size() < sizeof size || packed.size() - sizeof size < size)
      throw Error(StatusInput, where + " ends early");
    std::string text(packed.substr(sizeof size, size));
    packed.remove_prefix(sizeof size + size);
    return text;
  };
  files.pattern = take();
  while (!packed.empty()) {
    std::string name = take();
    files.bytes[name] = take();
  }
  return files;
}

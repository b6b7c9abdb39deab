//===- JsonPlaces.cpp - a JSON file with the place of each key ------------===//

#include "JsonPlaces.h"
#include "dsopt/Runtime/Error.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace dsopt {

namespace {
/// Walks text that is valid JSON.
class PlaceFinder {
public:
  PlaceFinder(StringRef text, JsonFile &file) : text(text), file(file) {}

  void value(const std::string &path) {
    blanks();
    char first = text[at];
    if (first == '{')
      return object(path);
    if (first == '[')
      return array(path);
    if (first == '"')
      string();
    else
      while (at < text.size() && !StringRef(",]} \t\r\n").contains(text[at]))
        ++at;
  }

private:
  void blanks() {
    while (at < text.size() && StringRef(" \t\r\n").contains(text[at]))
      ++at;
  }
  std::string place(size_t offset) const {
    StringRef before = text.take_front(offset);
    size_t line = before.count('\n') + 1, begin = before.rfind('\n') + 1; // npos + 1 is 0
    return std::to_string(line) + ":" + std::to_string(offset - begin + 1);
  }
  std::string string() {
    size_t begin = at++;
    while (text[at] != '"')
      at += text[at] == '\\' ? 2 : 1;
    ++at;
    Expected<json::Value> parsed = json::parse(text.slice(begin, at));
    if (parsed && parsed->getAsString())
      return parsed->getAsString()->str();
    consumeError(parsed.takeError());
    return "";
  }
  void object(const std::string &path) {
    ++at;
    for (blanks(); text[at] != '}'; blanks()) {
      size_t offset = at;
      std::string key = string(), inner = path.empty() ? key : path + "." + key;
      auto [it, isNew] = file.places.emplace(inner, place(offset));
      if (!isNew)
        throw runtime::Error(1, file.path + ":" + place(offset) + ": the key '" + inner +
                                    "' is there twice, first at " + it->second);
      blanks();
      ++at; // ':'
      value(inner);
      blanks();
      at += text[at] == ',';
    }
    ++at;
  }
  void array(const std::string &path) {
    ++at;
    int64_t index = 0;
    for (blanks(); text[at] != ']'; blanks()) {
      value(path + "[" + std::to_string(index++) + "]");
      blanks();
      at += text[at] == ',';
    }
    ++at;
  }

  StringRef text;
  JsonFile &file;
  size_t at = 0;
};
} // namespace

JsonFile readJson(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    throw runtime::Error(1, "cannot read " + path + ": " + buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();
  text.consume_front("\xef\xbb\xbf");
  JsonFile file;
  file.path = path;
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    std::string place, what;
    handleAllErrors(parsed.takeError(), [&](const ErrorInfoBase &info) { what = info.message(); });
    // "[line:column, byte=N]: what is wrong"
    StringRef message = what;
    if (message.consume_front("[")) {
      place = message.take_until([](char c) { return c == ','; }).str();
      what = message.substr(message.find("]: ") + 3).str();
    }
    bool comment = text.contains("//") || text.contains("/*") || text.contains("#");
    throw runtime::Error(1, path + ":" + place + ": no JSON: " + what +
                                (comment ? "; JSON has no comments (DeepSpeed reads Hjson, which has)" : ""));
  }
  if (!parsed->getAsObject())
    throw runtime::Error(1, path + ": expected one object {...} of keys");
  file.value = std::move(*parsed);
  PlaceFinder(text, file).value("");
  return file;
}

} // namespace dsopt

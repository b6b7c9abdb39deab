//===- JsonFields.cpp - members of an object in a stranger's file ---------===//

#include "JsonFields.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

/// Objects and arrays in each other: a file may not use up the stack.
static constexpr int kMostDepth = 64;

std::string text::shortly(const Json &json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

Fields::Fields(const Json &object, std::string where) : where(std::move(where)), object(object) {
  if (!object.is_object())
    fail("got " + shortly(object) + ", expected an object");
}

void Fields::fail(const std::string &what) const { throw Error(StatusInput, where + ": " + what); }

const Json *Fields::find(const char *name) {
  used.insert(name);
  auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json &Fields::get(const char *name) {
  const Json *found = find(name);
  if (!found)
    fail(std::string("lacks ") + name);
  return *found;
}

std::string Fields::text(const char *name) {
  const Json &found = get(name);
  if (!found.is_string())
    fail(std::string(name) + " got " + shortly(found) + ", expected a text");
  return found.get<std::string>();
}

std::string Fields::text(const char *name, const std::string &otherwise) {
  return find(name) ? text(name) : otherwise;
}

bool Fields::flag(const char *name, bool otherwise) {
  const Json *found = find(name);
  if (!found)
    return otherwise;
  if (!found->is_boolean())
    fail(std::string(name) + " got " + shortly(*found) + ", expected true or false");
  return found->get<bool>();
}

int64_t Fields::integer(const char *name) {
  const Json &found = get(name);
  if (!found.is_number_integer() || (found.is_number_unsigned() && found.get<uint64_t>() > INT64_MAX))
    fail(std::string(name) + " got " + shortly(found) + ", expected an integer");
  return found.get<int64_t>();
}

void Fields::ignore(std::initializer_list<const char *> names) { used.insert(names.begin(), names.end()); }

void Fields::finish() const {
  for (const auto &[name, value] : object.items())
    if (!used.count(name))
      fail("has " + name + ", which is not supported");
}

/// How many objects and arrays are in each other.
static int depthOf(std::string_view bytes) {
  int depth = 0, most = 0;
  bool isText = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    char c = bytes[i];
    if (isText && c == '\\')
      ++i;
    else if (c == '"')
      isText = !isText;
    else if (!isText && (c == '{' || c == '['))
      most = std::max(most, ++depth);
    else if (!isText && (c == '}' || c == ']'))
      --depth;
  }
  return most;
}

Json text::parseJson(std::string_view bytes, const std::string &name) {
  if (depthOf(bytes) > kMostDepth)
    throw Error(StatusInput,
                name + ": more than " + std::to_string(kMostDepth) + " objects and lists in each other");
  try {
    return Json::parse(bytes);
  } catch (const Json::exception &error) {
    std::string what = error.what();
    if (size_t end = what.find("] "); end != what.npos)
      what.erase(0, end + 2);
    throw Error(StatusInput, name + ": " + what);
  }
}

//===- TemplateText.h - what filters and methods share ----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_TEMPLATETEXT_H
#define DSOPT_LIB_RUNTIME_TEXT_TEMPLATETEXT_H

#include "TemplateValue.h"
#include "Unicode.h"

#include <map>
#include <optional>

namespace dsopt::runtime::text {

/// Arguments by place or name; an Error names what they are of.
class Given {
public:
  Given(const Arguments &arguments, const std::string &of) : arguments(arguments), of(of) {}
  bool has(size_t place, const char *name) const { return find(place, name); }
  const Value &get(size_t place, const char *name) const;
  Value get(size_t place, const char *name, const Value &otherwise) const;
  std::string text(size_t place, const char *name) const;
  std::optional<std::string> textOrNone(size_t place, const char *name) const;
  int64_t integer(size_t place, const char *name, int64_t otherwise) const;
  bool flag(size_t place, const char *name, bool otherwise) const;

private:
  const Value *find(size_t place, const char *name) const;
  const Arguments &arguments;
  const std::string &of;
};

/// Python's methods of strings.
std::string strip(const std::string &text, const std::optional<std::string> &characters, bool left,
                  bool right);
std::string capitalize(const std::string &text);
std::string titleOf(const std::string &text);
ValueList split(const std::string &text, const std::optional<std::string> &separator, int64_t most);
ValueList splitLines(const std::string &text);
std::string replaced(const std::string &text, const std::string &from, const std::string &to, int64_t most);
/// Whether `text` begins or ends with a text, or one of a list.
bool hasEnd(const std::string &text, const Value &part, bool atEnd);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_TEMPLATETEXT_H

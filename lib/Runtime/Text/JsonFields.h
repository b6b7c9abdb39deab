//===- JsonFields.h - members of an object in a stranger's file -*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_JSONFIELDS_H
#define DSOPT_LIB_RUNTIME_TEXT_JSONFIELDS_H

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dsopt::runtime::text {

/// Members in their order, without a search for each as it comes: vocabularies have 100,000.
template <typename Key, typename Mapped, typename Less, typename Allocator>
struct MemberList : nlohmann::ordered_map<Key, Mapped, Less, Allocator> {
  using Base = nlohmann::ordered_map<Key, Mapped, Less, Allocator>;
  using Base::Base;
  Mapped &operator[](const Key &key) {
    Base::Container::emplace_back(key, Mapped());
    return this->back().second;
  }
};
using Json = nlohmann::basic_json<MemberList>;

/// One object: its members by name, each of the kind that is asked for, and none but those that were asked
/// for. What is wrong is an Error of status 1 that begins with `where`.
class Fields {
public:
  Fields(const Json &object, std::string where);

  /// The member, null where there is none or null.
  const Json *find(const char *name);
  std::string text(const char *name);
  std::string text(const char *name, const std::string &otherwise);
  bool flag(const char *name, bool otherwise);
  int64_t integer(const char *name);
  /// Members that change nothing here.
  void ignore(std::initializer_list<const char *> names);
  /// Refuses members that nobody asked for.
  void finish() const;

  [[noreturn]] void fail(const std::string &what) const;
  const std::string where;

private:
  const Json &get(const char *name);
  const Json &object;
  std::set<std::string> used;
};

/// `json` as an error says it, cut short.
std::string shortly(const Json &json);

/// Parses a file's bytes; an Error of status 1 that names it says what is wrong.
Json parseJson(std::string_view bytes, const std::string &name);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_JSONFIELDS_H

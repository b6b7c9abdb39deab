//===- AddedTokens.h - tokens that texts are searched for first -*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_ADDEDTOKENS_H
#define DSOPT_LIB_RUNTIME_TEXT_ADDEDTOKENS_H

#include "Steps.h"
#include "Vocabulary.h"

#include <map>

namespace dsopt::runtime::text {

struct AddedToken {
  std::string content;
  int32_t id;
  bool singleWord = false; ///< not beside a letter or digit
  bool lstrip = false;     ///< takes white space before it
  bool rstrip = false;     ///< and behind it
  bool normalized = false; ///< is looked for in normalized texts
  bool special = false;
};

class AddedTokens {
public:
  /// One of the same id is replaced.
  void add(AddedToken token);
  /// To be called once all are there.
  void prepare(const Normalizer *normalizer);

  struct Part {
    size_t begin, end;
    const AddedToken *token; ///< null: text
  };
  /// Cuts `text` at the tokens of one kind; `specials`: whether those are looked for.
  std::vector<Part> cut(std::string_view text, bool normalized, bool specials) const;

  const AddedToken *find(int32_t id) const;
  std::optional<int32_t> find(std::string_view content) const;
  /// The largest id and one, 0 of none.
  int64_t size() const { return byId.empty() ? 0 : int64_t(byId.rbegin()->first) + 1; }

private:
  struct Kind {
    TokenTree tree;
    std::vector<const AddedToken *> tokens;
    bool begins[256] = {}; ///< whether a token begins with a byte
  };
  std::map<int32_t, AddedToken> byId;
  Kind kinds[2];
};

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_ADDEDTOKENS_H

//===- Globs.cpp - names as options give them -----------------------------===//

#include "dsopt/Interfaces/Globs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

FailureOr<dsopt::Glob> dsopt::Glob::parse(StringRef option, StringRef text,
                                          function_ref<mlir::InFlightDiagnostic()> emitError) {
  Expected<GlobPattern> pattern = GlobPattern::create(text);
  if (!pattern)
    return emitError() << "-" << option << "=" << text << ": " << toString(pattern.takeError());
  return Glob(text, std::move(*pattern));
}

/// Names that messages show.
static constexpr size_t kShown = 3;

static std::string shown(ArrayRef<StringRef> names) {
  return join(names.take_front(kShown), ", ") + (names.size() > kShown ? ", ..." : "");
}

std::string dsopt::nearMatches(StringRef glob, ArrayRef<StringRef> names) {
  StringRef text = glob.trim('*');
  SmallVector<StringRef> ending, holding, near;
  unsigned most = std::max<unsigned>(1, text.size() / 3);
  for (StringRef name : names) {
    if (text.size() < 2)
      continue;
    if (name.ends_with_insensitive(text))
      ending.push_back(name);
    if (name.contains_insensitive(text))
      holding.push_back(name);
    // A whole name, or as many of its last parts as the glob has.
    SmallVector<StringRef> parts;
    name.split(parts, '.');
    size_t count = std::min<size_t>(parts.size(), text.trim('.').count('.') + 1);
    StringRef last = name.take_back(join(ArrayRef(parts).take_back(count), ".").size());
    if (std::min(name.edit_distance(text, true, most + 1),
                 last.edit_distance(text.trim('.'), true, most + 1)) <= most)
      near.push_back(name);
  }
  ArrayRef<StringRef> found = ending.empty() ? holding : ending;
  if (!found.empty()) {
    StringRef spelled = found.front().substr(found.front().find_insensitive(text), text.size());
    if (!ending.empty())
      spelled = found.front().take_back(text.size());
    return ("; did you mean '*" + spelled + (ending.empty() ? "*" : "") + "', as in " + shown(found) + "?")
        .str();
  }
  if (!near.empty())
    return "; near it are " + shown(near);
  return "; -list-parameters shows the names";
}

//===- DeepSpeedConfig.cpp - a configuration against the table of keys ----===//

#include "DeepSpeedConfig.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace dsopt {

ArrayRef<KeyRow> keyTable() {
  static const KeyRow table[] = {
#define DSOPT_KEY(path, type, form, fate, same, of, text)                                                    \
  {path, KeyType::type, form, KeyFate::fate, same, of, text},
#include "DeepSpeedKeys.def"
  };
  return table;
}

const KeyRow *findKey(StringRef path) {
  for (const KeyRow &row : keyTable())
    if (path == row.path)
      return &row;
  return nullptr;
}

std::vector<std::string> alternatives(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, '|', -1, /*KeepEmpty=*/false);
  return std::vector<std::string>(parts.begin(), parts.end());
}

std::string jsonText(const json::Value &value) {
  if (auto text = value.getAsString())
    return text->str();
  if (auto integer = value.getAsInteger())
    return std::to_string(*integer);
  std::string text;
  if (auto number = value.getAsNumber()) // the shortest text of this number
    for (int digits = 1; digits <= 17; ++digits) {
      char buffer[32];
      std::snprintf(buffer, sizeof buffer, "%.*g", digits, *number);
      if (std::strtod(buffer, nullptr) == *number)
        return buffer;
    }
  raw_string_ostream(text) << value;
  return text;
}

bool isSame(const KeyRow &row, const json::Value &value) {
  for (const std::string &word : alternatives(row.same)) {
    double number = 0;
    if (jsonText(value) == word ||
        (value.getAsNumber() && !StringRef(word).getAsDouble(number) && *value.getAsNumber() == number))
      return true;
  }
  // A block that is switched off asks for nothing.
  const json::Object *block = value.getAsObject();
  return row.type == KeyType::Any && block && block->getBoolean("enabled") == false;
}

static StringRef parentOf(StringRef path) { return path.contains('.') ? path.rsplit('.').first : ""; }
static StringRef leafOf(StringRef path) { return path.contains('.') ? path.rsplit('.').second : path; }

/// "the top level" or "'zero_optimization'".
static std::string describeBlock(StringRef path) {
  return path.empty() ? "the top level" : ("'" + path + "'").str();
}

static std::string expectation(const KeyRow &row) {
  switch (row.type) {
  case KeyType::Block:
    return "a block {...}";
  case KeyType::Bool:
    return "true or false";
  case KeyType::Count:
    return "a whole number of 1 or more";
  case KeyType::Integer:
    return "a whole number of 0 or more";
  case KeyType::Number:
    return "a number";
  case KeyType::Text:
    return "a text";
  case KeyType::Pair:
    return "two numbers [A, B] from 0 to below 1";
  case KeyType::Choice:
  case KeyType::Any:
    break;
  }
  std::string words;
  for (const std::string &word : alternatives(row.form))
    if (word[0] != '!')
      words += (words.empty() ? "" : ", ") + word;
  return "one of " + words;
}

/// Whether a value is of the row's type. Words of a choice are told apart without regard to case, as
/// DeepSpeed does.
static bool fits(const KeyRow &row, const json::Value &value) {
  std::optional<int64_t> integer = value.getAsInteger();
  auto share = [](const json::Value &part) {
    std::optional<double> number = part.getAsNumber();
    return number && *number >= 0 && *number < 1;
  };
  switch (row.type) {
  case KeyType::Block:
    return value.getAsObject() || (StringRef(row.path) == "zero_optimization" && value.getAsBoolean());
  case KeyType::Bool:
    return value.getAsBoolean().has_value();
  case KeyType::Count:
    return integer && *integer >= 1;
  case KeyType::Integer:
    return integer && *integer >= 0;
  case KeyType::Number:
    return value.getAsNumber().has_value();
  case KeyType::Text:
    return value.getAsString().has_value();
  case KeyType::Pair: {
    const json::Array *pair = value.getAsArray();
    return pair && pair->size() == 2 && share((*pair)[0]) && share((*pair)[1]);
  }
  case KeyType::Choice:
    for (const std::string &word : alternatives(row.form))
      if (StringRef(word).ltrim('!').equals_insensitive(jsonText(value)))
        return true;
    return false;
  case KeyType::Any:
    return true;
  }
  return true;
}

DeepSpeedConfig::DeepSpeedConfig(const std::string &path) : file(readJson(path)) {
  checkBlock("", *file.value.getAsObject());
}

void DeepSpeedConfig::checkBlock(const std::string &path, const json::Object &block) {
  // In the order of the file, so that the first message is about the first line.
  std::vector<std::string> keys;
  for (const auto &[key, value] : block)
    keys.push_back(key.str());
  auto offset = [&](const std::string &key) {
    auto [line, column] = StringRef(file.places.at(path.empty() ? key : path + "." + key)).split(':');
    return std::pair(std::atoll(line.str().c_str()), std::atoll(column.str().c_str()));
  };
  llvm::sort(keys, [&](const std::string &a, const std::string &b) { return offset(a) < offset(b); });
  for (const std::string &key : keys)
    checkKey(path.empty() ? key : path + "." + key, *block.get(key));
}

void DeepSpeedConfig::checkKey(const std::string &path, const json::Value &value) {
  const KeyRow *row = findKey(path);
  if (!row)
    refuseUnknown(path);
  if (value.getAsString() == StringRef("auto") || value.kind() == json::Value::Null)
    return; // not given
  if (isSame(*row, value)) {
    given[path] = &value;
    return;
  }
  if (!fits(*row, value))
    throw runtime::Error(1, place(path) + ": expected " + expectation(*row) + ", got " +
                                (value.getAsString() ? "'" + jsonText(value) + "'" : jsonText(value)));
  given[path] = &value;
  if (row->type == KeyType::Block && value.getAsObject())
    return checkBlock(path, *value.getAsObject());
  for (const std::string &word : alternatives(row->form))
    if (word[0] == '!' && StringRef(word).drop_front().equals_insensitive(jsonText(value)))
      throw runtime::Error(1, place(path) + ": " + word.substr(1) + " is not available yet; expected " +
                                  expectation(*row));
}

/// Whether `key` has all words of `other` ("warmup_num_steps" those of "warmup_steps").
static bool hasWordsOf(StringRef key, StringRef other) {
  SmallVector<StringRef> words, wanted;
  key.split(words, '_');
  other.split(wanted, '_');
  return wanted.size() > 1 && llvm::all_of(wanted, [&](StringRef word) { return is_contained(words, word); });
}

void DeepSpeedConfig::refuseUnknown(const std::string &path) const {
  std::string parent = parentOf(path).str(), leaf = leafOf(path).str(), elsewhere, nearest;
  int best = std::max<int>(2, static_cast<int>(leaf.size()) / 3) + 1;
  for (const KeyRow &row : keyTable()) {
    std::string other = leafOf(row.path).str();
    if (other == leaf)
      elsewhere += (elsewhere.empty() ? "" : " or ") + describeBlock(parentOf(row.path));
    // A key of the same block counts before one that is as near elsewhere.
    int edits = hasWordsOf(other, leaf) ? 1 : runtime::editDistance(leaf, other);
    int distance = 2 * edits + (parentOf(row.path) != parent);
    if (distance < 2 * best) {
      best = (distance + 1) / 2;
      nearest = row.path;
    }
  }
  std::string advice =
      !elsewhere.empty() ? "it belongs into " + elsewhere
      : !nearest.empty()
          ? "did you mean '" + (parentOf(nearest) == parent ? leafOf(nearest).str() : nearest) + "'?"
          : "docs/DeepSpeedConfig.md lists all keys";
  throw runtime::Error(1, place(path) + ": " + describeBlock(parent) + " has no such key; " + advice);
}

const json::Value *DeepSpeedConfig::find(const std::string &path) const {
  auto it = given.find(path);
  return it == given.end() ? nullptr : it->second;
}

std::string DeepSpeedConfig::place(const std::string &path) const {
  return file.path + ":" + file.places.at(path) + ": " + path;
}

std::string DeepSpeedConfig::mention(const std::string &path) const {
  return path + " (" + file.places.at(path) + ")";
}

std::vector<std::string> DeepSpeedConfig::paths() const {
  std::vector<std::string> all;
  for (const KeyRow &row : keyTable())
    if (given.count(row.path))
      all.push_back(row.path);
  return all;
}

bool DeepSpeedConfig::flag(const std::string &path) const {
  const json::Value *value = find(path);
  return value && value->getAsBoolean() == true;
}

std::optional<int64_t> DeepSpeedConfig::integer(const std::string &path) const {
  const json::Value *value = find(path);
  return value ? value->getAsInteger() : std::nullopt;
}

std::string DeepSpeedConfig::text(const std::string &path) const {
  const json::Value *value = find(path);
  return value ? jsonText(*value) : "";
}

void DeepSpeedConfig::warn(const std::string &path, const std::string &reason) {
  for (auto &[known, paths] : reasons)
    if (known == reason)
      return paths.push_back(path);
  reasons.push_back({reason, {path}});
}

std::vector<std::string> DeepSpeedConfig::warnings() const {
  std::vector<std::string> lines;
  for (const auto &[reason, paths] : reasons) {
    std::string names;
    for (const std::string &path : paths)
      names += (names.empty() ? "" : ", ") + mention(path);
    lines.push_back(file.path + ": " + names + ": " + reason);
  }
  return lines;
}

void printConfigKeys(raw_ostream &out) {
  out << "# DeepSpeed's configuration\n"
         "`-config=ds_config.json` reads a DeepSpeed configuration (JSON, keys of DeepSpeed 0.19.8 and "
         "older). "
         "Options on\nthe command line win. `\"auto\"` means not given. A key that dsopt does not know is an "
         "error that names the\nnearest known one or the block it belongs into; so is a key that is there "
         "twice. `dsopt -config=help` prints\nthis page.\n\n"
         "The rule of the batch is DeepSpeed's: `train_batch_size` = `train_micro_batch_size_per_gpu` x\n"
         "`gradient_accumulation_steps` x dp; two give the third, one alone goes with one accumulation step. "
         "dp is the\nworld size over the pipeline's stages. Where only `gradient_accumulation_steps` is "
         "given, the model's own rows\nare the micro-batch (DeepSpeed refuses that).\n\n"
         "What becomes of a key:\n\n"
         "- **obeyed**: it is the option that is named;\n"
         "- **decided**: the compiler decides this by itself, and a warning says so where the file asks for "
         "something else;\n"
         "- **no effect**: a warning says why;\n"
         "- **not yet**: an error;\n"
         "- **refused**: an error, in DeepSpeed as well.\n\n"
         "Values that ask for what happens anyway get no message.\n\n"
         "| key | values | fate | what becomes of it |\n| --- | --- | --- | --- |\n";
  for (const KeyRow &row : keyTable()) {
    if (row.type == KeyType::Block && !*row.text)
      continue;
    static const char *const fates[] = {"obeyed", "decided", "no effect", "not yet", "refused"};
    static const char *const types[] = {"block", "bool", "count",  "integer", "number",
                                        "text",  "",     "[A, B]", "any"};
    std::string values = types[static_cast<int>(row.type)];
    for (const std::string &word : alternatives(row.form))
      values += (values.empty() ? "" : ", ") + StringRef(word).ltrim('!').str() +
                (word[0] == '!' ? " (not yet)" : "");
    std::string text = row.text, same = join(alternatives(row.same), ", ");
    if (*row.of)
      text += " (" + join(alternatives(row.of), ", ") + ")";
    if (row.fate != KeyFate::Obeyed && !same.empty())
      text += "; without a message: " + same;
    out << "| `" << row.path << "` | " << values << " | " << fates[static_cast<int>(row.fate)] << " | "
        << text << " |\n";
  }
}

} // namespace dsopt

//===- Options.cpp - parses a command line against the table -------------===//

#include "dsopt/Runtime/Options.h"
#include "dsopt/Runtime/JsonText.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

using namespace dsopt::runtime;

/// The name that is given: dashes for the table's underscores.
static const char *nameOf(const char *key) {
  static std::set<std::string> names;
  std::string name = key;
  std::replace(name.begin(), name.end(), '_', '-');
  return names.insert(name).first->c_str();
}

const std::vector<OptionRow> &dsopt::runtime::optionTable() {
  static const std::vector<OptionRow> table = {
#define DSOPT_OPTION(name, use, kept, ranks, kind, form, byDefault, group, state, help)                      \
  {nameOf(#name),      OptionUse::use,                                                                       \
   OptionKept::kept,   AmongRanks::ranks,                                                                    \
   OptionKind::kind,   form,                                                                                 \
   byDefault,          group,                                                                                \
   OptionState::state, help},
#include "dsopt/Runtime/Options.def"
  };
  return table;
}

const OptionRow *dsopt::runtime::findOption(const std::string &name) {
  for (const OptionRow &row : optionTable())
    if (name == row.name)
      return &row;
  return nullptr;
}

int dsopt::runtime::editDistance(const std::string &a, const std::string &b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

const OptionRow *dsopt::runtime::nearestOption(const std::string &name) {
  const OptionRow *nearest = nullptr;
  int best = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const OptionRow &row : optionTable()) {
    int distance = editDistance(name, row.name);
    // A word that the option begins with (or the other way round) is near as well.
    std::string other = row.name;
    size_t shorter = std::min(other.size(), name.size());
    if (!nearest && shorter >= 4 && other.compare(0, shorter, name, 0, shorter) == 0)
      distance = std::min(distance, best - 1);
    if (distance < best) {
      best = distance;
      nearest = &row;
    }
  }
  return nearest;
}

bool dsopt::runtime::parseSize(const std::string &text, int64_t base, int64_t &value) {
  if (text.empty() || text[0] == '+' || text[0] == ' ')
    return false;
  errno = 0;
  char *end = nullptr;
  long long number = std::strtoll(text.c_str(), &end, 10);
  if (errno || end == text.c_str())
    return false;
  int64_t factor = 1;
  switch (*end) {
  case 'k':
  case 'K':
    factor = base;
    break;
  case 'm':
  case 'M':
    factor = base * base;
    break;
  case 'g':
  case 'G':
    factor = base * base * base;
    break;
  case 0:
    break;
  default:
    return false;
  }
  if (*end && end[1])
    return false;
  return !__builtin_mul_overflow(number, factor, &value);
}

bool dsopt::runtime::parseBytes(const std::string &text, int64_t &value) {
  size_t digits = text.find_first_not_of("0123456789.");
  std::string number = text.substr(0, digits), unit = digits == std::string::npos ? "" : text.substr(digits);
  size_t point = number.find('.');
  if (number.empty() || number[0] == '.' || number.back() == '.' ||
      number.find('.', point + 1) < number.size())
    return false;
  int64_t factor = 1;
  if (!unit.empty() && unit != "B") {
    const std::string letters = "kmgt";
    size_t power = letters.find(static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0]))));
    std::string rest = unit.substr(1);
    // A small b behind a capital letter is a bit.
    bool isSmall = unit[0] >= 'a';
    bool isDecimal = rest == "B" || (isSmall && rest == "b");
    if (power == std::string::npos ||
        !(rest.empty() || rest == "iB" || (isSmall && rest == "ib") || isDecimal))
      return false;
    for (size_t i = 0; i <= power; ++i)
      factor *= isDecimal ? 1000 : 1024;
  }
  if (point == std::string::npos)
    return parseSize(number, 1, value) && !__builtin_mul_overflow(value, factor, &value);
  long double bytes = std::strtold(number.c_str(), nullptr) * factor;
  if (factor == 1 || bytes >= 9.2e18L)
    return false;
  value = static_cast<int64_t>(bytes);
  return true;
}

static bool parseNumber(const std::string &text, double &value) {
  if (text.empty() || text[0] == ' ')
    return false;
  char *end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !*end && std::isfinite(value);
}

static bool splitPair(const std::string &text, char separator, std::string &first, std::string &second) {
  size_t at = text.rfind(separator);
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return false;
  first = text.substr(0, at);
  second = text.substr(at + 1);
  return true;
}

[[noreturn]] static void refuse(const OptionRow &row, const std::string &got, const std::string &expected) {
  throw Error(StatusInput,
              std::string("option -") + row.name + ": expected " + expected + ", got '" + got + "'");
}

[[noreturn]] static void notAvailable(const std::string &option) {
  throw Error(StatusInput, "option -" + option + " is not available yet");
}

std::vector<std::pair<std::string, bool>> OptionRow::choices() const {
  std::vector<std::pair<std::string, bool>> result;
  std::string all = form;
  for (size_t begin = 0; begin <= all.size();) {
    size_t end = std::min(all.find('|', begin), all.size());
    std::string one = all.substr(begin, end - begin);
    bool later = !one.empty() && one[0] == '!';
    result.push_back({later ? one.substr(1) : one, !later});
    begin = end + 1;
  }
  return result;
}

std::string OptionRow::shownForm() const {
  if (kind != OptionKind::Choice && kind != OptionKind::FlagOrChoice && kind != OptionKind::OpenChoice)
    return form;
  std::string text;
  for (auto &[one, ready] : choices())
    if (ready)
      text += (text.empty() ? "" : "|") + one;
  return text;
}

namespace {
/// Whether a value is that of a choice, or what `*N` of it stands for.
bool isChoice(const std::string &name, const std::string &value) {
  size_t star = name.find("*N");
  int64_t number = 0;
  return name == value ? star == std::string::npos
                       : star != std::string::npos && value.compare(0, star + 1, name, 0, star + 1) == 0 &&
                             parseSize(value.substr(star + 1), 1000, number) && number >= 1;
}

/// Throws unless `value` is one of `names` that exists.
void checkChoice(const OptionRow &row, const std::string &value,
                 const std::vector<std::pair<std::string, bool>> &names) {
  std::string nearest = ownValue(row, value), all;
  int best = nearest.empty() ? 3 : 0;
  for (auto &[name, ready] : names) {
    if (isChoice(name, value)) {
      if (!ready)
        notAvailable(std::string(row.name) + "=" + value);
      return;
    }
    if (!ready)
      continue;
    all += (all.empty() ? "" : "|") + name;
    if (int distance = editDistance(name, value); distance < best && name.size() > 2) {
      best = distance;
      nearest = name;
    }
  }
  throw Error(StatusInput, std::string("option -") + row.name + ": expected one of " + all + ", got '" +
                               value + "'" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

std::string withoutBlanks(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

void checkValue(const OptionRow &row, const std::string &value) {
  int64_t integer = 0;
  double number = 0;
  std::string first, second;
  switch (row.kind) {
  case OptionKind::Flag:
    break;
  case OptionKind::Count:
    if (!parseSize(value, 1000, integer) || integer < 1)
      refuse(row, value, "a whole number of 1 or more");
    break;
  case OptionKind::Integer:
    if (!parseSize(value, 1000, integer) || integer < 0)
      refuse(row, value, "a whole number of 0 or more");
    break;
  case OptionKind::Bytes:
    if (std::string whole = withoutBlanks(value); whole != value && parseBytes(whole, integer))
      throw Error(StatusInput, std::string("option -") + row.name + ": write -" + row.name + "=" + whole +
                                   " without a space, got '" + value + "'");
    if (!parseBytes(value, integer))
      refuse(row, value, "a number of bytes such as 512M, 1.5GiB (M and MiB: 2^20) or 16GB (10^9)");
    break;
  case OptionKind::Number:
    if (!parseNumber(value, number))
      refuse(row, value, "a number");
    if (number < 0)
      refuse(row, value, "a number of 0 or more");
    break;
  case OptionKind::NumberPair:
    if (!splitPair(value, ',', first, second) || !parseNumber(first, number) || number < 0 || number >= 1 ||
        !parseNumber(second, number) || number < 0 || number >= 1)
      refuse(row, value, "two numbers from 0 to below 1, as in 0.9,0.999");
    break;
  case OptionKind::PairList:
    if (!splitPair(value, '=', first, second))
      refuse(row, value, row.form);
    if (std::string(row.name) == "dim") {
      for (size_t begin = 0; begin <= second.size();) {
        size_t end = std::min(second.find(',', begin), second.size());
        if (!parseSize(second.substr(begin, end - begin), 1000, integer) || integer < 1)
          refuse(row, value, "NAME=VALUE or NAME=V1,V2,... with whole numbers of 1 or more");
        begin = end + 1;
      }
      break;
    }
    // What an input takes, the model says, and what a parameter's dimensions are.
    if (std::string(row.name) == "input" || std::string(row.name) == "shard")
      break;
    if (!parseNumber(second, number) || number < 0)
      refuse(row, value, std::string(row.form) + " with a number of 0 or more");
    break;
  case OptionKind::Choice:
  case OptionKind::FlagOrChoice:
    checkChoice(row, value, row.choices());
    break;
  case OptionKind::OpenChoice:
  case OptionKind::Text:
  case OptionKind::TextList:
  case OptionKind::FlagOrList:
    if (value.empty())
      refuse(row, value, row.shownForm());
    break;
  }
}
} // namespace

std::string dsopt::runtime::wrongValue(const OptionRow &row, const std::string &value) {
  try {
    checkValue(row, value);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// Whether `word`, which follows `row` without an equals sign, is its value: never for a flag; for a flag or
/// choice only one of its choices, so that a model's path is not taken; else all but what looks like an
/// option.
static bool isValueOf(const OptionRow &row, const std::string &word) {
  if (row.kind == OptionKind::Flag || row.kind == OptionKind::FlagOrList)
    return false;
  if (row.kind == OptionKind::FlagOrChoice) {
    for (auto &[name, ready] : row.choices())
      if (name == word)
        return true;
    return false;
  }
  return isValueWord(word);
}

bool dsopt::runtime::isValueWord(const std::string &word) {
  double number = 0;
  return word.empty() || word[0] != '-' || word == "-" || parseNumber(word, number);
}

std::string dsopt::runtime::shellWord(const std::string &word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`;&|<>()#!") == std::string::npos)
    return word;
  // The name of an option stays as it is, so that it is found in the line again.
  size_t value = word[0] == '-' && word.find('=') != std::string::npos ? word.find('=') + 1 : 0;
  std::string text = word.substr(0, value) + "'";
  for (char c : word.substr(value))
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string dsopt::runtime::spelledCommand(const std::string &tool, int argc, const char *const *argv) {
  std::string command = tool;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    command += " " + shellWord(word);
    size_t dashes = word.find_first_not_of('-');
    if (dashes != 1 && dashes != 2)
      continue;
    const OptionRow *row = findOption(word.substr(dashes));
    if (row && word != "-o" && i + 1 < argc && isValueOf(*row, argv[i + 1]))
      command += "=" + shellWord(argv[++i]);
  }
  return command;
}

/// Keeps a value of an option. What does not collect has one.
static void take(ParsedOptions &parsed, const OptionRow &row, const std::string &value) {
  std::vector<std::string> &values = parsed.values[row.name];
  if (!row.repeatable() && !values.empty()) {
    auto spelled = [&](const std::string &one) {
      return "-" + std::string(row.name) + (one.empty() ? "" : "=" + one);
    };
    if (values.back() != value)
      throw Error(StatusInput, spelled(values.back()) + " and " + spelled(value) +
                                   " contradict each other: -" + row.name + " takes one value");
    return;
  }
  values.push_back(value);
}

ParsedOptions dsopt::runtime::parseOptions(int argc, const char *const *argv, Tool tool) {
  ParsedOptions parsed;
  bool onlyPositionals = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (onlyPositionals || word.empty() || word[0] != '-' || word == "-") {
      parsed.positionals.push_back(word);
      continue;
    }
    if (word == "--") {
      onlyPositionals = true;
      continue;
    }
    std::string body = word.substr(word.compare(0, 2, "--") == 0 ? 2 : 1);
    size_t equals = body.find('=');
    std::string name = body.substr(0, equals);
    bool hasValue = equals != std::string::npos;
    std::string value = hasValue ? body.substr(equals + 1) : "";
    if (name == "h")
      name = "help";
    const OptionRow *row = findOption(name);
    if (!row) {
      if (!hasValue && i + 1 < argc && isValueWord(argv[i + 1]))
        value = argv[i + 1];
      throw Error(StatusInput, "unknown option " + word.substr(0, word.find('=')) + adviseOn(name, value));
    }
    if (!hasValue && i + 1 < argc && isValueOf(*row, argv[i + 1])) {
      value = argv[++i];
      hasValue = true;
    }
    if (tool == Tool::Program && (row->isCompiledIn() || row->use == OptionUse::Command)) {
      parsed.compiledIn.push_back(name + (hasValue ? "=" + value : ""));
      continue;
    }
    if (row->state == OptionState::Later)
      notAvailable(name);
    if (row->kind == OptionKind::Flag && hasValue)
      throw Error(StatusInput, "option -" + name + " takes no value, got '" + value + "'");
    bool needsValue = row->kind != OptionKind::Flag && !row->isFlagOr();
    if (needsValue && !hasValue)
      throw Error(StatusInput, "option -" + name + " needs a value: -" + name + "=" + row->shownForm());
    if (hasValue)
      checkValue(*row, value);
    int64_t bytes = 0;
    if (std::string unit = i + 1 < argc ? argv[i + 1] : "";
        row->kind == OptionKind::Bytes && std::isdigit(static_cast<unsigned char>(value.back())) &&
        !unit.empty() && std::isalpha(static_cast<unsigned char>(unit[0])) && parseBytes("1" + unit, bytes))
      throw Error(StatusInput, "option -" + name + ": write -" + name + "=" + value + unit +
                                   " as one word, got '" + value + "' and '" + unit + "'");
    take(parsed, *row, value);
  }
  return parsed;
}

void dsopt::runtime::checkRegistered(const OptionRow &row, const std::string &value,
                                     const std::vector<std::string> &registered) {
  std::vector<std::pair<std::string, bool>> names;
  for (const std::string &name : registered)
    names.push_back({name, true});
  for (auto &[name, ready] : row.choices())
    if (!ready)
      names.push_back({name, false});
  checkChoice(row, value, names);
}

void ParsedOptions::setDefault(const std::string &name, const std::string &value) {
  if (!has(name))
    values[name] = {value};
}

std::string ParsedOptions::text(const std::string &name, const std::string &otherwise) const {
  auto found = values.find(name);
  if (found != values.end() && !found->second.empty())
    return found->second.back();
  const OptionRow *row = findOption(name);
  return row && *row->defaultValue ? row->defaultValue : otherwise;
}

int64_t ParsedOptions::integer(const std::string &name, int64_t otherwise) const {
  std::string value = text(name);
  const OptionRow *row = findOption(name);
  int64_t result = 0;
  bool isNumber =
      row && row->kind == OptionKind::Bytes ? parseBytes(value, result) : parseSize(value, 1000, result);
  return isNumber ? result : otherwise;
}

/// With the fewest digits that are this number.
static std::string shortest(double value) {
  std::string text;
  for (int digits = 6; digits <= 17; ++digits)
    if (text = jsonNumber(value, digits); std::strtod(text.c_str(), nullptr) == value)
      break;
  return text;
}

std::string ParsedOptions::meaning(const OptionRow &row) const {
  std::string value = text(row.name);
  switch (row.kind) {
  case OptionKind::Flag:
    return has(row.name) ? "given" : "not given";
  case OptionKind::Count:
  case OptionKind::Bytes:
  case OptionKind::Integer:
    return value.empty() ? "not given" : std::to_string(integer(row.name));
  case OptionKind::Number:
    return value.empty() ? "not given" : shortest(number(row.name));
  case OptionKind::NumberPair: {
    auto [first, second] = numberPair(row.name);
    return value.empty() ? "not given" : shortest(first) + "," + shortest(second);
  }
  default:
    return value.empty() ? "not given" : value;
  }
}

double ParsedOptions::number(const std::string &name, double otherwise) const {
  double result = 0;
  return parseNumber(text(name), result) ? result : otherwise;
}

std::pair<double, double> ParsedOptions::numberPair(const std::string &name) const {
  std::string first, second;
  std::pair<double, double> result{0, 0};
  if (splitPair(text(name), ',', first, second)) {
    parseNumber(first, result.first);
    parseNumber(second, result.second);
  }
  return result;
}

std::vector<std::string> ParsedOptions::list(const std::string &name) const {
  auto found = values.find(name);
  return found == values.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::pair<std::string, std::string>> ParsedOptions::pairList(const std::string &name) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string &entry : list(name)) {
    std::pair<std::string, std::string> pair;
    splitPair(entry, '=', pair.first, pair.second);
    result.push_back(pair);
  }
  return result;
}

//===- Options.cpp - parses a command line against the table -------------===//

#include "dsopt/Runtime/Options.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace dsopt::runtime;

const std::vector<OptionRow> &dsopt::runtime::optionTable() {
  static const std::vector<OptionRow> table = {
#define DSOPT_OPTION(name, use, kind, form, byDefault, group, state, help)                                   \
  {name, OptionUse::use, OptionKind::kind, form, byDefault, group, OptionState::state, help},
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

namespace {
/// The values of a choice: name, and whether it exists.
std::vector<std::pair<std::string, bool>> choices(const OptionRow &row) {
  std::vector<std::pair<std::string, bool>> result;
  std::string form = row.form;
  for (size_t begin = 0; begin <= form.size();) {
    size_t end = std::min(form.find('|', begin), form.size());
    std::string name = form.substr(begin, end - begin);
    bool later = !name.empty() && name[0] == '!';
    result.push_back({later ? name.substr(1) : name, !later});
    begin = end + 1;
  }
  return result;
}

/// The form without its marks.
std::string shownForm(const OptionRow &row, bool onlyReady) {
  if (row.kind != OptionKind::Choice && row.kind != OptionKind::FlagOrChoice &&
      row.kind != OptionKind::OpenChoice)
    return row.form;
  std::string text;
  for (auto &[name, ready] : choices(row))
    if (ready || !onlyReady)
      text += (text.empty() ? "" : "|") + name;
  return text;
}

/// Throws unless `value` is one of `names` that exists.
void checkChoice(const OptionRow &row, const std::string &value,
                 const std::vector<std::pair<std::string, bool>> &names) {
  std::string nearest, all;
  int best = 3;
  for (auto &[name, ready] : names) {
    if (name == value) {
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
    if (!parseSize(value, 1024, integer) || integer < 0)
      refuse(row, value, "a number of bytes such as 512M or 16G");
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
    if (!parseNumber(second, number) || number < 0)
      refuse(row, value, std::string(row.form) + " with a number of 0 or more");
    break;
  case OptionKind::Choice:
  case OptionKind::FlagOrChoice:
    checkChoice(row, value, choices(row));
    break;
  case OptionKind::OpenChoice:
  case OptionKind::Text:
  case OptionKind::TextList:
    if (value.empty())
      refuse(row, value, shownForm(row, true));
    break;
  }
}
} // namespace

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
      const OptionRow *nearest = nearestOption(name);
      throw Error(StatusInput, "unknown option -" + name +
                                   (nearest ? std::string("; did you mean -") + nearest->name + "?"
                                            : std::string("; -help lists all options")));
    }
    if (tool == Tool::Program && (row->use == OptionUse::Compile || row->use == OptionUse::Command)) {
      parsed.compiledIn.push_back(body);
      continue;
    }
    if (row->state == OptionState::Later)
      notAvailable(name);
    if (name == "o" && !hasValue && i + 1 < argc) {
      value = argv[++i];
      hasValue = true;
    }
    if (row->kind == OptionKind::Flag && hasValue)
      throw Error(StatusInput, "option -" + name + " takes no value, got '" + value + "'");
    bool needsValue = row->kind != OptionKind::Flag && row->kind != OptionKind::FlagOrChoice;
    if (needsValue && !hasValue)
      throw Error(StatusInput, "option -" + name + " needs a value: -" + name + "=" + shownForm(*row, true));
    if (hasValue)
      checkValue(*row, value);
    std::vector<std::string> &values = parsed.values[name];
    if (!row->repeatable())
      values.clear(); // the last one counts
    values.push_back(value);
  }
  return parsed;
}

void dsopt::runtime::checkRegistered(const OptionRow &row, const std::string &value,
                                     const std::vector<std::string> &registered) {
  std::vector<std::pair<std::string, bool>> names;
  for (const std::string &name : registered)
    names.push_back({name, true});
  for (auto &[name, ready] : choices(row))
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
  int64_t base = row && row->kind == OptionKind::Bytes ? 1024 : 1000, result = 0;
  return parseSize(value, base, result) ? result : otherwise;
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

std::string dsopt::runtime::optionsHelp(Tool tool, const std::map<std::string, std::string> &compiled) {
  std::vector<std::string> groups;
  for (const OptionRow &row : optionTable())
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end())
      groups.push_back(row.group);
  std::string text;
  for (const std::string &group : groups) {
    std::string lines;
    for (const OptionRow &row : optionTable()) {
      if (group != row.group || row.state == OptionState::Later)
        continue;
      if (tool == Tool::Program && row.use != OptionUse::Run && row.use != OptionUse::Any)
        continue;
      std::string form = shownForm(row, true);
      std::string left = std::string("  -") + row.name;
      if (row.kind == OptionKind::FlagOrChoice)
        left += "[=" + form + "]";
      else if (row.kind != OptionKind::Flag)
        left += "=" + form;
      auto value = compiled.find(row.name);
      std::string byDefault = value != compiled.end() ? value->second : row.defaultValue;
      left += left.size() < 34 ? std::string(34 - left.size(), ' ') : "\n" + std::string(34, ' ');
      lines += left + row.help + (byDefault.empty() ? "" : " (" + byDefault + ")") +
               (row.repeatable() ? " (repeatable)" : "") + "\n";
    }
    if (!lines.empty())
      text += group + ":\n" + lines;
  }
  return text;
}

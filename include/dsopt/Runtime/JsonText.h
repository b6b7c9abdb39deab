//===- JsonText.h - strings and numbers as JSON writes them -----*- C++ -*-===//

#ifndef DSOPT_RUNTIME_JSONTEXT_H
#define DSOPT_RUNTIME_JSONTEXT_H

#include <cmath>
#include <cstdio>
#include <string>

namespace dsopt::runtime {

/// `text` in quotes.
inline std::string jsonString(const std::string &text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

/// `value` with `digits` significant digits; "nan", "inf" and "-inf" as strings.
inline std::string jsonNumber(double value, int digits = 9) {
  if (std::isnan(value))
    return "\"nan\"";
  if (std::isinf(value))
    return value > 0 ? "\"inf\"" : "\"-inf\"";
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_JSONTEXT_H

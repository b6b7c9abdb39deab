//===- Pieces.h - a text on its way to tokens -------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_PIECES_H
#define DSOPT_LIB_RUNTIME_TEXT_PIECES_H

#include "Regex.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt::runtime::text {

/// What becomes of what a split looks for.
enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

struct Piece {
  size_t begin, end;
  bool startsText; ///< begins where the input does
};

/// One text in pieces, each of which becomes tokens by itself.
class Pieces {
public:
  Pieces(std::string text, bool startsText);

  std::string_view textOf(const Piece &piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
  const std::vector<Piece> &all() const { return pieces; }

  /// Splits each piece at what `find(piece, from, begin, end)` finds.
  using Find = std::function<bool(std::string_view, size_t, size_t &, size_t &)>;
  void split(const Find &find, SplitBehavior behavior, bool invert = false);
  void split(const Regex &regex, SplitBehavior behavior, bool invert = false);
  void split(bool (*isOne)(char32_t), SplitBehavior behavior);
  void split(const std::string &delimiter, SplitBehavior behavior, bool invert = false);

  /// Writes each piece anew: `write(piece, out)` appends.
  void rewrite(const std::function<void(std::string_view, bool startsText, std::string &out)> &write);

private:
  std::string text;
  std::vector<Piece> pieces;
};

/// The behavior of a name, as files spell it.
SplitBehavior splitBehavior(const std::string &name, const std::string &where);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_PIECES_H

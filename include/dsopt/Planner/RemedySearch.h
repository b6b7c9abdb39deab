//===- RemedySearch.h - what would fit where a step does not ----*- C++ -*-===//
//
// Asks what a step would need with some options more. Who asks is behind a function:
// some of these options change the module long before it has programs.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_PLANNER_REMEDYSEARCH_H
#define DSOPT_PLANNER_REMEDYSEARCH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dsopt {

/// An option that takes fewer bytes.
struct Remedy {
  std::string name, value;
  std::string text() const { return "-" + name + "=" + value; }
};
using Remedies = std::vector<Remedy>;

/// What recomputes automatically recomputes all, and is chosen under the budget where that is too much: a
/// choice for each block can take less. What is cut into tiles automatically is where the rest is not enough.
class RemedySearch {
public:
  /// What a plan needs of the largest rank's device.
  struct Need {
    int64_t bytes = 0;
    int64_t states = 0; ///< of them at the peak: what is there whatever is recomputed
    int64_t growth = 0; ///< bytes that were estimated
  };
  /// What a step needs with these options; none if there is no such plan. That of a choice under the budget
  /// is asked for behind that of all that can be recomputed (`full`, else null).
  using Ask = std::function<std::optional<Need>(const Remedies &with, const Need *full)>;
  /// The value of an option as it is given or by default, empty if it is neither.
  using Given = std::function<std::string(llvm::StringRef name)>;

  /// `tileSizes` are what -tile-products may be, ascending.
  RemedySearch(Given given, Ask ask, llvm::ArrayRef<int64_t> tileSizes, int64_t budget)
      : given(std::move(given)), ask(std::move(ask)), tileSizes(tileSizes.begin(), tileSizes.end()),
        budget(budget) {}

  /// Bytes of the largest rank's device with some of the remedies; none if there is no such plan.
  std::optional<int64_t> bytes(const Remedies &remedies);
  /// The largest tiles with which what was given fits; the smallest if none do and these take less; 0 if it
  /// fits without, or tiles are no help.
  int64_t chooseTiles() { return tileSizes.empty() ? 0 : chooseTiles({}).elements; }
  /// The fewest remedies that fit, from cheap to dear, or those with the least bytes; and how many these are.
  /// Without any it takes `least`.
  std::pair<Remedies, int64_t> fewest(int64_t least);

private:
  struct Tiles {
    int64_t elements = 0; ///< 0: none
    std::optional<int64_t> bytes;
  };
  Tiles chooseTiles(const Remedies &with);
  std::optional<int64_t> recomputed(const Remedies &with);
  std::string valueOf(llvm::StringRef name, const Remedies &with) const;
  /// What takes fewer bytes than what is given, from cheap to dear.
  std::vector<Remedies> candidates() const;

  Given given;
  Ask ask;
  std::vector<int64_t> tileSizes;
  int64_t budget;
};

/// These with one more, which takes the place of others of its option.
Remedies withRemedy(Remedies remedies, const Remedy &remedy);

} // namespace dsopt

#endif // DSOPT_PLANNER_REMEDYSEARCH_H

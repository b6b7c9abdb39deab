//===- Record.h - what has to be equal on all ranks -------------*- C++ -*-===//
//
// Each rank reads its program, options, data and weights by itself. Before they
// train together their records are compared entry by entry, so that what differs
// is told by name.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_RECORD_H
#define DSOPT_RUNTIME_RECORD_H

#include <string>
#include <vector>

namespace dsopt::runtime {

struct RecordEntry {
  /// The same on all ranks: its first word is what the entry is of (`deedOf`), as in "data 0 size".
  std::string name;
  std::string subject;   ///< for messages, not compared: "d.npz has"
  std::string value;     ///< compared: "1,250 bytes"
  std::string note = ""; ///< told with a value that differs, not compared
};
using Record = std::vector<RecordEntry>;

/// In what a record differs from that of the first rank: "reads other data than rank 0 on node1: d.npz has
/// 1,234 bytes, there 1,250 bytes". Empty if they are equal.
std::string differenceOf(const Record &record, const Record &first, const std::string &firstHost);

/// Everything that a rank got wrong before it could meet the others.
struct EarlyTrouble {
  int status = 0; ///< 0: nothing
  std::string text;
};

/// A record as bytes, and back: false if they are none.
std::string packRecord(const Record &record);
bool unpackRecord(const std::string &bytes, Record &record);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_RECORD_H

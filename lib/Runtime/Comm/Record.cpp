//===- Record.cpp - what has to be equal on all ranks ---------------------===//

#include "dsopt/Runtime/Record.h"
#include "Comm/Packet.h"

#include <algorithm>
#include <utility>

namespace dsopt::runtime {

/// What a rank does whose entry of this kind differs.
static std::string deedOf(const std::string &name) {
  static const std::pair<const char *, const char *> deeds[] = {
      {"target", "runs on another target than"},
      {"program", "runs another program than"},
      {"build", "runs another build of the program than"},
      {"option", "was started with other options than"},
      {"data", "reads other data than"},
      {"eval-data", "measures its loss on other data than"},
      {"weights", "starts from other weights than"}};
  std::string kind = name.substr(0, name.find(' '));
  for (auto [known, deed] : deeds)
    if (kind == known)
      return deed;
  return "differs from";
}

std::string differenceOf(const Record &record, const Record &first, const std::string &firstHost) {
  auto tell = [&](const std::string &name, const std::string &text) {
    return deedOf(name) + " rank 0 on " + firstHost + ": " + text;
  };
  auto valueOf = [](const RecordEntry &entry) {
    return entry.value + (entry.note.empty() ? "" : " (" + entry.note + ")");
  };
  size_t both = std::min(record.size(), first.size());
  for (size_t i = 0; i < both; ++i) {
    const RecordEntry &one = record[i], &other = first[i];
    if (one.name != other.name)
      return tell(one.name,
                  one.subject + " " + valueOf(one) + ", there " + other.subject + " " + valueOf(other));
    if (one.value != other.value)
      return tell(one.name, one.subject + " " + valueOf(one) + ", there " + valueOf(other));
  }
  if (record.size() == first.size())
    return "";
  const RecordEntry &left = record.size() > both ? record[both] : first[both];
  return tell(left.name, left.subject + " " + left.value +
                             (record.size() > both ? ", of which rank 0 knows nothing" : " there"));
}

std::string packRecord(const Record &record) {
  Packet packet;
  packet.number(record.size());
  for (const RecordEntry &entry : record)
    for (const std::string *text : {&entry.name, &entry.subject, &entry.value, &entry.note})
      packet.text(*text);
  return packet.bytes;
}

bool unpackRecord(const std::string &bytes, Record &record) {
  PacketReader reader(bytes);
  record.resize(reader.count(4 * sizeof(uint64_t)));
  for (RecordEntry &entry : record)
    for (std::string *text : {&entry.name, &entry.subject, &entry.value, &entry.note})
      *text = reader.text();
  return reader.ended();
}

} // namespace dsopt::runtime

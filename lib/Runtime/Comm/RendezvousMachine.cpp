//===- RendezvousMachine.cpp - connections of ranks that meet -------------===//

#include "Comm/RendezvousMachine.h"
#include "Comm/Hmac.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime::rendezvous {

/// Runs of neighbouring ports are different jobs.
static std::string jobText(const Meeting &meeting) {
  return std::to_string(meeting.port) + " " + meeting.job;
}

uint64_t jobOf(const Meeting &meeting) {
  std::string text = jobText(meeting);
  return XXH3_64bits(text.data(), text.size());
}

std::string keyOf(const Meeting &meeting) { return hmac(meeting.secret, "dsopt " + jobText(meeting)); }

std::string placeOf(const Meeting &meeting) { return meeting.address + ":" + std::to_string(meeting.port); }

std::vector<int> peersOf(const Meeting &meeting) {
  std::vector<int> peers;
  if (meeting.peers.empty()) {
    for (int rank = 1; rank < meeting.size; ++rank)
      if (rank != meeting.rank)
        peers.push_back(rank);
    return peers;
  }
  for (int rank : meeting.peers)
    if (rank > 0 && rank < meeting.size && rank != meeting.rank)
      peers.push_back(rank);
  return peers;
}

int Machine::arrived(const Address &from, Time now) {
  size_t silent = 0;
  for (auto &[id, line] : lines)
    silent += !line.called && line.rank < 0;
  if (silent >= self.mostVisitors)
    dropOldest();
  Channel channel(Channel::Listener, lineKey(), self.job, self.nonce(), kHelloBytes);
  lines.emplace(nextLine, Line{std::move(channel), now, from});
  return nextLine++;
}

/// Ranks prove themselves within moments: the oldest of the silent ones is none.
bool Machine::dropOldest() {
  auto oldest = lines.end();
  for (auto it = lines.begin(); it != lines.end(); ++it)
    if (!it->second.called && !it->second.channel.proven() &&
        (oldest == lines.end() || it->second.since < oldest->second.since))
      oldest = it;
  if (oldest == lines.end())
    return false;
  lines.erase(oldest);
  return true;
}

bool Machine::makeRoom() { return dropOldest(); }

void Machine::dropSilent(Time now) {
  for (auto &[id, line] : lines)
    if (!line.called && line.rank < 0 && now - line.since > kHelloLimit)
      line.ends = true;
}

void Machine::received(int id, std::string_view bytes, Time now) {
  auto found = lines.find(id);
  if (found == lines.end())
    return;
  Line &line = found->second;
  while (!bytes.empty() && !line.ends && !done) {
    size_t part = std::min(line.channel.wants(), bytes.size());
    if (part == 0) // more than this side asked for
      break;
    bool before = line.channel.proven();
    line.channel.receive(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (Channel::Fault fault = line.channel.fault()) {
      line.ends = true;
      faulty(id, line, fault, now);
      return;
    }
    if (!before && line.channel.proven()) {
      line.since = now;
      proven(id, line, now);
    }
    Channel::Message message;
    while (!line.ends && line.channel.next(message))
      heard(id, line, message, now);
  }
}

void Machine::closed(int id, const std::string &why, Time now) {
  auto found = lines.find(id);
  if (found == lines.end())
    return;
  Line line = std::move(found->second);
  lines.erase(found);
  if (!line.ends && !done)
    lost(id, line, why, now);
}

void Machine::broke(int id, const std::string &why, Time now) {
  auto found = lines.find(id);
  if (found == lines.end())
    return;
  Line &line = found->second;
  if (line.broken || line.ends || done || !tells(id, line, why))
    return closed(id, why, now);
  line.broken = true;
}

} // namespace dsopt::runtime::rendezvous

//===- RendezvousMachine.h - what ranks say when they meet ------*- C++ -*-===//
//
// Every rank connects to rank 0, proves that it knows the run's secret (Channel.h)
// and says who it is. Once all are there and run the same thing, rank 0 tells each
// where the others listen, and each connects to those below it that it talks to.
// What is wrong with one is told to all, and rank 0 says it. Who cannot prove the secret is dropped.
//
//   rank r -> 0   Hello: rank, size, host, its record, or its trouble
//   0 -> rank r   Welcome: nonce of the run, hosts        when all are there
//   rank r -> 0   Port: where it listens, and the ranks below that it talks to
//   0 -> rank r   Ports: where those listen
//   rank r -> s   Peer, through a channel under the run's key
//   rank r -> 0   Ready
//   0 -> rank r   Go
//   Refused instead of any of rank 0's, Trouble instead of any of the others'.
//
// Both sides are state machines without sockets and clock: bytes and time go in,
// bytes come out. Rendezvous.cpp moves them; tests let hundreds meet in one process.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_RENDEZVOUSMACHINE_H
#define DSOPT_LIB_RUNTIME_COMM_RENDEZVOUSMACHINE_H

#include "Comm/Channel.h"
#include "Comm/Sockets.h"
#include "dsopt/Runtime/World.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dsopt::runtime::rendezvous {

using Time = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr size_t kHelloBytes = 256 << 10, kTableBytes = 16 << 20;
/// So long a connection may take to prove and say who it is.
inline constexpr seconds kHelloLimit(5);
/// Where one that knows another secret, or speaks another version, keeps coming for so long, it is taken for
/// a rank that is missing.
inline constexpr seconds kForeign(4);
/// So long a rank that knows why nobody can meet stays, to tell those that are still to come.
inline constexpr seconds kStays(5);
/// So much longer than rank 0 the others wait: it knows what is missing, and says it.
inline milliseconds patienceBeyond(milliseconds limit) {
  return std::clamp<milliseconds>(limit / 8, seconds(1), seconds(5));
}
enum Kind : uint32_t { Hello = 1, Welcome, Port, Ports, Ready, Go, Refused, Trouble, Peer };

/// This rank, among ranks of one host identity, as messages call it.
struct Self {
  const Meeting &meeting;
  std::string host, name;
  std::string key;                    ///< of the channels to rank 0
  uint64_t job = 0;                   ///< tells runs with neighbouring ports apart
  std::function<std::string()> nonce; ///< kProofBytes that nobody knew
  size_t mostVisitors = 64;           ///< connections that have proven nothing yet
};

/// Why the meeting failed.
struct Refusal {
  int status = 0;
  std::string text;
  bool quiet = false; ///< rank 0 says it, nobody else
};

/// What is common to both sides: connections, and what becomes of those that prove nothing.
class Machine {
public:
  struct Line {
    Channel channel;
    Time since;          ///< last change of what is expected of it
    Address place;       ///< of the other side
    int rank = -1;       ///< once it is known
    bool called = false; ///< by this side
    bool reads = true;   ///< false: what comes next is not for the meeting
    bool ends = false;   ///< to be closed as soon as `channel.out` is sent
    bool broken = false; ///< a call for it has failed
  };
  explicit Machine(Self self) : self(std::move(self)) {}
  virtual ~Machine() = default;

  /// Somebody connected; his line's number.
  int arrived(const Address &from, Time now);
  void received(int line, std::string_view bytes, Time now);
  /// A connection has ended, or one that was called never came about.
  void closed(int line, const std::string &why, Time now);
  /// A call for a connection failed: what was wrong may still reach the other side.
  void broke(int line, const std::string &why, Time now);
  /// The system has no room for another connection: false if there is nothing to give up for one.
  bool makeRoom();
  virtual void tick(Time now) = 0;
  /// Whether this rank has said its last word and is soon to hear whether all are ready: a signal waits for
  /// that, since what it says next belongs to the link.
  virtual bool awaitsAnswer(Time) const { return false; }

  std::map<int, Line> lines;
  bool met = false; ///< `links` are there; with a refusal: that to rank 0 at most to be told
  std::optional<Refusal> refusal;
  bool done = false;      ///< met, or all that can be told of the refusal is told
  std::vector<int> links; ///< by rank: the line, or -1
  std::vector<std::string> hosts, names;
  std::string runKey; ///< known to these ranks only

protected:
  virtual std::string lineKey() const = 0;
  virtual void proven(int, Line &, Time) {}
  virtual void heard(int id, Line &line, const Channel::Message &message, Time now) = 0;
  virtual void faulty(int, Line &, Channel::Fault, Time) {}
  virtual void lost(int, Line &, const std::string &, Time) {}
  /// Tells the other side of a connection that a call for it failed; false if there is nothing to tell.
  virtual bool tells(int, Line &, const std::string &) { return false; }
  void dropSilent(Time now);
  bool dropOldest();

  const Self self;
  const Meeting &meeting = self.meeting;
  int nextLine = 0;
};

/// Rank 0.
class HostMachine final : public Machine {
public:
  HostMachine(Self self, Time now);
  void tick(Time now) override;
  /// Nobody can meet: said to those who are there and who come.
  void refuse(int status, const std::string &text);

private:
  struct Guest {
    int line = -1;
    bool ready = false;
    int port = 0;
    std::vector<int> below;
  };
  std::string lineKey() const override { return self.key; }
  void heard(int id, Line &line, const Channel::Message &message, Time now) override;
  void faulty(int, Line &line, Channel::Fault fault, Time now) override;
  void lost(int, Line &line, const std::string &why, Time now) override;
  bool tells(int, Line &line, const std::string &why) override;
  void receive(int id, Line &line, PacketReader packet, Time now);
  void welcome(Time now);
  void tellPorts();
  void inform(Line &line);
  std::string missing() const;
  std::string called(int rank) const;

  Time start, end;
  bool linking = false;
  std::vector<Guest> guests; ///< by rank
  int there = 1, answered = 0, ready = 0;
  std::string foreignersText() const;

  /// Those who speak as ranks do, but know another secret or are of another version.
  struct {
    Channel::Fault fault = Channel::None;
    int count = 0;
    Time first, last; ///< of those that came without a pause
    std::string from;
  } foreigners;
  std::optional<Time> refusedAt;
  int told = 0; ///< ranks that know of the refusal, or are gone
};

/// The other ranks.
class GuestMachine final : public Machine {
public:
  /// `places` are where rank 0 may be.
  GuestMachine(Self self, std::vector<Address> places, Time now);
  void tick(Time now) override;
  bool awaitsAnswer(Time now) const override { return isReady() && !done && now < answerUntil; }
  /// A connection that was asked for is there.
  void connected(int line, Time now);

  /// Lines that the driver is to connect; it takes them out.
  std::vector<int> calls;
  /// A port is to be listened at: then `listening` or `fail`.
  bool wantsPort = false;
  void listening(int port, Time now);
  /// This rank cannot go on: rank 0 tells all.
  void fail(int status, const std::string &text);
  /// Whether it has waited for rank 0 as long as it may.
  bool gaveUp = false;
  /// The connection to rank 0, -1 before it has proven itself.
  int host() const { return hostLine; }
  /// Whether all ranks are on one host.
  bool oneHost() const;

private:
  std::string lineKey() const override { return runKey; }
  void proven(int id, Line &line, Time now) override;
  void heard(int id, Line &line, const Channel::Message &message, Time now) override;
  void faulty(int, Line &line, Channel::Fault fault, Time now) override;
  void lost(int, Line &line, const std::string &why, Time now) override;
  bool tells(int id, Line &line, const std::string &why) override;
  void welcomed(PacketReader packet, Time now);
  void callPeers(PacketReader packet, Time now);
  void call(const Address &place, int rank, const std::string &key, Time now);
  void link(int rank, int id, Line &line);
  bool isReady() const { return portsSeen && unlinked == 0; }
  void ready();
  void end(int status, const std::string &text, bool quiet = false);
  void endWithoutHost(const std::string &text);
  std::string called(int rank) const;

  std::vector<Address> places;
  Time limit, nextCalls, peersUntil;
  std::string why = "nobody answers";
  std::optional<Time>
      foreignSince; ///< when somebody there first knew another secret or was of another version
  Channel::Fault foreign = Channel::None;
  Time now, answerUntil{};
  int hostLine = -1;
  bool welcomeSeen = false, portsSeen = false;
  std::vector<int> below;   ///< that this rank calls
  std::vector<bool> wanted; ///< ranks to be linked
  int unlinked = 0;
  std::map<int, Address> placesBelow;      ///< of ranks below
  std::vector<std::pair<int, Time>> again; ///< ranks to be called once more
};

/// Ranks that `meeting` wants links to, rank 0 and itself left out.
std::vector<int> peersOf(const Meeting &meeting);

/// The key that a secret gives the channels to rank 0.
std::string keyOf(const Meeting &meeting);
uint64_t jobOf(const Meeting &meeting);
std::string placeOf(const Meeting &meeting);

} // namespace dsopt::runtime::rendezvous

#endif // DSOPT_LIB_RUNTIME_COMM_RENDEZVOUSMACHINE_H

//===- RendezvousSimulation.h - ranks that meet in one process --*- C++ -*-===//
//
// The machines of RendezvousMachine.h on a network of their own, in a time of its
// own: bytes arrive in pieces and late, connections fail, ranks die, strangers
// come. All of it follows from a seed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_RUNTIME_COMM_RENDEZVOUSSIMULATION_H
#define DSOPT_TEST_RUNTIME_COMM_RENDEZVOUSSIMULATION_H

#include "Comm/RendezvousMachine.h"

#include <deque>
#include <memory>
#include <random>

namespace dsopt::runtime::test {

using namespace rendezvous;

/// What befalls the ranks.
struct Faults {
  double refused = 0; ///< share of connections that do not come about at first
  double cut = 0;     ///< share of connections that end within a second
  int dies = -1;      ///< a rank
  milliseconds dieAt{0};
  int breaks = -1; ///< a rank: a call for one of its connections to or from rank 0 fails
  milliseconds breakAt{0};
  int stops = -1; ///< a rank other than 0: it cannot go on
  milliseconds stopAt{0};
  int damages = -1;  ///< a rank: a bit of what it says to rank 0 flips
  int mishears = -1; ///< a rank: a bit of what rank 0 says to it flips
  int strangers = 0; ///< who connect to rank 0 and to whoever listens: silent, noisy, with another key
  milliseconds strangersWithin{3000}; ///< when they come
  int delay = 20;                     ///< at most so many ms on the way
};

class Simulation {
public:
  bool stoppedReady = false;    ///< whether the rank that stops had said that it is ready
  bool saidWhenStopped = false; ///< whether it said to rank 0 that it stops

  Simulation(uint64_t seed, int size, Faults faults)
      : random(seed), faults(faults), meetings(size), machines(size), started(size), dead(size) {
    for (int rank = 0; rank < size; ++rank) {
      Meeting &meeting = meetings[rank];
      meeting.rank = rank;
      meeting.size = size;
      meeting.address = "10.0.0.1";
      meeting.port = 29500;
      meeting.secret = "what all ranks know";
      meeting.limit = seconds(5);
      meeting.record = {{"option -lr", "-lr is", "0.1"}};
    }
  }

  std::mt19937_64 random;
  Faults faults;
  std::vector<Meeting> meetings;
  std::vector<std::unique_ptr<Machine>> machines;
  Time now{};
  int64_t delivered = 0; ///< bytes

  /// Until all ranks are done, or `most` has gone by: false.
  bool run(milliseconds most = milliseconds(60000)) {
    for (size_t rank = 0; rank < meetings.size(); ++rank)
      started[rank] = now + milliseconds(draw(300));
    for (int i = 0; i < faults.strangers; ++i)
      comings.push_back(now + milliseconds(draw(static_cast<int>(faults.strangersWithin.count()))));
    for (Time end = now + most; now < end; now += milliseconds(5)) {
      start();
      die();
      stranger();
      move();
      bool all = true;
      for (size_t rank = 0; rank < machines.size(); ++rank) {
        Machine *machine = machines[rank].get();
        if (machine && !dead[rank])
          drive(static_cast<int>(rank), *machine);
        all &= dead[rank] || (machine && machine->done && quiet(static_cast<int>(rank)));
      }
      if (all)
        return true;
    }
    return false;
  }

  bool isDead(int rank) const { return dead[rank]; }
  Machine &machine(int rank) { return *machines[rank]; }

private:
  /// One end of a connection: a rank's line, or a stranger's (rank -1).
  struct End {
    int rank = -1, line = -1;
    std::deque<std::pair<Time, std::string>> coming;
    std::string received; ///< arrived, not read yet
    bool open = true;
    std::string toSend; ///< of a stranger
  };
  struct Connection {
    End ends[2];
    Time dies = Time::max();
  };

  int draw(int below) { return static_cast<int>(random() % static_cast<uint64_t>(below)); }
  bool happens(double share) { return static_cast<double>(random() % 10000) < share * 10000; }

  static Address addressOf(int rank) {
    Address address;
    address.unpack(std::string("4\x3c\x73\x0a\x00", 5) + static_cast<char>(rank >> 8) +
                   static_cast<char>(rank & 255));
    address.setPort(29500);
    return address;
  }
  static int rankAt(const Address &address) {
    std::string packed = address.packed();
    return static_cast<unsigned char>(packed[5]) << 8 | static_cast<unsigned char>(packed[6]);
  }

  void start() {
    for (size_t rank = 0; rank < machines.size(); ++rank) {
      if (machines[rank] || dead[rank] || now < started[rank])
        continue;
      Self self{meetings[rank],
                "host" + std::to_string(rank / 8),
                "n" + std::to_string(rank),
                keyOf(meetings[rank]),
                jobOf(meetings[rank]),
                [this] { return nonce(); }};
      self.mostVisitors = meetings.size() + 8;
      if (rank == 0)
        machines[rank] = std::make_unique<HostMachine>(std::move(self), now);
      else
        machines[rank] =
            std::make_unique<GuestMachine>(std::move(self), std::vector<Address>{addressOf(0)}, now);
    }
  }
  std::string nonce() {
    std::string bytes(32, '\0');
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    return bytes;
  }

  void die() {
    if (faults.dies < 0 || now < Time() + faults.dieAt || dead[faults.dies])
      return;
    dead[faults.dies] = true;
    for (auto &connection : connections)
      for (End &end : connection->ends)
        if (end.rank == faults.dies)
          close(end);
  }
  static void close(End &end) { end.open = false; }

  bool listens(int rank) const {
    return machines[rank] && !dead[rank] &&
           (rank == 0 || (!machines[rank]->links.empty() && !machines[rank]->done));
  }

  void stranger() {
    for (Time &coming : comings) {
      if (now < coming)
        continue;
      coming = Time::max();
      int rank = happens(0.5) ? 0 : draw(static_cast<int>(machines.size()));
      if (!listens(rank))
        continue;
      Connection &connection = connect(-1, -1, rank);
      Meeting other = meetings[0];
      other.secret = "something else";
      std::string &says = connection.ends[0].toSend;
      switch (draw(4)) {
      case 0: // silent
        break;
      case 1:
        says = nonce() + nonce();
        break;
      case 2:
        says = "GET / HTTP/1.0\r\n\r\n";
        break;
      case 3:
        says = Channel(Channel::Caller, keyOf(other), jobOf(other), nonce(), 100).out + nonce();
        break;
      }
    }
  }

  Connection &connect(int from, int line, int to) {
    connections.push_back(std::make_unique<Connection>());
    Connection &connection = *connections.back();
    connection.ends[0].rank = from;
    connection.ends[0].line = line;
    connection.ends[1].rank = to;
    connection.ends[1].line = machines[to]->arrived(addressOf(std::max(from, 0)), now);
    if (from >= 0 && happens(faults.cut))
      connection.dies = now + milliseconds(draw(1000));
    return connection;
  }

  /// Bytes that have arrived, and ends that were closed.
  void move() {
    for (auto &connection : connections) {
      if (now >= connection->dies)
        connection->ends[0].open = connection->ends[1].open = false;
      for (int side = 0; side < 2; ++side) {
        End &end = connection->ends[side], &other = connection->ends[1 - side];
        while (!end.coming.empty() && end.coming.front().first <= now) {
          end.received += end.coming.front().second;
          end.coming.pop_front();
        }
        Machine *machine = end.rank >= 0 && !dead[end.rank] ? machines[end.rank].get() : nullptr;
        if (!machine || !machine->lines.count(end.line)) {
          if (machine)
            close(end); // the machine has given it up
          if (!end.toSend.empty())
            send(other, std::exchange(end.toSend, ""));
          continue;
        }
        Machine::Line &line = machine->lines.at(end.line);
        while (!end.received.empty() && line.reads && !line.ends && machine->lines.count(end.line)) {
          size_t part = std::min(line.channel.wants(), end.received.size());
          if (part == 0)
            break;
          delivered += static_cast<int64_t>(part);
          std::string piece = end.received.substr(0, part);
          end.received.erase(0, part);
          if (end.rank == 0 && other.rank >= 0 && other.rank == faults.damages && line.channel.proven()) {
            piece.back() ^= 4;
            faults.damages = -1;
          }
          if (other.rank == 0 && end.rank > 0 && end.rank == faults.mishears && line.channel.proven()) {
            piece.back() ^= 4;
            faults.mishears = -1;
          }
          machine->received(end.line, piece, now);
        }
        if ((!end.open || !other.open) && end.coming.empty() && machine->lines.count(end.line) &&
            machine->lines.at(end.line).reads)
          machine->closed(end.line, "it closed the connection", now);
      }
    }
    connections.erase(std::remove_if(connections.begin(), connections.end(),
                                     [](const auto &connection) {
                                       return !connection->ends[0].open && !connection->ends[1].open;
                                     }),
                      connections.end());
  }

  void send(End &to, std::string bytes) {
    Time at = to.coming.empty() ? now : to.coming.back().first;
    while (!bytes.empty()) {
      size_t part = std::min<size_t>(bytes.size(), happens(0.1) ? 1 + draw(40) : 4096);
      at = std::max(at, now + milliseconds(1 + draw(faults.delay)));
      to.coming.push_back({at, bytes.substr(0, part)});
      bytes.erase(0, part);
    }
  }

  void drive(int rank, Machine &machine) {
    if (auto *guest = dynamic_cast<GuestMachine *>(&machine)) {
      for (int id : std::exchange(guest->calls, {})) {
        int to = rankAt(guest->lines.at(id).place);
        if (to >= static_cast<int>(machines.size()) || !listens(to) || happens(faults.refused)) {
          guest->closed(id, "Connection refused", now);
          continue;
        }
        guest->connected(id, now);
        connect(rank, id, to);
      }
      if (guest->wantsPort)
        guest->listening(29500, now);
    }
    if (rank == faults.breaks && now >= Time() + faults.breakAt)
      for (auto &[id, line] : machine.lines)
        if (rank > 0 ? id == static_cast<GuestMachine &>(machine).host() : line.rank > 0) {
          faults.breaks = -1;
          machine.broke(id, "the test wants it", now);
          break;
        }
    if (rank == faults.stops && now >= Time() + faults.stopAt)
      if (auto &guest = static_cast<GuestMachine &>(machine); guest.host() >= 0) {
        faults.stops = -1;
        std::string &out = guest.lines.at(guest.host()).channel.out;
        stoppedReady = guest.awaitsAnswer(now);
        size_t before = out.size();
        guest.fail(StatusInterrupted, "the test wants it");
        saidWhenStopped = out.size() > before;
      }
    machine.tick(now);
    for (auto &connection : connections)
      for (int side = 0; side < 2; ++side) {
        End &end = connection->ends[side];
        if (end.rank != rank || !machine.lines.count(end.line))
          continue;
        Machine::Line &line = machine.lines.at(end.line);
        if (!line.channel.out.empty())
          send(connection->ends[1 - side], std::exchange(line.channel.out, ""));
        if (line.ends) {
          machine.closed(end.line, "", now);
          close(end);
        }
      }
    if (machine.done && machine.refusal)
      for (auto &connection : connections)
        for (End &end : connection->ends)
          if (end.rank == rank)
            close(end);
  }

  /// Whether all that a rank said has been sent, where there is somebody to hear it.
  bool quiet(int rank) {
    for (auto &connection : connections)
      for (End &end : connection->ends)
        if (end.rank == rank && machines[rank]->lines.count(end.line) &&
            !machines[rank]->lines.at(end.line).channel.out.empty())
          return false;
    return true;
  }

  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<Time> started, comings;
  std::vector<bool> dead;
};

} // namespace dsopt::runtime::test

#endif // DSOPT_TEST_RUNTIME_COMM_RENDEZVOUSSIMULATION_H

//===- NcclPlan.cpp - which communication goes by NCCL --------------------===//

#include "Core/NcclPlan.h"

#include <algorithm>
#include <array>

namespace dsopt::runtime {
namespace {

/// What a member of a group does there, in the order of its actions.
struct Turn {
  size_t action;
  bool isOnDevice;
};
using Turns = std::vector<Turn>;

const std::vector<Action> &actionsOf(const Program &program, size_t list, int rank) {
  return positionsOf(program, list)[rankInfo(program, rank).position].actions;
}

class Planner {
public:
  Planner(const Program &program, int rank) : program(program), own(rank) {
    for (size_t list = 0; list < countLists(program); ++list)
      if (positionsOf(program, list).empty())
        plan.groupOf.emplace_back();
      else
        plan.groupOf.emplace_back(actionsOf(program, list, rank).size(), NcclPlan::kHost);
  }

  NcclPlan make() {
    for (size_t index = 0; index < program.communicators.size(); ++index)
      for (int rank = 0; rank < program.ranks(); ++rank)
        // Each group once: as its first member sees it.
        if (const std::vector<AxisPart> &axes = program.communicators[index].axes;
            program.grid.index(rank, axes) == 0)
          planCollectives(static_cast<int64_t>(index), program.grid.group(rank, axes));
    planValues();
    return std::move(plan);
  }

private:
  bool isOnDevice(const Position &position, const Action &action) const {
    return std::all_of(action.refs.begin(), action.refs.end(), [&](const Ref &ref) {
      return position.memories[position.buffers[ref.buffer].memory].kind == MemoryKind::Device;
    });
  }

  template <typename Chosen> Turns turnsOf(size_t list, int rank, Chosen chosen) const {
    const Position &position = positionsOf(program, list)[rankInfo(program, rank).position];
    const std::vector<Action> &actions = position.actions;
    Turns turns;
    for (size_t i = 0; i < actions.size(); ++i)
      if (chosen(actions[i]))
        turns.push_back({i, isOnDevice(position, actions[i])});
    return turns;
  }

  [[noreturn]] void refuse(size_t list, int rank, const Turns &turns, size_t place, int other,
                           const Turns &others) const {
    auto what = [&](int who, const Turns &all) {
      return "rank " + std::to_string(who) + " has " +
             (place < all.size() ? "'" + actionsOf(program, list, who)[all[place].action].name + "'"
                                 : "nothing");
    };
    throw Error(StatusInput, "program table: ranks do not communicate in the same order: " +
                                 what(rank, turns) + ", where " + what(other, others));
  }

  /// Adds a group that uses NCCL in some list; `turns` are this rank's by list, empty if it is no member.
  void add(const std::vector<int> &members, const std::vector<Turns> &turns) {
    for (size_t list = 0; list < turns.size(); ++list)
      for (const Turn &turn : turns[list])
        if (turn.isOnDevice)
          plan.groupOf[list][turn.action] = static_cast<int>(plan.groups.size());
    plan.groups.push_back(members);
  }

  void planCollectives(int64_t communicator, const std::vector<int> &members) {
    std::vector<Turns> mine(countLists(program));
    bool isUsed = false;
    for (size_t list = 0; list < countLists(program); ++list) {
      if (positionsOf(program, list).empty())
        continue;
      auto isOf = [&](const Action &action) {
        return action.communicator == communicator && communicates(action.kind) &&
               action.kind != ActionKind::Agree && action.kind != ActionKind::Send &&
               action.kind != ActionKind::Recv;
      };
      // Ranks of one position do the same: only one of them is looked at.
      std::map<int, int> looked;
      for (int member : members)
        looked.emplace(rankInfo(program, member).position, member);
      int first = looked.begin()->second;
      Turns turns = turnsOf(list, first, isOf);
      for (auto [position, rank] : looked) {
        Turns others = turnsOf(list, rank, isOf);
        for (size_t i = 0; i < std::max(turns.size(), others.size()); ++i) {
          if (i >= turns.size() || i >= others.size() ||
              !isSame(actionsOf(program, list, first)[turns[i].action],
                      actionsOf(program, list, rank)[others[i].action]))
            refuse(list, first, turns, i, rank, others);
          turns[i].isOnDevice &= others[i].isOnDevice;
        }
      }
      isUsed |= std::any_of(turns.begin(), turns.end(), [](const Turn &turn) { return turn.isOnDevice; });
      if (std::find(members.begin(), members.end(), own) == members.end())
        continue;
      mine[list] = turnsOf(list, own, isOf);
      for (size_t i = 0; i < turns.size(); ++i)
        mine[list][i].isOnDevice = turns[i].isOnDevice;
    }
    if (isUsed)
      add(members, mine);
  }

  static bool isSame(const Action &one, const Action &other) {
    return one.kind == other.kind && one.bytes == other.bytes && one.elements == other.elements &&
           one.type == other.type && one.fast == other.fast;
  }

  /// Sends and receives by who sends, who receives and the communicator.
  void planValues() {
    using Way = std::array<int, 3>;
    struct Ends {
      std::vector<Turns> sends, receives; ///< by list
    };
    std::map<Way, Ends> ways;
    for (size_t list = 0; list < countLists(program); ++list)
      for (int rank = 0; !positionsOf(program, list).empty() && rank < program.ranks(); ++rank) {
        const std::vector<Action> &actions = actionsOf(program, list, rank);
        for (const Turn &turn : turnsOf(list, rank, [](const Action &action) {
               return action.kind == ActionKind::Send || action.kind == ActionKind::Recv;
             })) {
          const Action &action = actions[turn.action];
          int peer = static_cast<int>(
              program.grid.member(rank, program.communicators[action.communicator].axes, action.peer));
          bool sends = action.kind == ActionKind::Send;
          Ends &ends =
              ways[{sends ? rank : peer, sends ? peer : rank, static_cast<int>(action.communicator)}];
          std::vector<Turns> &turns = sends ? ends.sends : ends.receives;
          turns.resize(countLists(program));
          turns[list].push_back(turn);
        }
      }
    for (auto &[way, ends] : ways) {
      ends.sends.resize(countLists(program));
      ends.receives.resize(countLists(program));
      planWay(way[0], way[1], ends.sends, ends.receives);
    }
  }

  void planWay(int from, int to, std::vector<Turns> &sends, std::vector<Turns> &receives) {
    bool isUsed = false;
    for (size_t list = 0; list < sends.size(); ++list)
      for (size_t i = 0; i < std::max(sends[list].size(), receives[list].size()); ++i) {
        if (i >= sends[list].size() || i >= receives[list].size())
          refuse(list, from, sends[list], i, to, receives[list]);
        Turn &send = sends[list][i], &receive = receives[list][i];
        const Action &sent = actionsOf(program, list, from)[send.action],
                     &received = actionsOf(program, list, to)[receive.action];
        if (sent.tag != received.tag || sent.bytes != received.bytes)
          refuse(list, from, sends[list], i, to, receives[list]);
        if (sent.queue != actionsOf(program, list, from)[sends[list][0].action].queue ||
            received.queue != actionsOf(program, list, to)[receives[list][0].action].queue)
          throw Error(StatusInput, "program table: '" + sent.name + "' of rank " + std::to_string(from) +
                                       " is on another queue than what goes before it to rank " +
                                       std::to_string(to));
        send.isOnDevice = receive.isOnDevice = send.isOnDevice && receive.isOnDevice;
        isUsed |= send.isOnDevice;
      }
    if (isUsed)
      add({from, to}, own == from ? sends : own == to ? receives : std::vector<Turns>());
  }

  const Program &program;
  int own;
  NcclPlan plan;
};
} // namespace

NcclPlan planNccl(const Program &program, int rank) { return Planner(program, rank).make(); }

} // namespace dsopt::runtime

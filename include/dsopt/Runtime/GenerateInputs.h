//===- GenerateInputs.h - what a program that generates is given -*- C++ -*-===//

#ifndef DSOPT_RUNTIME_GENERATEINPUTS_H
#define DSOPT_RUNTIME_GENERATEINPUTS_H

namespace dsopt::runtime {
/// Beside the tokens of its rows: each row's position, the slot that its sequence is kept in (-1: the row is
/// none), and the rows whose logits are wanted.
inline constexpr char kPositionsInput[] = "dsopt.positions", kSlotsInput[] = "dsopt.slots",
                      kPicksInput[] = "dsopt.picks";
} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_GENERATEINPUTS_H

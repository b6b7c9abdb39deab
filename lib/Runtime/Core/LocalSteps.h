//===- LocalSteps.h - steps by which ranks move apart, and meet -*- C++ -*-===//
//
// 0/1 Adam (Lu et al., 2022), with the policies of DeepSpeed's. The number of an applied
// step alone says of which kind it is, so that all ranks agree, and a run that goes on.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_LOCALSTEPS_H
#define DSOPT_LIB_RUNTIME_CORE_LOCALSTEPS_H

#include "Core/Addresses.h"
#include "Core/Parameters.h"

namespace dsopt::runtime {

/// Whether ranks move apart behind the freeze.
inline bool movesApart(const Program &program) { return program.local_policy.local_step_clipper > 0; }

/// The kind of step `number`, from 1 on, of those that apply. Up to the freeze every interval's last one is
/// whole, others are compressed; the interval, 1 at first, doubles after so many whole ones as
/// var_update_scaler says. Behind it every interval's last one joins, others are local; the interval, 1 at
/// first, doubles every local_step_scaler steps, up to local_step_clipper.
ListKind kindOfStep(const LocalPolicy &policy, int64_t freezeStep, int64_t number);

/// How many of the first `number` steps that apply are whole: so many times the variance has been updated.
int64_t countWhole(const LocalPolicy &policy, int64_t freezeStep, int64_t number);

/// Whether ranks are apart after so many applied steps.
bool areApart(const Program &program, int64_t applied);

/// Zeroes what a position's exchanges have left out: what comes is of another measure.
void clearErrors(const Position &position, const Addresses &addresses);

/// States that each rank has of its own while ranks are apart.
inline constexpr const char *kOwnStates[] = {"m", "u"};
/// How far a rank is from the common point.
inline constexpr const char *kWay = "u";

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_LOCALSTEPS_H

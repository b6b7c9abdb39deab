//===- ChosenCuts.cpp - cuts that a user or the model asks for ------------===//

#include "ChosenCuts.h"

#include "dsopt/Interfaces/Globs.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;

LogicalResult ChosenCuts::read(ModuleOp module) {
  if (getOption(module, "shard_cuts")) {
    complete = true;
    SymbolTable symbols(module);
    for (StringRef entry : getOptionList(module, "shard_cuts")) {
      auto [name, dim] = entry.rsplit('=');
      int64_t number = 0;
      auto parameter = symbols.lookup<graph::ParameterOp>(name);
      if (!parameter || dim.getAsInteger(10, number))
        return module.emitError("has shard_cuts with ") << entry << ", expected PARAMETER=DIM";
      chosen[parameter.getSymName()] = {number, "the largest size of the dimension"};
    }
    return success();
  }
  for (auto parameter : module.getOps<graph::ParameterOp>())
    if (auto dim = parameter.getAskedDim(); dim && !parameter.getPartOf()) {
      int64_t number = *dim;
      chosen[parameter.getSymName()] = {number < 0 ? std::nullopt : std::optional(number),
                                        parameter.getAskedBy()->str()};
    }
  for (StringRef entry : options::shard(module))
    if (failed(readEntry(module, entry)))
      return failure();
  return success();
}

LogicalResult ChosenCuts::choose(graph::ParameterOp parameter, ChosenCut cut) {
  auto [it, isNew] = chosen.insert({parameter.getSymName(), cut});
  if (isNew || it->second.dim == cut.dim)
    return success();
  return parameter->getParentOp()->emitError()
         << it->second.by << " and " << cut.by << " contradict each other: parameter '"
         << parameter.getModelName() << "' has one cut";
}

/// What stands behind GLOB=: an axis and a dimension, or none.
static LogicalResult parsePlace(StringRef place, std::optional<int64_t> &dim,
                                function_ref<InFlightDiagnostic()> refuse) {
  if (place == "none")
    return success();
  auto [axis, number] = place.split(':');
  int64_t value = 0;
  if (axis.empty() || number.getAsInteger(10, value) || value < 0)
    return refuse() << "expected GLOB=tp:DIM with a dimension from 0 on, or GLOB=none";
  if (axis != "tp")
    return refuse() << "there is no axis '" << axis << "' to cut over, expected tp";
  dim = value;
  return success();
}

LogicalResult ChosenCuts::readEntry(ModuleOp module, StringRef entry) {
  // A name may hold '=', a place does not.
  auto [text, place] = entry.rsplit('=');
  std::string by = ("-shard=" + entry).str();
  auto refuse = [&] { return module.emitError() << by << ": "; };
  ChosenCut cut{std::nullopt, by};
  if (failed(parsePlace(place, cut.dim, refuse)))
    return failure();
  FailureOr<Glob> glob = Glob::parse("shard", text, [&] { return module.emitError(); });
  if (failed(glob))
    return failure();
  SmallVector<StringRef> names;
  bool any = false;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    StringRef name = parameter.getModelName();
    names.push_back(name);
    if (parameter.getPartOf() || !glob->matches(name))
      continue;
    any = true;
    int64_t rank = cast<ShapedType>(parameter.getType()).getRank();
    if (cut.dim && *cut.dim >= rank)
      return refuse() << "parameter '" << name << "' has " << rank << " dimension" << (rank == 1 ? "" : "s")
                      << (rank > 1    ? ", expected one from 0 to " + std::to_string(rank - 1)
                          : rank == 1 ? ", expected 0"
                                      : "");
    ChosenCut own = cut;
    if (own.dim)
      own.dim = turnedDim(parameter, *own.dim);
    if (failed(choose(parameter, own)))
      return failure();
  }
  if (!any)
    return module.emitError() << by << " matches no parameter of the model" << nearMatches(text, names);
  return success();
}

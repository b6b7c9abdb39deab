//===- DistGrid.cpp - the grid of ranks, and axes of it -------------------===//

#include "Axes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::dist;

Grid dsopt::dist::getGrid(Operation *op) {
  for (auto module = dyn_cast<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>(); module;
       module = module->getParentOfType<ModuleOp>())
    for (auto grid : module.getOps<GridOp>()) {
      std::array<int64_t, kAxes> sizes;
      llvm::copy(grid.getSizes(), sizes.begin());
      return Grid(sizes);
    }
  return Grid();
}

AxesAttr dsopt::dist::getDataAxes(MLIRContext *context) {
  return AxesAttr::get(context, {AxisPart{Axis::edp}, AxisPart{Axis::ep}, AxisPart{Axis::sp}});
}

std::string dsopt::dist::textOf(AxesAttr axes) {
  return "[" +
         llvm::join(llvm::map_range(axes.getParts(), [](const AxisPart &part) { return describe(part); }),
                    ", ") +
         "]";
}

LogicalResult dsopt::dist::verifyAxes(Operation *op, AxesAttr axes) {
  Grid grid = getGrid(op);
  for (const AxisPart &part : axes.getParts())
    if (!grid.divides(part))
      return op->emitOpError("is over ")
             << textOf(axes) << ", but axis " << kAxisNames[(size_t)part.axis] << " has "
             << grid.size(part.axis) << " ranks, expected a multiple of " << part.count;
  return success();
}

LogicalResult GridOp::verify() {
  if (getSizes().size() != kAxes)
    return emitOpError("has ") << getSizes().size() << " axes, expected pp, edp, ep, sp and tp";
  int64_t ranks = 1;
  for (auto [axis, size] : llvm::enumerate(getSizes())) {
    if (size < 1)
      return emitOpError("has ") << size << " ranks along " << kAxisNames[axis] << ", expected 1 or more";
    if (llvm::MulOverflow(ranks, size, ranks) || ranks > kMostRanks)
      return emitOpError("has more than ") << kMostRanks << " ranks";
  }
  for (auto other : (*this)->getParentOfType<ModuleOp>().getOps<GridOp>())
    if (other != *this && other->isBeforeInBlock(*this)) {
      InFlightDiagnostic diag = emitOpError("is the second grid of its module, expected one");
      diag.attachNote(other.getLoc()) << "the first one is here";
      return diag;
    }
  return success();
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisPart> parts;
  SMLoc location = parser.getCurrentLocation();
  auto parsePart = [&]() -> ParseResult {
    SMLoc location = parser.getCurrentLocation();
    StringRef name;
    if (failed(parser.parseOptionalKeyword(&name)))
      return parser.emitError(location, "expected an axis: pp, edp, ep, sp or tp");
    std::optional<Axis> axis = findAxis(name);
    if (!axis)
      return parser.emitError(location, "got axis '") << name << "', expected pp, edp, ep, sp or tp";
    AxisPart part{*axis};
    if (succeeded(parser.parseOptionalKeyword("inner")))
      part.part = AxisPart::Inner;
    else if (succeeded(parser.parseOptionalKeyword("outer")))
      part.part = AxisPart::Outer;
    parts.push_back(part);
    return part.part == AxisPart::Whole ? success() : parser.parseInteger(parts.back().count);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePart))
    return {};
  auto emit = [&] { return parser.emitError(location); };
  return getChecked(llvm::function_ref<InFlightDiagnostic()>(emit), parser.getContext(),
                    ArrayRef<AxisPart>(parts));
}

void AxesAttr::print(AsmPrinter &printer) const { printer << textOf(*this); }

LogicalResult AxesAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArrayRef<AxisPart> parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].count < 1)
      return emitError() << "axis part '" << describe(parts[i]) << "' has a count below 1";
    if (i > 0 && parts[i - 1].axis >= parts[i].axis)
      return emitError() << "axes '" << describe(parts[i - 1]) << "' and '" << describe(parts[i])
                         << "' are not in the order pp, edp, ep, sp, tp, each once";
  }
  return success();
}

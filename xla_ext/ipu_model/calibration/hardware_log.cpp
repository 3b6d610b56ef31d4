#include "calibration/hardware_log.hpp"

#include <array>
#include <iomanip>
#include <span>
#include <sstream>

#include "calibration/published_step.hpp"

namespace ipu_model::calibration {
namespace {

constexpr unsigned kInputs = 2312, kInputCapacity = 32, kClasses = 10, kClassCapacity = 2;

// A row a cell: largest activity, slots of the lists of hidden layers, the least and the most milliseconds that were
// printed, the widths of up to five hidden layers. tests/ipu/calibration.py reads it too.
constexpr auto kLog = std::to_array<double>({
#include "calibration/hardware_log.csv"
});
constexpr std::size_t kColumns = 9, kWidths = 4;

Cell cell(std::span<const double> row) {
  Cell made{row[0], {kInputs}, {kInputCapacity}, static_cast<unsigned>(row[2]), static_cast<unsigned>(row[3])};
  for (const double neurons : row.subspan(kWidths)) {
    if (neurons == 0) break;
    made.neurons.push_back(static_cast<unsigned>(neurons));
    made.capacities.push_back(static_cast<unsigned>(row[1]));
  }
  made.neurons.push_back(kClasses);
  made.capacities.push_back(kClassCapacity);
  return made;
}

std::string percent(double fraction) {
  std::ostringstream text;
  text << std::setprecision(3) << 100 * fraction << " %";
  return text.str();
}

}  // namespace

std::string Cell::name() const {
  return percent(max_activity) + ", " + std::to_string(neurons.size() - 2) + " hidden, lists of " +
         std::to_string(capacities[1]);
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (std::size_t first = 0; first < kLog.size(); first += kColumns) {
    all.push_back(cell(std::span(kLog).subspan(first, kColumns)));
  }
  return all;
}

Table publishedSteps(const Chip& chip, double fill) {
  Table table{"**graphcore_snn's training step** on " + std::string(chip.name) + ", " + percent(fill) +
                  " of the slots of the lists of the hidden layers holding a spike",
              "ms",
              2,
              {}};
  for (const Cell& cell : cells()) {
    const StepCycles step = publishedStep(chip, {cell.neurons, cell.capacities, kBatch, kSteps}, fill);
    table.rows.push_back(cell.row(1e3 * step.total / chip.clock_hz));
  }
  return table;
}

}  // namespace ipu_model::calibration

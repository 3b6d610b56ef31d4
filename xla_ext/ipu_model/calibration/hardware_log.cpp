#include "calibration/hardware_log.hpp"

#include <iomanip>
#include <sstream>

#include "calibration/published_step.hpp"

namespace ipu_model::calibration {
namespace {

constexpr unsigned kInputs = 2312, kInputCapacity = 32, kClasses = 10, kClassCapacity = 2;

Cell cell(double max_activity, std::vector<unsigned> hidden, unsigned capacity, unsigned low, unsigned high) {
  Cell made{max_activity, {kInputs}, {kInputCapacity}, low, high};
  for (const unsigned neurons : hidden) {
    made.neurons.push_back(neurons);
    made.capacities.push_back(capacity);
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

std::span<const Cell> cells() {
  static const std::vector<unsigned> two = {1466, 1466}, three = {978, 978, 976}, four = {734, 734, 732, 732},
                                     five = {588, 586, 586, 586, 586};
  static const std::vector<Cell> all = {
      cell(0.01, two, 14, 6, 6),    cell(0.01, three, 8, 5, 5),  cell(0.01, four, 6, 5, 5),  cell(0.01, five, 4, 4, 4),
      cell(0.05, two, 72, 8, 9),    cell(0.05, three, 48, 7, 7), cell(0.05, four, 36, 6, 6), cell(0.05, five, 28, 6, 6),
      cell(0.10, two, 146, 10, 11), cell(0.10, three, 96, 9, 9), cell(0.10, four, 72, 7, 8), cell(0.10, five, 58, 7, 7),
  };
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

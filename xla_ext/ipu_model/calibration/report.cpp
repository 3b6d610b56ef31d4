#include "calibration/report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace ipu_model::calibration {
namespace {

std::string number(double value, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << value;
  std::string digits = text.str();
  const std::size_t point = digits.find('.');
  for (std::size_t at = point == std::string::npos ? digits.size() : point; at > 3; at -= 3) {
    if (digits[at - 4] != '-') digits.insert(at - 3, ",");
  }
  return digits;
}

std::string percent(double fraction) {
  std::ostringstream text;
  text << std::showpos << std::fixed << std::setprecision(1) << 100 * fraction << " %";
  return text.str();
}

}  // namespace

double Row::errorOutside() const {
  if (predicted > measured_high) return predicted / measured_high - 1;
  if (predicted < measured_low) return predicted / measured_low - 1;
  return 0;
}

Row exactly(std::string what, double predicted, double measured) {
  return {std::move(what), predicted, measured, measured};
}

double Table::meanError() const {
  double sum = 0;
  for (const Row& row : rows) sum += std::abs(row.error());
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

double Table::meanErrorOutside() const {
  double sum = 0;
  for (const Row& row : rows) sum += std::abs(row.errorOutside());
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

double Table::errorAt(double share) const {
  std::vector<double> errors;
  for (const Row& row : rows) errors.push_back(std::abs(row.error()));
  std::sort(errors.begin(), errors.end());
  const auto last = static_cast<double>(errors.size()) - 1;
  return errors.empty() ? 0 : errors[static_cast<std::size_t>(std::lround(share * last))];
}

std::ostream& operator<<(std::ostream& out, const Table& table) {
  out << table.title << "\n\n| | predicted (" << table.unit
      << ") | measured | error | outside the measured interval |\n"
      << "| --- | --- | --- | --- | --- |\n";
  for (const Row& row : table.rows) {
    out << "| " << row.what << " | " << number(row.predicted, table.decimals) << " | "
        << number(row.measured_low, table.decimals);
    if (row.measured_high > row.measured_low) out << " to " << number(row.measured_high, table.decimals);
    out << " | " << percent(row.error()) << " | " << percent(row.errorOutside()) << " |\n";
  }
  return out << "\nMean of the absolute errors: " << percent(table.meanError()).substr(1)
             << "; of what lies outside: " << percent(table.meanErrorOutside()).substr(1)
             << "; median: " << percent(table.errorAt(0.5)).substr(1)
             << "; 90th percentile: " << percent(table.errorAt(0.9)).substr(1) << ".\n\n";
}

}  // namespace ipu_model::calibration

// Prints the calibration of the model as Markdown: `make calibrate`.
#include <array>
#include <exception>
#include <filesystem>
#include <iostream>

#include "calibration/exchange_phases.hpp"
#include "calibration/hardware_log.hpp"
#include "calibration/matrix_vector.hpp"
#include "calibration/training_steps.hpp"

namespace {

void printTables(const std::filesystem::path& codelets) {
  using namespace ipu_model::calibration;
  constexpr std::array kChips = {"bow", "mk2"};
  std::cout << "### Tutorial 6\n\n" << matrixVector() << "### Exchange\n\n" << exchangePhases() << isolatedTransfers();
  std::cout << "### The hardware log, its own program\n\n";
  for (const char* chip : kChips) std::cout << publishedSteps(ipu_model::chipNamed(chip), 1);
  std::cout << publishedSteps(ipu_model::chipNamed("bow"), 0.5);
  std::cout << "### The hardware log, our program\n\n";
  for (const Table& table : trainingSteps(kChips, codelets.string())) std::cout << table;
}

}  // namespace

int main(int, char** arguments) {
  try {
    printTables(std::filesystem::path(arguments[0]).parent_path() / "snnjax.gp");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}

// Prints the calibration of the model as Markdown: `make calibrate`.
#include <array>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>

#include "calibration/dense_products.hpp"
#include "calibration/exchange_phases.hpp"
#include "calibration/hardware_log.hpp"
#include "calibration/matrix_vector.hpp"
#include "calibration/training_steps.hpp"

namespace {

using namespace ipu_model::calibration;

constexpr std::array kChips = {"bow", "mk2"};

void printWallTimes(const std::vector<StepRun>& runs) {
  std::cout << "Wall time on this machine, of the graph and the engine, and of the step:\n\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::cout << "- " << cells()[i].name() << ": " << runs[i].build_seconds << " s, " << runs[i].run_seconds << " s\n";
  }
  std::cout << '\n';
}

void printTables(const std::string& codelets) {
  std::cout << "### Tutorial 6\n\n" << matrixVector() << "### Exchange\n\n" << exchangePhases() << isolatedTransfers();
  std::cout << "### The hardware log, its own program\n\n";
  for (const char* chip : kChips) std::cout << publishedSteps(ipu_model::chipNamed(chip), 1);
  std::cout << publishedSteps(ipu_model::chipNamed("bow"), 0.5) << std::flush;
  std::cout << "### The hardware log, our program\n\n";
  const std::vector<StepRun> runs = runTrainingSteps(codelets);
  for (const char* chip : kChips) std::cout << trainingSteps(ipu_model::chipNamed(chip), runs);
  printWallTimes(runs);
  std::cout << "### Dense products\n\n";
  for (const bool halves : {false, true}) {
    std::cout << denseProducts(halves, std::numeric_limits<double>::infinity()) << std::flush;
  }
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

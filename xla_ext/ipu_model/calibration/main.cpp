// Prints the calibration of the model as Markdown: a part of `make calibrate`.
#include <array>
#include <exception>
#include <iostream>
#include <limits>

#include "calibration/dense_products.hpp"
#include "calibration/exchange_phases.hpp"
#include "calibration/hardware_log.hpp"
#include "calibration/matrix_vector.hpp"

namespace {

using namespace ipu_model::calibration;

constexpr std::array kChips = {"bow", "mk2"};

void printTables() {
  std::cout << "### Tutorial 6\n\n" << matrixVector() << "### Exchange\n\n" << exchangePhases() << isolatedTransfers();
  std::cout << "### The hardware log, its own program\n\n";
  for (const char* chip : kChips) std::cout << publishedSteps(ipu_model::chipNamed(chip), 1);
  std::cout << publishedSteps(ipu_model::chipNamed("bow"), 0.5) << std::flush;
  std::cout << "### Dense products\n\n";
  for (const bool halves : {false, true}) {
    std::cout << denseProducts(halves, std::numeric_limits<double>::infinity()) << std::flush;
  }
}

}  // namespace

int main() {
  try {
    printTables();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}

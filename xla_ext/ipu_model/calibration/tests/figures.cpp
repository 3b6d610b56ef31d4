// The calibration holds: what `make calibrate` prints stays as close to the measurements as README.md says. Two of the
// twelve training steps of the log stand for them.
#include <algorithm>

#include "calibration/dense_products.hpp"
#include "calibration/exchange_phases.hpp"
#include "calibration/matrix_vector.hpp"
#include "calibration/training_steps.hpp"
#include "check.hpp"

namespace {

using namespace ipu_model::calibration;

void checkWithin(const Table& table, double bound) {
  for (const Row& row : table.rows) {
    check::that(std::abs(row.error()) <= bound, "error within bound", __FILE__, __LINE__,
                row.what + ": " + std::to_string(row.error()));
  }
}

void testMatrixVector() {
  const Table table = matrixVector();
  CHECK_EQUAL(table.rows.size(), 2U);
  CHECK(std::abs(table.rows[0].error()) < 0.01);  // compute
  CHECK(std::abs(table.rows[1].error()) < 0.02);  // exchange
}

void testExchange() {
  checkWithin(exchangePhases(), 0.06);
  checkWithin(isolatedTransfers(), 0);
}

// Those that run in no time: 2048 x 2048 and 4096 x 4096, by few columns.
void testDenseProducts() {
  for (const bool halves : {false, true}) {
    const Table table = denseProducts(halves, 3e8);
    CHECK(table.rows.size() >= 5);
    CHECK(table.errorAt(0.5) < 0.2);
    checkWithin(table, 0.4);
  }
}

void testPublishedSteps() {
  const Table bow = publishedSteps(ipu_model::chipNamed("bow"), 1),
              mk2 = publishedSteps(ipu_model::chipNamed("mk2"), 1);
  CHECK(bow.meanError() < 0.2);
  CHECK(bow.meanError() < mk2.meanError());
  // More activity never takes less time; cells() has the four networks of one activity after those of a lower one.
  for (std::size_t i = 4; i < bow.rows.size(); ++i) CHECK(bow.rows[i].predicted >= bow.rows[i - 4].predicted);
}

// The published network leaves half of each tile's memory free, and all tiles take equally long to update their
// weights.
void checkFit(const ipu_model::Profile& profile) {
  CHECK_EQUAL(profile.tiles.size(), 1472U);
  for (const ipu_model::TileProfile& tile : profile.tiles) CHECK(tile.memory() < profile.memory_per_tile / 2);
  const auto adam = std::ranges::find(profile.compute_sets, "adam", &ipu_model::ComputeSetProfile::name);
  CHECK(adam != profile.compute_sets.end() && adam->balance() > 0.8);
}

// Two and five hidden layers at 1 %, which run quickest: near to what was measured, and more layers take no longer.
void testTrainingSteps(const std::string& codelets) {
  const auto predicted = [&](const Cell& cell, const StepRun& run) {
    return cell.row(run.milliseconds(ipu_model::chipNamed("bow")));
  };
  const StepRun two_layers = runTrainingStep(cells()[0], kSteps, codelets);
  checkFit(two_layers.profile);
  const Row two = predicted(cells()[0], two_layers),
            five = predicted(cells()[3], runTrainingStep(cells()[3], kSteps, codelets));
  CHECK(std::abs(two.error()) < 0.35);
  CHECK(std::abs(five.error()) < 0.35);
  CHECK(five.predicted <= two.predicted);
}

}  // namespace

int main(int, char** arguments) {
  testMatrixVector();
  testExchange();
  testDenseProducts();
  testPublishedSteps();
  testTrainingSteps(arguments[1]);
  return check::failures;
}

// Runs the model of net.py on three rows; see CMakeLists.txt.
#include <cstdio>

#include "net.h"

int main() {
  float x[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 1}}, y[3][2];
  int64_t x_shape[] = {3, 4}, y_shape[] = {3, 2};
  DLTensor input = {x, {1, 0}, 2, {2, 32, 1}, x_shape, nullptr, 0};  // on the CPU, two dimensions, float32
  DLTensor output = {y, {1, 0}, 2, {2, 32, 1}, y_shape, nullptr, 0};

  net model;
  if (net_open(&model) || net_run(&model, &input, &output)) {
    std::fprintf(stderr, "%s\n", model.error);
    return 1;
  }
  for (auto &row : y) std::printf("%.4f %.4f\n", row[0], row[1]);
  net_close(&model);
}

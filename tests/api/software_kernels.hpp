// What the kernels mean, computed by the reference from nothing but the constants of the
// specialization and the parameters of the launch.
#pragma once

namespace jitney::tests {

// `image` is the fake compiler's: options and translation unit.
void run_software_kernel(const char* image, void** parameters);

}  // namespace jitney::tests

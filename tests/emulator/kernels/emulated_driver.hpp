// The one function of the CUDA driver that making a kernel's parameters takes: tensor maps, in the
// machine's own form.
#pragma once

namespace jitney::emulator {

// From here on the library's own code makes its maps so. Called as often as one likes.
void use_emulated_driver();

}  // namespace jitney::emulator

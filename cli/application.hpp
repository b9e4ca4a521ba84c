// The command `jitney`: reads the command line and runs one subcommand.
#pragma once

namespace jitney::cli {

// The process's exit status: 0, 2 where the command line or an input can't be meant, else 1.
int run(int argc, const char* const* argv) noexcept;

}  // namespace jitney::cli

// The appending to a cache that explain is asked about.
#pragma once

#include <string>

#include "cli/arguments.hpp"
#include "jitney/append_kv.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct AppendKvProblem {
    Shape rows;  // of new_k and new_v
    int requests = 0;
    int page_size = 0;  // 0: a padded cache
    std::string format = "bf16";
    std::string style = "none";
    int rotary_dim = 0;  // 0: all of head_dim
    int q_heads = 0;

    void add_to(CLI::App& command);
    // The call, its pointers null.
    AppendKvArgs arguments(Device device) const;
};

}  // namespace jitney::cli

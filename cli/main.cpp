#include "cli/application.hpp"

int main(int argc, char** argv) {
    return jitney::cli::run(argc, argv);
}

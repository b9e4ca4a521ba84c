// What jitney doctor finds out, section by section.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "jitney/machine.hpp"

namespace jitney::cli {

// A sentence that says what is wrong and what mends it.
struct Finding {
    bool fault = false;  // something that is there, or was asked for, does not work
    std::string text;
};

struct Diagnosis {
    Json json;                                    // one field a section
    std::vector<std::vector<std::string>> facts;  // name and value, for people
    std::vector<Finding> findings;
    CompilerState nvrtc;
    bool gpu = false;       // there is one that the driver can use
    bool compiler = false;  // NVRTC compiles
    bool cached = false;    // the cache holds kernels

    void fact(std::string name, std::string value);
    void note(std::string text) { findings.push_back({false, std::move(text)}); }
    void fault(std::string text) { findings.push_back({true, std::move(text)}); }
};

// None of them throws for anything that is missing or broken on the machine.
void examine_compiler(Diagnosis& diagnosis);
void examine_driver(Diagnosis& diagnosis);  // after the compiler, whose architectures it compares
void examine_cache(Diagnosis& diagnosis);
void examine_environment(Diagnosis& diagnosis);

}  // namespace jitney::cli

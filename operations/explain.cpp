#include "jitney/explain.hpp"

#include "jitney/error.hpp"
#include "operations/explained_choice.hpp"
#include "operations/kernel_launch.hpp"
#include "runtime/driver.hpp"

namespace jitney {

policy::DeviceFacts facts_to_explain(std::string_view arch, const Device& device) {
    if (!arch.empty()) return policy::facts_named(arch);
    if (device.type == DeviceType::cpu || !runtime::driver_available()) {
        throw Error(ErrorCode::no_device,
                    "there is no GPU to explain the call for: name an arch such as sm_90a");
    }
    return facts_of(runtime::device(device.index));
}

std::vector<ExplainedCandidate> explained(const std::vector<policy::Candidate>& candidates) {
    std::vector<ExplainedCandidate> all;
    for (const policy::Candidate& candidate : candidates) {
        all.push_back({std::string(policy::info(candidate.kernel).name), candidate.accepted(),
                       policy::reason_text(candidate)});
    }
    return all;
}

void add_steps(Explanation& explanation, const Steps& steps) {
    const Step& last = steps.last();
    explanation.chosen = policy::text_of(last.spec);
    explanation.grid = last.geometry.grid;
    explanation.block = last.geometry.block;
    explanation.shared_bytes = last.geometry.shared_bytes;
    explanation.before.clear();
    for (const Step& step : steps.before())
        explanation.before.push_back(policy::text_of(step.spec));
}

void add_steps(ExplainedLaunches& explanation, const Steps& steps) {
    explanation.launches.clear();
    for (const Step& step : steps.all()) {
        ExplainedLaunch& launch = explanation.launches.emplace_back();
        launch.spec = policy::text_of(step.spec);
        launch.grid = step.geometry.grid;
        launch.block = step.geometry.block;
        launch.shared_bytes = step.geometry.shared_bytes;
    }
}

void tell_reference(Explanation& explanation) {
    explanation.chosen = "reference";
}

void tell_reference(ExplainedLaunches& explanation) {
    explanation.launches.emplace_back().spec = "reference";
}

}  // namespace jitney

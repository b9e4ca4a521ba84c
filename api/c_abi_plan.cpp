// Plans of the C ABI: those of every operation, one line each in operations/all_fields.hpp.
#include <memory>
#include <string>

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "jitney/operations.hpp"
#include "jitney/plan.hpp"
#include "operations/all_fields.hpp"
#include "operations/last_run.hpp"
#include "operations/refuse.hpp"

struct jitney_plan {
    jitney_plan() = default;
    jitney_plan(const jitney_plan&) = delete;
    jitney_plan& operator=(const jitney_plan&) = delete;
    virtual ~jitney_plan() = default;
    virtual const char* operation() const noexcept = 0;
    virtual std::size_t workspace_bytes() const noexcept = 0;
    virtual std::string explanation() const = 0;
};

namespace jitney::c_abi {
namespace {

template <class Args>
struct PlanOf final : jitney_plan {
    PlanOf(const char* operation, const Args& args) : operation_(operation), plan(args) {}
    const char* operation() const noexcept override { return operation_; }
    std::size_t workspace_bytes() const noexcept override { return plan.workspace_bytes(); }
    std::string explanation() const override { return json_of(plan.explanation()); }

    const char* operation_;
    Plan<Args> plan;
};

const jitney_plan& known(const jitney_plan* plan, const char* operation) {
    if (plan == nullptr) {
        checks::refuse("plan is null: make one with jitney_{}_plan_create", operation);
    }
    return *plan;
}

template <class Args>
const Plan<Args>& plan_of(const jitney_plan* given, const char* operation) {
    const jitney_plan& plan = known(given, operation);
    const auto* const own = dynamic_cast<const PlanOf<Args>*>(&plan);
    if (own == nullptr) {
        checks::refuse("the plan is one of {}: run it with jitney_{}_plan_run", plan.operation(),
                       plan.operation());
    }
    return own->plan;
}

template <class T>
T& place(T* given, const char* name) {
    if (given == nullptr) checks::refuse("{} is null: point it to where the answer shall go", name);
    *given = {};
    return *given;
}

jitney_status workspace_of(const jitney_plan* plan, size_t* bytes, const char* operation) noexcept {
    return guarded([&] {
        size_t& answer = place(bytes, "bytes");
        answer = known(plan, operation).workspace_bytes();
    });
}

jitney_status explain(const jitney_plan* plan, const char** json, const char* operation) noexcept {
    return guarded([&] {
        const char*& answer = place(json, "json");
        thread_local std::string shown;
        shown = known(plan, operation).explanation();
        answer = shown.c_str();
    });
}

jitney_status destroy(jitney_plan* plan) noexcept {
    return guarded([&] { delete plan; });
}

constexpr const char* kAny = "OPERATION";

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

#define JITNEY_DEFINE_PLAN(name, call, Args)                                                   \
    jitney_status jitney_##name##_plan_create(const jitney_##name##_args* args,                \
                                              jitney_plan** plan) {                            \
        return guarded([&] {                                                                   \
            jitney_plan*& made = place(plan, "plan");                                          \
            made = std::make_unique<PlanOf<Args>>(#name, JITNEY_C_ARGUMENTS(name, Args, args)) \
                       .release();                                                             \
        });                                                                                    \
    }                                                                                          \
    jitney_status jitney_##name##_plan_run(                                                    \
        const jitney_plan* plan, const jitney_##name##_args* args, jitney_stream stream) {     \
        return guarded([&] {                                                                   \
            note_nothing_ran();                                                                \
            plan_of<Args>(plan, #name).run(JITNEY_C_ARGUMENTS(name, Args, args), stream);      \
        });                                                                                    \
    }

JITNEY_FOR_EACH_OPERATION(JITNEY_DEFINE_PLAN)

#undef JITNEY_DEFINE_PLAN

jitney_status jitney_plan_workspace(const jitney_plan* plan, size_t* bytes) {
    return workspace_of(plan, bytes, kAny);
}

jitney_status jitney_plan_explain(const jitney_plan* plan, const char** json) {
    return explain(plan, json, kAny);
}

jitney_status jitney_plan_destroy(jitney_plan* plan) {
    return destroy(plan);
}

// The same under the names of the first operation that had plans.
jitney_status jitney_attention_plan_workspace(const jitney_attention_plan* plan, size_t* bytes) {
    return workspace_of(plan, bytes, "attention");
}

jitney_status jitney_attention_plan_explain(const jitney_attention_plan* plan, const char** json) {
    return explain(plan, json, "attention");
}

jitney_status jitney_attention_plan_destroy(jitney_attention_plan* plan) {
    return destroy(plan);
}

}  // extern "C"

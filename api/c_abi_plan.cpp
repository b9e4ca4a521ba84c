// Plans and workspaces of the C ABI.
#include <memory>
#include <string>

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "api/c_abi_explain.hpp"
#include "jitney/plan.hpp"
#include "operations/attention/fields.hpp"
#include "operations/last_run.hpp"
#include "operations/refuse.hpp"

struct jitney_attention_plan {
    jitney::AttentionPlan plan;
};

namespace jitney::c_abi {
namespace {

const AttentionPlan& known(const jitney_attention_plan* plan) {
    if (plan == nullptr) checks::refuse("plan is null: make one with jitney_attention_plan_create");
    return plan->plan;
}

template <class T>
T& place(T* given, const char* name) {
    if (given == nullptr) checks::refuse("{} is null: point it to where the answer shall go", name);
    *given = {};
    return *given;
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

jitney_status jitney_attention_plan_create(const jitney_attention_args* args,
                                           jitney_attention_plan** plan) {
    return guarded([&] {
        jitney_attention_plan*& made = place(plan, "plan");
        made = std::make_unique<jitney_attention_plan>(
                   jitney_attention_plan{
                       AttentionPlan(JITNEY_C_ARGUMENTS(attention, AttentionArgs, args))})
                   .release();
    });
}

jitney_status jitney_attention_plan_run(const jitney_attention_plan* plan,
                                        const jitney_attention_args* args, jitney_stream stream) {
    return guarded([&] {
        note_nothing_ran();
        known(plan).run(JITNEY_C_ARGUMENTS(attention, AttentionArgs, args), stream);
    });
}

jitney_status jitney_attention_plan_workspace(const jitney_attention_plan* plan, size_t* bytes) {
    return guarded([&] {
        size_t& answer = place(bytes, "bytes");
        answer = known(plan).workspace_bytes();
    });
}

jitney_status jitney_attention_plan_explain(const jitney_attention_plan* plan, const char** json) {
    return guarded([&] {
        const char*& answer = place(json, "json");
        thread_local std::string shown;
        shown = json_of(known(plan).explanation());
        answer = shown.c_str();
    });
}

jitney_status jitney_attention_plan_destroy(jitney_attention_plan* plan) {
    return guarded([&] { delete plan; });
}

}  // extern "C"

/* Logits functions from C: made once, explained, refused for host tensors and where they are wrong.
 */
#include <stdint.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static void made(void) {
    static const char* const parameters[] = {"float cap", "const float* slopes"};
    const jitney_logits_function* first = NULL;
    const jitney_logits_function* second = NULL;
    CHECK_PASSED(jitney_logits_function_of("cap * score - slopes[head]", parameters, 2, &first));
    CHECK_PASSED(jitney_logits_function_of("cap * score - slopes[head]", parameters, 2, &second));
    CHECK(first != NULL && first == second);
    CHECK_PASSED(jitney_logits_function_of("score", NULL, 0, &second));
    CHECK(second != NULL && first != second);

    problem p;
    make_problem(&p);
    p.args.logits = first;
    p.args.logits_values[0].fp32 = 2.0f;
    p.args.logits_values[1].pointer = p.q;
    const char* json = NULL;
    CHECK_PASSED(jitney_explain_attention(&p.args, "sm_80", &json));
    CHECK(json != NULL && strstr(json, ",logits=") != NULL);
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_UNSUPPORTED, "logits function");
}

static void refusals(void) {
    static const char* const parameters[] = {"double x", NULL};
    const jitney_logits_function* function = NULL;
    CHECK_REFUSED(jitney_logits_function_of("", NULL, 0, &function), JITNEY_INVALID_ARGUMENT,
                  "empty");
    CHECK(function == NULL);
    CHECK_REFUSED(jitney_logits_function_of(NULL, NULL, 0, &function), JITNEY_INVALID_ARGUMENT,
                  "text is null");
    CHECK_REFUSED(jitney_logits_function_of("score", NULL, 1, &function), JITNEY_INVALID_ARGUMENT,
                  "parameters is null");
    CHECK_REFUSED(jitney_logits_function_of("score", parameters, 1, &function),
                  JITNEY_INVALID_ARGUMENT, "double x");
    CHECK_REFUSED(jitney_logits_function_of("score", parameters + 1, 1, &function),
                  JITNEY_INVALID_ARGUMENT, "a text of parameters is null");
    CHECK_REFUSED(jitney_logits_function_of("score", NULL, 0, NULL), JITNEY_INVALID_ARGUMENT,
                  "function is null");
    CHECK_REFUSED(jitney_logits_function_of("score", parameters, 5, &function),
                  JITNEY_INVALID_ARGUMENT, "count is 5");
    CHECK_REFUSED(jitney_logits_function_of("score", parameters, SIZE_MAX, &function),
                  JITNEY_INVALID_ARGUMENT, "count is 18446744073709551615");
    CHECK(function == NULL);

    /* Values that nothing is declared for. */
    static const char* const one[] = {"float cap"};
    problem p;
    make_problem(&p);
    p.args.logits_values[2].pointer = p.q;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "logits_values[2] is given, and there is no logits function");
    CHECK_PASSED(jitney_logits_function_of("cap * score", one, 1, &function));
    p.args.logits = function;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "logits_values[2] is given, and the logits function has 1 parameters");
}

void logits_tests(void) {
    made();
    refusals();
}

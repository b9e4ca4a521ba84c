/* Checks that count what fails and go on. */
#ifndef TESTS_C_ABI_CHECK_H
#define TESTS_C_ABI_CHECK_H

#include <jitney/jitney.h>

extern int failures;

void check_true(int condition, const char* text, const char* file, int line);
void check_text(const char* got, const char* want, const char* file, int line);
/* The call returned `want` and its sentence, which has `words` in it. */
void check_refused(jitney_status got, jitney_status want, const char* words, const char* file,
                   int line);
/* The call succeeded and left no sentence. */
void check_passed(jitney_status got, const char* text, const char* file, int line);

#define CHECK(condition) check_true((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define CHECK_TEXT(got, want) check_text(got, want, __FILE__, __LINE__)
#define CHECK_REFUSED(call, status, words) check_refused(call, status, words, __FILE__, __LINE__)
#define CHECK_PASSED(call) check_passed(call, #call, __FILE__, __LINE__)

#endif

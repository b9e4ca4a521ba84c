#include "tests/c_abi/check.h"

#include <stdio.h>
#include <string.h>

int failures = 0;

void check_true(int condition, const char* text, const char* file, int line) {
    if (condition) return;
    ++failures;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
}

void check_text(const char* got, const char* want, const char* file, int line) {
    if (got != NULL && strcmp(got, want) == 0) return;
    ++failures;
    fprintf(stderr, "%s:%d: '%s' instead of '%s'\n", file, line, got != NULL ? got : "(null)",
            want);
}

void check_refused(jitney_status got, jitney_status want, const char* words, const char* file,
                   int line) {
    const char* sentence = jitney_last_error();
    if (got != want) {
        ++failures;
        fprintf(stderr, "%s:%d: status %d instead of %d: %s\n", file, line, (int)got, (int)want,
                sentence);
    } else if (strlen(sentence) < 20 || strstr(sentence, words) == NULL) {
        ++failures;
        fprintf(stderr, "%s:%d: the sentence '%s' has no '%s'\n", file, line, sentence, words);
    }
}

void check_passed(jitney_status got, const char* text, const char* file, int line) {
    if (got == JITNEY_SUCCESS && jitney_last_error()[0] == '\0') return;
    ++failures;
    fprintf(stderr, "%s:%d: %s: status %d: %s\n", file, line, text, (int)got, jitney_last_error());
}

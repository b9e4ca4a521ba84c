#include "tests/c_abi/temporary.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

int make_directory(char* path, unsigned long size) {
    const char* parent = getenv("TMPDIR");
    snprintf(path, size, "%s/jitney-test-XXXXXX", parent != NULL ? parent : "/tmp");
    return mkdtemp(path) != NULL;
}

static int remove_one(const char* path, const struct stat* facts, int type, struct FTW* place) {
    (void)facts;
    (void)type;
    (void)place;
    return remove(path);
}

void remove_directory(const char* path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A directory of this process alone. */
#ifndef TESTS_C_ABI_TEMPORARY_H
#define TESTS_C_ABI_TEMPORARY_H

/* 1 where it was made. */
int make_directory(char* path, unsigned long size);
void remove_directory(const char* path);

#endif

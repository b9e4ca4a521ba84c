/* What the fake driver saw. */
#ifndef TESTS_C_ABI_FAKE_DRIVER_H
#define TESTS_C_ABI_FAKE_DRIVER_H

#ifdef __cplusplus
extern "C" {
#endif

int fake_launches(void);
/* Of stream-ordered memory. */
int fake_allocations(void);
/* Of the last launch. */
void* fake_stream(void);
/* Whether every stream is being captured from now on. */
void fake_capture(int capturing);

#ifdef __cplusplus
}
#endif
#endif

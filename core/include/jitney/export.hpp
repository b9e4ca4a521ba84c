// Marks what libjitney.so exports; everything else is hidden.
#pragma once

#define JITNEY_API __attribute__((visibility("default")))

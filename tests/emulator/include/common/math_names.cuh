// The host's own names stand for those that NVRTC lacks.
#pragma once

#include <cfloat>
#include <climits>
#include <cmath>

// Several neighbouring elements as one load or store, or as several of 16 bytes, which is also the
// most that they are aligned to.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

template <class T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Vector {
    T items[count];
};

template <int count, class T>
JITNEY_DEVICE Vector<T, count> load_vector(const T* from) {
    expect_aligned<alignof(Vector<T, count>)>(from);
    return *reinterpret_cast<const Vector<T, count>*>(from);
}

template <int count, class T>
JITNEY_DEVICE void store_vector(T* to, const Vector<T, count>& vector) {
    expect_aligned<alignof(Vector<T, count>)>(to);
    *reinterpret_cast<Vector<T, count>*>(to) = vector;
}

}  // namespace jitney

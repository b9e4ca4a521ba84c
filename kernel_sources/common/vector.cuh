// Several neighbouring elements as one aligned load or store.
#pragma once

#include "common/builtins.cuh"

namespace jitney {

template <class T, int count>
struct alignas(sizeof(T) * count) Vector {
    T items[count];
};

template <int count, class T>
JITNEY_DEVICE Vector<T, count> load_vector(const T* from) {
    return *reinterpret_cast<const Vector<T, count>*>(from);
}

template <int count, class T>
JITNEY_DEVICE void store_vector(T* to, const Vector<T, count>& vector) {
    *reinterpret_cast<Vector<T, count>*>(to) = vector;
}

}  // namespace jitney

// The findings that reading a configuration makes beside its layers.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace jitney::policy {

struct Findings {
    std::vector<std::string> missing;   // fields without which nothing can be told
    std::vector<std::string> notes;     // what was assumed, and what was passed over
    std::vector<std::string> unserved;  // fields that change a kernel, and are not served

    static void add(std::vector<std::string>& list, std::string sentence) {
        if (std::find(list.begin(), list.end(), sentence) == list.end())
            list.push_back(std::move(sentence));
    }
    void lack(std::string field) { add(missing, std::move(field)); }
    void note(std::string sentence) { add(notes, std::move(sentence)); }
    void refuse(std::string sentence) { add(unserved, std::move(sentence)); }
};

}  // namespace jitney::policy

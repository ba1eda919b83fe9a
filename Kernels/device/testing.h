// Shared by tests of host code: a failed expectation says what failed and ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace testing {

inline void expect(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what.c_str());
    std::exit(1);
}

// `attempt` is rejected with an error that contains `words`.
template <class Attempt>
void expect_refused(Attempt&& attempt, const std::string& words) {
    try {
        attempt();
    } catch (const std::invalid_argument& error) {
        const std::string message = error.what();
        expect(message.find(words) != std::string::npos, words + " in '" + message + "'");
        return;
    }
    expect(false, "accepted what should be rejected with '" + words + "'");
}

}  // namespace testing

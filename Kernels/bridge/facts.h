// A plan's description of itself in a result: a flat JSON object.
#pragma once

#include <string>
#include <type_traits>

namespace device {

class Facts {
  public:
    // Text is plain words that need no escaping.
    template <class Value>
    Facts& add(const char* name, const Value& value) {
        text_ += text_.empty() ? "{\"" : ", \"";
        text_ += std::string(name) + "\": ";
        if constexpr (std::is_arithmetic_v<Value>) {
            text_ += std::to_string(value);
        } else {
            text_ += "\"" + std::string(value) + "\"";
        }
        return *this;
    }

    std::string json() const { return text_.empty() ? "{}" : text_ + "}"; }

  private:
    std::string text_;
};

}  // namespace device

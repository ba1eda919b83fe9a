// The library's kernel that sorts sequences of different lengths for the scheduler.
#include "static_switch.h"

// It does not sort where there are windows: half of its instantiations.
#undef BOOL_SWITCH
#define BOOL_SWITCH(condition, name, ...)  \
    [&] {                                  \
        constexpr static bool name = true; \
        return __VA_ARGS__();              \
    }()

#include "flash_prepare_scheduler.cu"

// The sums of Hopper's warpgroup products as inline assembly wants them listed: H2H_REGISTERS_n are
// the places of the first n operands, H2H_SUMS_n(d) those operands, the elements of a flat array.
#pragma once

// clang-format off
#define H2H_REGISTERS_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define H2H_REGISTERS_64 \
    H2H_REGISTERS_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63"
#define H2H_REGISTERS_128 \
    H2H_REGISTERS_64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, " \
    "%72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, " \
    "%88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, " \
    "%104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, " \
    "%120, %121, %122, %123, %124, %125, %126, %127"
#define H2H_SUMS_8_FROM(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define H2H_SUMS_32_FROM(d, i) \
    H2H_SUMS_8_FROM(d, i), H2H_SUMS_8_FROM(d, i + 8), \
    H2H_SUMS_8_FROM(d, i + 16), H2H_SUMS_8_FROM(d, i + 24)
#define H2H_SUMS_32(d) H2H_SUMS_32_FROM(d, 0)
#define H2H_SUMS_64(d) H2H_SUMS_32(d), H2H_SUMS_32_FROM(d, 32)
#define H2H_SUMS_128(d) H2H_SUMS_64(d), H2H_SUMS_32_FROM(d, 64), H2H_SUMS_32_FROM(d, 96)
// clang-format on

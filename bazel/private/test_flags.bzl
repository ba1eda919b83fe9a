"""How tests are compiled."""

# Optimising a test takes longer than running it without. rustc then checks for overflow and keeps debug assertions.
UNOPTIMISED = ["-Copt-level=0"]

// Plans for kernels with sums over rows: how many blocks keep such sums, and whether a ring in
// shared memory brings them their rows.
#pragma once

#include "Kernels/norms/config.h"

namespace norms {

// Every block leaves a row of partial sums: no more of them than run at once.
void bound_partial_rows(Config& config, const Machine& machine);

// Replaces `config`, whose rows go straight to registers, where a ring is faster.
void stage(Config& config, const Matrix& shape, const Machine& machine, RowUse use);

}  // namespace norms

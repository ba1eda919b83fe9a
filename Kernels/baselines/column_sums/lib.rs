//! What Quack and Liger leave to torch: sums of partial weight gradients after their backward kernels, and
//! memory for side outputs of their kernels.

#[cxx::bridge(namespace = "column_sums::bridge")]
mod ffi {
    /// One row of `out` from the sum of all rows of fp32 `partials`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct PartialSum {
        partials: usize,
        out: usize,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum WeightDtype {
        F32,
        Bf16,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/column_sums/bridge.h");

        /// Device memory, freed on drop.
        type Workspace;

        fn allocate_workspace(bytes: usize) -> Result<UniquePtr<Workspace>>;

        fn address(self: &Workspace) -> usize;

        /// Sums of one or two matrices of the same shape, in one launch.
        fn sum_partials(
            sums: &[PartialSum],
            rows: usize,
            columns: usize,
            dtype: WeightDtype,
            stream: usize,
        ) -> Result<()>;
    }
}

pub use cxx::UniquePtr;
use ffi::PartialSum;
pub use ffi::{allocate_workspace, WeightDtype, Workspace};

/// Partial gradients of one or two weights, and where their sums go.
pub struct PartialSums {
    sums: Vec<PartialSum>,
    rows: usize,
    columns: usize,
    dtype: WeightDtype,
    _workspace: UniquePtr<Workspace>,
}

impl PartialSums {
    /// Allocates fp32 `[rows, columns]` for each of `outs`.
    pub fn new(
        rows: usize,
        columns: usize,
        dtype: WeightDtype,
        outs: &[usize],
    ) -> Result<Self, cxx::Exception> {
        let bytes = rows * columns * size_of::<f32>();
        let workspace = allocate_workspace(bytes * outs.len())?;
        let first = workspace.address();
        let sums = outs.iter().enumerate().map(|(index, &out)| PartialSum {
            partials: first + index * bytes,
            out,
        });
        Ok(Self {
            sums: sums.collect(),
            rows,
            columns,
            dtype,
            _workspace: workspace,
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Where a kernel leaves its partials, in the order of the outputs.
    pub fn partials(&self) -> impl Iterator<Item = usize> + '_ {
        self.sums.iter().map(|sum| sum.partials)
    }

    /// Adds them up, in one launch.
    pub fn enqueue(&self, stream: usize) -> Result<(), cxx::Exception> {
        ffi::sum_partials(&self.sums, self.rows, self.columns, self.dtype, stream)
    }
}

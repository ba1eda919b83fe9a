//! Page tables as FlashInfer's kernels for sm_100a take them.

use contender::ContenderError;
use workloads::PageTable;

use super::planned::narrow;

/// The table, checked; `lengths_address` is that of the lengths on the device.
pub fn pages(
    table: &PageTable,
    lengths_address: usize,
) -> Result<flashinfer::PageTable<'_>, ContenderError> {
    table.validate().map_err(ContenderError::new)?;
    Ok(flashinfer::PageTable {
        lengths_address,
        lengths: &table.lengths,
        indptr: &table.indptr,
        indices: &table.indices,
        page_size: narrow(table.page_size)?,
        pool_pages: narrow(table.pool_pages)?,
    })
}

//! Page tables as FlashInfer's sm_100a kernels take them.

use contender::{ContenderError, Tensors};
use workloads::PageTable;

use crate::narrow;

/// The table, checked, with the device's copy of the lengths.
pub fn pages<'a>(
    table: &'a PageTable,
    tensors: &Tensors,
) -> Result<flashinfer::PageTable<'a>, ContenderError> {
    table.validate().map_err(ContenderError::new)?;
    Ok(flashinfer::PageTable {
        lengths_address: tensors.address("kv_len")?,
        lengths: &table.lengths,
        indptr: &table.indptr,
        indices: &table.indices,
        page_size: narrow(table.page_size)?,
        pool_pages: narrow(table.pool_pages)?,
    })
}

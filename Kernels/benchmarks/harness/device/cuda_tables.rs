//! Tables of shaped contents in device memory.

use std::cell::RefCell;
use std::sync::Arc;

use tensor::Shaped;

use crate::{Device, DeviceError, Memory};

/// The tables of the last contents: an allocation per fill would disturb what is timed.
#[derive(Default)]
pub(crate) struct Tables(RefCell<Vec<(Arc<Shaped>, Memory)>>);

/// Addresses on the device; 0 where there is no table.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    pub ranges: usize,
    pub levels: usize,
    pub factors: usize,
}

/// As many as a problem has tensors in all kinds of inputs, and some more.
const TABLES_MAX: usize = 64;

impl Tables {
    /// Copies the tables to the device, unless they are there.
    pub(crate) fn of(
        &self,
        device: &dyn Device,
        shaped: &Arc<Shaped>,
    ) -> Result<Addresses, DeviceError> {
        let mut tables = self.0.borrow_mut();
        let known = tables
            .iter()
            .position(|(known, _)| Arc::ptr_eq(known, shaped));
        let place = match known {
            Some(place) => place,
            None => {
                if tables.len() == TABLES_MAX {
                    tables.remove(0);
                }
                tables.push((shaped.clone(), copy(device, shaped)?));
                tables.len() - 1
            }
        };
        let ranges = tables[place].1.address();
        let factors = ranges + size_of_val(shaped.ranges());
        let levels = factors + size_of_val(shaped.factors());
        let unless = |empty, address| if empty { 0 } else { address };
        Ok(Addresses {
            ranges,
            levels: unless(shaped.levels().is_empty(), levels),
            factors: unless(shaped.factors().is_empty(), factors),
        })
    }
}

/// Ranges, factors, levels: one after another, none of which needs more alignment than the next.
fn copy(device: &dyn Device, shaped: &Shaped) -> Result<Memory, DeviceError> {
    let ranges = shaped.ranges().iter().flat_map(|&(low, high)| [low, high]);
    let floats = ranges.chain(shaped.factors().iter().copied());
    let mut bytes: Vec<u8> = floats.flat_map(f32::to_le_bytes).collect();
    bytes.extend(shaped.levels());
    let memory = device.allocate(bytes.len())?;
    device.write(memory.address(), &bytes)?;
    Ok(memory)
}

//! What contenders of several families share and no library is needed for.

pub mod cpu;
pub mod memory;

//! Whether a contender works while nobody calls it.

use std::time::Duration;

use device::Device;

use crate::Failure;

/// In which the harness's own threads come to rest after their work.
const SETTLE: Duration = Duration::from_millis(5);
const WINDOW: Duration = Duration::from_millis(30);
/// Little, because on a loaded machine a thread that never rests gets little.
const SHARE: f64 = 0.03;

/// Fails if threads of this process work while nobody is called, and the device can tell.
pub fn check_rests(device: &dyn Device) -> Result<(), Failure> {
    let busy = |window| {
        let share = device.background_share(window);
        share.filter(|share| *share > SHARE)
    };
    busy(SETTLE);
    // Once may be chance.
    match busy(WINDOW).and_then(|_| busy(WINDOW).or_else(|| busy(WINDOW))) {
        Some(share) => Err(Failure::WorksUncalled { share }),
        None => Ok(()),
    }
}

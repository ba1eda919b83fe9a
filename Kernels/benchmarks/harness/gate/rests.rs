//! Whether a contender works while nobody calls it.

use std::time::Duration;

use device::Device;

use crate::Failure;

/// In which the harness's own threads come to rest after their work.
const SETTLE: Duration = Duration::from_millis(5);
const WINDOW: Duration = Duration::from_millis(30);
/// Little, because on a loaded machine a thread that never rests gets little.
const SHARE: f64 = 0.03;

/// Once may be chance, and on a loaded machine even the harness's threads come to rest late: of so
/// many more windows, all but one find work too.
const MORE: usize = 4;

/// Fails if threads of this process work while nobody is called, and the device can tell.
pub fn check_rests(device: &dyn Device) -> Result<(), Failure> {
    let busy = |window| {
        let share = device.background_share(window);
        share.filter(|share| *share > SHARE)
    };
    busy(SETTLE);
    let Some(share) = busy(WINDOW) else {
        return Ok(());
    };
    match (0..MORE).filter_map(|_| busy(WINDOW)).count() >= MORE - 1 {
        true => Err(Failure::WorksUncalled { share }),
        false => Ok(()),
    }
}

//! GPU readings from NVML. Read-only: no setting of the card is ever changed.

use std::ffi::OsStr;
use std::fmt::Display;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::Nvml;

use crate::DeviceState;

/// The driver's name for it; the unversioned name exists only on development machines.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// One GPU by its uuid. Without NVML every reading is `None` and a note says why.
pub(crate) struct Readings {
    nvml: Result<Nvml, String>,
    uuid: String,
}

impl Readings {
    pub(crate) fn new(uuid: &str) -> Self {
        let nvml = Nvml::builder()
            .lib_path(OsStr::new(LIBRARY))
            .init()
            .map_err(|error| {
                format!("NVML: {LIBRARY}: {error}; clocks, power and throttling are not recorded")
            });
        Self {
            nvml,
            uuid: uuid.to_string(),
        }
    }

    pub(crate) fn state(&self) -> DeviceState {
        let mut state = DeviceState::default();
        let nvml = match &self.nvml {
            Ok(nvml) => nvml,
            Err(reason) => {
                state.notes.push(reason.clone());
                return state;
            }
        };
        let mut notes = Vec::new();
        state.driver = known(&mut notes, "driver version", nvml.sys_driver_version());
        match nvml.device_by_uuid(self.uuid.as_str()) {
            Ok(device) => read(&device, &mut state, &mut notes),
            Err(error) => notes.push(format!("NVML: no device {}: {error}", self.uuid)),
        }
        state.notes = notes;
        state
    }

    pub(crate) fn energy_mj(&self) -> Option<u64> {
        let nvml = self.nvml.as_ref().ok()?;
        let device = nvml.device_by_uuid(self.uuid.as_str()).ok()?;
        device.total_energy_consumption().ok()
    }
}

fn read(device: &nvml_wrapper::Device, state: &mut DeviceState, notes: &mut Vec<String>) {
    let mut clock = |what, value| known(notes, what, value).map(f64::from);
    state.clock_mhz = clock("SM clock", device.clock_info(Clock::SM));
    state.clock_max_mhz = clock("maximum SM clock", device.max_clock_info(Clock::SM));
    state.memory_clock_mhz = clock("memory clock", device.clock_info(Clock::Memory));
    state.memory_clock_max_mhz =
        clock("maximum memory clock", device.max_clock_info(Clock::Memory));
    // Newer drivers have dropped application clocks: their absence is not worth a note.
    state.clock_application_mhz = device.applications_clock(Clock::SM).ok().map(f64::from);
    let milliwatts = |value: u32| f64::from(value) / 1e3;
    state.power_w = known(notes, "power", device.power_usage()).map(milliwatts);
    state.power_limit_w =
        known(notes, "power limit", device.enforced_power_limit()).map(milliwatts);
    state.temperature_c = known(
        notes,
        "temperature",
        device.temperature(TemperatureSensor::Gpu),
    )
    .map(f64::from);
    state.ecc = known(notes, "ECC", device.is_ecc_enabled()).map(|ecc| ecc.currently_enabled);
    if let Some(reasons) = known(notes, "throttle reasons", device.current_throttle_reasons()) {
        state.throttle_reasons = reason_names(reasons);
        state.clocks_locked = Some(reasons.contains(ThrottleReasons::APPLICATIONS_CLOCKS_SETTING));
    }
}

fn known<T>(notes: &mut Vec<String>, what: &str, value: Result<T, impl Display>) -> Option<T> {
    value
        .map_err(|error| notes.push(format!("NVML: {what}: {error}")))
        .ok()
}

/// `SW_POWER_CAP` as `sw_power_cap`.
fn reason_names(reasons: ThrottleReasons) -> Vec<String> {
    reasons
        .iter_names()
        .map(|(name, _)| name.to_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_named() {
        let reasons = ThrottleReasons::GPU_IDLE | ThrottleReasons::SW_POWER_CAP;
        assert_eq!(reason_names(reasons), ["gpu_idle", "sw_power_cap"]);
        assert!(reason_names(ThrottleReasons::empty()).is_empty());
    }

    #[test]
    fn an_unknown_device_or_library_is_said_and_not_fatal() {
        let state = Readings::new("GPU-none").state();
        assert!(!state.notes.is_empty());
        assert!(state.power_w.is_none());
    }
}

//! Cached roofs, for the same device under the same conditions.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use device::{DeviceInfo, DeviceState};
use record::Roof;
use serde::{Deserialize, Serialize};

use crate::{Peak, RooflineError};

/// The conditions of a roof: if any of them changes, it must be measured again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Uuid, or the name of a CPU.
    pub device: String,
    /// Of a GPU, or the cores that this process may use.
    pub multiprocessors: u32,
    /// Last-level cache.
    pub l2_bytes: u64,
    /// Driver version.
    pub driver: Option<String>,
    /// Maximum core clock.
    pub clock_max_mhz: Option<f64>,
    /// Core clock set for applications.
    pub clock_application_mhz: Option<f64>,
    /// Maximum memory clock.
    pub memory_clock_max_mhz: Option<f64>,
    /// Power limit in force.
    pub power_limit_w: Option<f64>,
}

impl Conditions {
    /// The current conditions of a device.
    pub fn new(info: &DeviceInfo, state: &DeviceState) -> Self {
        Self {
            device: device_name(info).to_string(),
            multiprocessors: info.multiprocessors,
            l2_bytes: info.l2_bytes,
            driver: state.driver.clone(),
            clock_max_mhz: state.clock_max_mhz,
            clock_application_mhz: state.clock_application_mhz,
            memory_clock_max_mhz: state.memory_clock_max_mhz,
            power_limit_w: state.power_limit_w,
        }
    }
}

/// One roof in the cache file: a roof as in result files, with its conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedRoof {
    /// The roof.
    #[serde(flatten)]
    pub roof: Roof,
    /// Launch shape that reached it.
    pub shape: String,
    /// Core clock during the measurement.
    pub clock_mhz: Option<f64>,
    /// Its conditions.
    pub conditions: Conditions,
}

fn device_name(info: &DeviceInfo) -> &str {
    info.uuid.as_deref().unwrap_or(&info.name)
}

/// Where the roofs of a device are cached: one file per device in the user's cache folder.
pub fn cache_path(info: &DeviceInfo) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("head-to-head").join(file_name(info)))
}

fn file_name(info: &DeviceInfo) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = device_name(info).chars().map(safe).collect();
    format!("roofs-{name}.json")
}

/// Replaces the roofs of a device atomically, so that a reader sees either the old or the new file.
pub fn store(
    info: &DeviceInfo,
    state: &DeviceState,
    peaks: &[Peak],
) -> Result<PathBuf, RooflineError> {
    let path = cache_path(info).ok_or(RooflineError::NoCacheFolder)?;
    let unwritable = |source| record::RecordError::Write {
        path: path.clone(),
        source,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(unwritable)?;
    }
    let text = to_json(info, state, peaks);
    record::write_atomic(&path, text.as_bytes())?;
    Ok(path)
}

/// The contents of the cache file.
pub fn to_json(info: &DeviceInfo, state: &DeviceState, peaks: &[Peak]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let measured_at = utc_text(now.unwrap_or_default().as_secs() as i64);
    let roofs: Vec<CachedRoof> = peaks
        .iter()
        .map(|peak| CachedRoof {
            roof: peak.to_roof(Some(measured_at.clone())),
            shape: peak.shape.clone(),
            clock_mhz: peak.clock_mhz,
            conditions: Conditions::new(info, state),
        })
        .collect();
    let text = serde_json::to_string_pretty(&roofs).expect("roofs are plain numbers and text");
    text + "\n"
}

/// The cached roofs for the device under its current conditions; empty if there are none.
pub fn load(info: &DeviceInfo, state: &DeviceState) -> Vec<Roof> {
    let text = cache_path(info).and_then(|path| std::fs::read_to_string(path).ok());
    text.map_or_else(Vec::new, |text| {
        from_json(&text, &Conditions::new(info, state))
    })
}

fn from_json(text: &str, conditions: &Conditions) -> Vec<Roof> {
    let cached: Vec<CachedRoof> = serde_json::from_str(text).unwrap_or_default();
    cached
        .into_iter()
        .filter(|cached| cached.conditions == *conditions)
        .map(|cached| cached.roof)
        .collect()
}

/// RFC 3339.
fn utc_text(unix_seconds: i64) -> String {
    // SAFETY: all zeros is a value of this plain C struct.
    let mut moment: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call.
    unsafe { libc::gmtime_r(&unix_seconds, &mut moment) };
    let (year, month, day) = (moment.tm_year + 1900, moment.tm_mon + 1, moment.tm_mday);
    let (hour, minute, second) = (moment.tm_hour, moment.tm_min, moment.tm_sec);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use device::{CpuDevice, Device};

    use super::*;

    fn peak() -> Peak {
        Peak {
            name: "dram_copy".into(),
            value: 0.02,
            unit: "TB/s",
            shape: "threads 2".into(),
            clock_mhz: None,
        }
    }

    #[test]
    fn roofs_come_back_under_the_same_conditions_only() {
        let device = CpuDevice::open();
        let state = DeviceState {
            driver: Some("580".into()),
            ..DeviceState::default()
        };
        let text = to_json(device.info(), &state, &[peak()]);
        let conditions = Conditions::new(device.info(), &state);
        let roofs = from_json(&text, &conditions);
        assert_eq!(
            (roofs[0].name.as_str(), roofs[0].value),
            ("dram_copy", 0.02)
        );
        let newer = Conditions {
            driver: Some("590".into()),
            ..conditions
        };
        assert!(from_json(&text, &newer).is_empty());
        let larger = DeviceInfo {
            multiprocessors: device.info().multiprocessors + 14,
            ..device.info().clone()
        };
        assert!(from_json(&text, &Conditions::new(&larger, &state)).is_empty());
        assert!(from_json("[{\"name\": ", &newer).is_empty());
    }

    /// Readers of plain roofs can read the same file.
    #[test]
    fn the_file_is_a_list_of_roofs() {
        let device = CpuDevice::open();
        let text = to_json(device.info(), &DeviceState::default(), &[peak()]);
        let roofs: Vec<Roof> = serde_json::from_str(&text).unwrap();
        assert_eq!(roofs[0].unit, "TB/s");
        assert!(roofs[0].measured_at.as_ref().unwrap().ends_with('Z'));
    }

    #[test]
    fn known_moments() {
        assert_eq!(utc_text(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc_text(951_782_400), "2000-02-29T00:00:00Z");
    }
}

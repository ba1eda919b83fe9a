//! CPU information from /proc and /sys.

use std::fs;
use std::time::Duration;

use contender::{DeviceInfo, DeviceKind};

use crate::DeviceState;

/// Assumed if /sys does not say: larger than most, so that a sweep errs on the long side.
const LAST_LEVEL_BYTES_UNKNOWN: u64 = 64 << 20;

/// The machine that this process runs on.
pub fn device_info() -> DeviceInfo {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    DeviceInfo {
        kind: DeviceKind::Cpu,
        name: field(&cpuinfo, "model name")
            .unwrap_or("unknown CPU")
            .to_string(),
        uuid: None,
        arch: std::env::consts::ARCH.to_string(),
        compute_capability: None,
        multiprocessors: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        l2_bytes: last_level_bytes().unwrap_or(LAST_LEVEL_BYTES_UNKNOWN),
        memory_bytes: kibibytes(&meminfo, "MemTotal").unwrap_or(0),
        shared_bytes_per_block: 0,
        emulated: false,
    }
}

pub(crate) fn state() -> DeviceState {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let clock = current_clock_mhz();
    let notes = match clock {
        Some(_) => Vec::new(),
        None => vec!["the CPU's clock cannot be read here (no cpufreq)".to_string()],
    };
    DeviceState {
        clock_mhz: clock.or_else(|| field(&cpuinfo, "cpu MHz")?.parse().ok()),
        clock_max_mhz: cpufreq_mhz("cpuinfo_max_freq"),
        notes,
        ..DeviceState::default()
    }
}

/// The first core's clock. `None` in most virtual machines, where /proc repeats a nominal value.
pub(crate) fn current_clock_mhz() -> Option<f64> {
    cpufreq_mhz("scaling_cur_freq")
}

/// Memory available without swapping.
pub(crate) fn available_bytes() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// CPU time of all threads of this process.
pub fn process_time() -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    (status == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

fn cpufreq_mhz(file: &str) -> Option<f64> {
    let path = format!("/sys/devices/system/cpu/cpu0/cpufreq/{file}");
    let kilohertz: f64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(kilohertz / 1e3)
}

fn last_level_bytes() -> Option<u64> {
    (0..8)
        .filter_map(|index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            cache_size(&fs::read_to_string(path).ok()?)
        })
        .max()
}

/// `32K`, `300M` or plain bytes.
fn cache_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = field(text, name)?.strip_suffix("kB")?.trim();
    Some(value.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_fields_are_read() {
        assert_eq!(cache_size("307200K\n"), Some(300 << 20));
        assert_eq!(cache_size("2M"), Some(2 << 20));
        assert_eq!(cache_size("nonsense"), None);
        let text = "MemTotal:       1024 kB\nmodel name\t: A CPU @ 1 GHz\n";
        assert_eq!(kibibytes(text, "MemTotal"), Some(1 << 20));
        assert_eq!(field(text, "model name"), Some("A CPU @ 1 GHz"));
        assert_eq!(field(text, "absent"), None);
    }

    #[test]
    fn this_machine_has_cores_and_a_cache() {
        let info = device_info();
        assert!(info.multiprocessors >= 1);
        assert!(info.l2_bytes >= 1 << 15, "cache of {} bytes", info.l2_bytes);
        assert_eq!(info.kind, DeviceKind::Cpu);
    }
}

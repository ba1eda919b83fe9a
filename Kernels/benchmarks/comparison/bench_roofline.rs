//! Measures the roofs of a device (memory bandwidth, arithmetic peaks), prints them and caches them
//! for the share-of-roof columns of the other benches.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use device::{Device, DeviceKind};
use roofline::{Measured, RooflineError};

/// Measures memory bandwidth and arithmetic peaks of a device
#[derive(Debug, Parser)]
#[command(name = "bench_roofline")]
struct Arguments {
    /// Device: cpu or cuda [default: what the program is built for]
    #[arg(long)]
    device: Option<DeviceKind>,
    /// Also write the roofs to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure and print, but do not replace the cached roofs
    #[arg(long)]
    no_store: bool,
    /// Print the cached roofs that are valid for the device as it is now; measure nothing
    #[arg(long, conflicts_with_all = ["json", "no_store"])]
    cached: bool,
}

impl Arguments {
    fn device(&self) -> DeviceKind {
        self.device
            .unwrap_or(DeviceKind::built_for(env!("HEAD_TO_HEAD_ARCH")))
    }
}

fn main() -> ExitCode {
    let failed = |error: &dyn std::fmt::Display| {
        workspace::tell!("error: {error}");
        ExitCode::FAILURE
    };
    if let Err(error) = workspace::enter_user_folder() {
        return failed(&error);
    }
    run(&Arguments::parse()).unwrap_or_else(|error| failed(&error))
}

fn run(arguments: &Arguments) -> Result<ExitCode, RooflineError> {
    let device = device::open(arguments.device())?;
    let info = device.info();
    workspace::say!("device: {} ({}, {})", info.name, info.kind, info.arch);
    if arguments.cached {
        return Ok(print_cached(device.as_ref()));
    }
    let before = device.state();
    for warning in before.warnings() {
        workspace::tell!("warning: {warning}");
    }
    let measured = roofline::measure(device.as_ref())?;
    print(&measured);
    if let Some(path) = &arguments.json {
        let text = roofline::to_json(info, &before, &measured.peaks);
        record::write_atomic(path, text.as_bytes())?;
    }
    if !arguments.no_store {
        let path = roofline::store(info, &before, &measured.peaks)?;
        workspace::tell!("cached in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn print_cached(device: &dyn Device) -> ExitCode {
    let roofs = roofline::load(device.info(), &device.state());
    if roofs.is_empty() {
        workspace::tell!("error: no valid cached roofs for this device; run bench_roofline");
        return ExitCode::FAILURE;
    }
    for roof in roofs {
        let since = roof.measured_at.unwrap_or_default();
        workspace::say!(
            "{:<16} {:>10.3} {:<8} {since}",
            roof.name,
            roof.value,
            roof.unit
        );
    }
    ExitCode::SUCCESS
}

fn print(measured: &Measured) {
    workspace::say!(
        "{:<16} {:>10} {:<8} {:>8}  shape",
        "roof",
        "value",
        "unit",
        "MHz"
    );
    for peak in &measured.peaks {
        let clock = peak
            .clock_mhz
            .map_or("-".into(), |clock| format!("{clock:.0}"));
        let value = record::significant(peak.value, 4);
        workspace::say!(
            "{:<16} {value:>10} {:<8} {clock:>8}  {}",
            peak.name,
            peak.unit,
            peak.shape
        );
    }
    for note in &measured.notes {
        workspace::say!("note: {note}");
    }
}

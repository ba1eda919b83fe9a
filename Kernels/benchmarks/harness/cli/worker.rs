//! The worker: opens the device and measures what it is told to until its standard input closes.

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::mpsc;

use device::Device;

use crate::options::Options;
use crate::protocol::{self, Event, Machine, Task};
use crate::selection::Selection;
use crate::voice::Voice;
use crate::workload::Workshop;
use crate::{roofs, UsageError};

/// Serves one supervisor.
pub fn serve(selection: &Selection, options: &Options) -> Result<ExitCode, UsageError> {
    let plan = options.plan_for(selection.choices.device, selection.arch)?;
    let Ok((mut voice, tasks)) = connect() else {
        return Err(UsageError::new(
            "--worker is internal: only the supervisor uses it",
        ));
    };
    let (device, machine) = match open(selection) {
        Ok(opened) => opened,
        Err(error) => {
            voice.say(&Event::Unusable(error.to_string()));
            return Ok(ExitCode::FAILURE);
        }
    };
    let roofs = roofs::load(options.how.roofs.as_deref(), &machine)?;
    let workshop = Workshop {
        device: &*device,
        plan,
        verify: !options.how.skip_verify,
        baseline: options.what.baseline.as_deref(),
        roofs: roofs::summary(&roofs),
        selection,
        planners: RefCell::default(),
        preset: options.how.protocol,
        processes: options.processes(),
    };
    voice.say(&Event::Ready(Box::new(machine)));
    for task in tasks {
        if workshop.measure(&task, &mut voice).is_err() {
            // The device is lost. Everything known has been reported; the supervisor starts over.
            return Ok(ExitCode::FAILURE);
        }
        voice.say(&Event::Done);
    }
    Ok(ExitCode::SUCCESS)
}

fn open(selection: &Selection) -> Result<(Box<dyn Device>, Machine), device::DeviceError> {
    let device = selection.open_device()?;
    device.has_process_alone();
    let machine = Machine {
        info: device.info().clone(),
        state: device.state(),
        timer_overhead_us: device.timer_overhead_us()?,
        cross_check_obstacle: device.trace_obstacle(),
        libraries: device.libraries(),
    };
    Ok((device, machine))
}

/// Tasks arrive on a separate thread, which ends the process when the supervisor exits, even while a
/// contender hangs.
fn connect() -> std::io::Result<(Voice, mpsc::Receiver<Task>)> {
    let socket = protocol::worker_socket()?;
    // Fails if standard input is not a socket, i.e. without a supervisor.
    socket.peer_addr()?;
    let voice = Voice::new(socket.try_clone()?);
    let (sender, tasks) = mpsc::channel();
    std::thread::spawn(move || {
        for task in protocol::receive(socket).map_while(Result::ok) {
            if sender.send(task).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    Ok((voice, tasks))
}

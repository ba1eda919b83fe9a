//! Contenders that do their work where it is not timed, and two that differ in what they leave in the
//! cache.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use contender::{Bound, Buffer, ContenderError, DeviceInfo, DeviceKind, Stream};

use crate::fault::GATE_CALLS;
use crate::work::Work;
use crate::{Fault, Scaled};

/// The work of such a fault, or none if it is another one.
pub(crate) fn bind(
    fault: Fault,
    problem: &Scaled,
    buffers: &[Buffer],
    device: &DeviceInfo,
) -> Option<Result<Box<dyn Bound>, ContenderError>> {
    let early = matches!(fault, Fault::EarlyLaunch | Fault::EarlyWhenTimed);
    let ours = is_cuda_only(fault) || early;
    ours.then(|| match device.kind {
        DeviceKind::Cpu => {
            let mut early = Early::new(problem, buffers);
            if fault == Fault::EarlyLaunch {
                early.start();
            }
            Ok(Box::new(early) as Box<dyn Bound>)
        }
        DeviceKind::Cuda | DeviceKind::Ptx => cuda(fault, problem, buffers),
    })
}

/// On the CPU everything within a call is timed, and no cache has policies.
pub(crate) fn is_cuda_only(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::SideStream | Fault::HostWork | Fault::PinsInputs | Fault::PinsNothing
    )
}

/// A thread that computes whenever the inputs change; a call copies what it finds.
struct Early {
    work: Work,
    last: Arc<Mutex<Arc<Answer>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    calls: usize,
}

#[derive(Default)]
struct Answer {
    inputs: Vec<f32>,
    outputs: Vec<f32>,
}

fn answer(work: Work) -> Answer {
    let inputs = work.inputs();
    let (x, w) = inputs.split_at(work.rows * work.columns);
    let outputs = x.iter().zip(w.iter().cycle()).map(|(x, w)| x * w).collect();
    Answer { inputs, outputs }
}

impl Early {
    fn new(problem: &Scaled, buffers: &[Buffer]) -> Self {
        Self {
            work: Work::new(problem, buffers),
            last: Arc::default(),
            ended: Arc::default(),
            thread: None,
            calls: 0,
        }
    }

    fn start(&mut self) {
        let (work, shared, end) = (self.work, self.last.clone(), self.ended.clone());
        self.thread = Some(thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let known = shared.lock().map(|last| last.clone());
                if known.is_ok_and(|known| known.inputs != work.inputs()) {
                    let answer = answer(work);
                    if let Ok(mut last) = shared.lock() {
                        *last = answer.into();
                    }
                }
            }
        }));
    }
}

impl Bound for Early {
    fn enqueue(&mut self, _: Stream) -> Result<(), ContenderError> {
        self.calls += 1;
        if self.calls > GATE_CALLS && self.thread.is_none() {
            self.start();
        }
        let last = self.last.lock().map_err(ContenderError::new)?.clone();
        let last = match last.inputs == self.work.inputs() {
            true => last,
            false => answer(self.work).into(),
        };
        self.work.output().copy_from_slice(&last.outputs);
        Ok(())
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // It only computes.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: Fault, _: &Scaled, _: &[Buffer]) -> Result<Box<dyn Bound>, ContenderError> {
    Err(ContenderError::new("built without CUDA"))
}

#[cfg(feature = "cuda")]
fn cuda(
    fault: Fault,
    problem: &Scaled,
    buffers: &[Buffer],
) -> Result<Box<dyn Bound>, ContenderError> {
    let work = crate::backend::cuda_work(problem, buffers);
    if fault == Fault::PinsInputs {
        faults_cuda::reserve_cache().map_err(ContenderError::new)?;
    }
    let scratch = faults_cuda::allocate(4 * work.rows * work.columns);
    Ok(Box::new(Cuda {
        fault,
        work,
        scratch: scratch.map_err(ContenderError::new)?,
    }))
}

#[cfg(feature = "cuda")]
struct Cuda {
    fault: Fault,
    work: faults_cuda::Work,
    /// As large as the output.
    scratch: usize,
}

#[cfg(feature = "cuda")]
impl Bound for Cuda {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        use faults_cuda::{aside, pinned, Mode};
        use std::time::{Duration, Instant};
        const HOST_WORK: Duration = Duration::from_millis(2);
        let (work, scratch) = (&self.work, self.scratch);
        let queued = match self.fault {
            Fault::SideStream => aside(work, scratch, false, stream),
            Fault::EarlyLaunch => aside(work, scratch, true, stream),
            Fault::PinsInputs => pinned(work, true, stream),
            Fault::PinsNothing => pinned(work, false, stream),
            _ => {
                let start = Instant::now();
                while start.elapsed() < HOST_WORK {
                    std::hint::spin_loop();
                }
                faults_cuda::launch(work, Mode::Honest, stream)
            }
        };
        queued.map_err(ContenderError::new)
    }
}

//! Where the work of the test contenders is done.

use std::cell::RefCell;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use contender::{Buffer, ContenderError, Stream};

use crate::{Fault, Scaled};

pub(crate) trait Backend {
    /// Computes the output, with the fault if it affects the computation.
    fn compute(&self, fault: Fault, stream: Stream) -> Result<(), ContenderError>;
    /// Keeps a copy of the output.
    fn remember(&mut self, stream: Stream) -> Result<(), ContenderError>;
    /// Writes the kept copy as output.
    fn replay(&self, stream: Stream) -> Result<(), ContenderError>;
    /// Keeps answers by inputs, and computes only what it has not kept, slowly.
    fn memoise(&mut self, fault: Fault, stream: Stream) -> Result<(), ContenderError>;
    /// Writes the answer of the call before.
    fn lag(&mut self, stream: Stream) -> Result<(), ContenderError>;
    fn allocate(&self, bytes: usize) -> Result<(), ContenderError>;
}

/// Passes over the data of those that are slow.
pub(crate) const SLOW_PASSES: usize = 200;

pub(crate) fn cpu(problem: &Scaled, buffers: &[Buffer]) -> Box<dyn Backend> {
    let address = |tensor: usize| buffers[tensor].address;
    Box::new(Cpu {
        rows: problem.rows,
        columns: problem.columns,
        tail: problem.tail,
        x: address(Scaled::X) as *mut f32,
        w: address(Scaled::W) as *const f32,
        y: address(Scaled::Y) as *mut f32,
        kept: Vec::new(),
        memory: Vec::new(),
        late: RefCell::default(),
    })
}

struct Cpu {
    rows: usize,
    columns: usize,
    tail: f32,
    x: *mut f32,
    w: *const f32,
    y: *mut f32,
    kept: Vec<f32>,
    /// Inputs and their answers.
    memory: Vec<(Vec<f32>, Vec<f32>)>,
    /// Threads that still write; joined before the buffers are freed.
    late: RefCell<Vec<JoinHandle<()>>>,
}

impl Drop for Cpu {
    fn drop(&mut self) {
        for thread in self.late.take() {
            // It only sleeps and writes.
            let _ = thread.join();
        }
    }
}

impl Cpu {
    fn elements(&self) -> usize {
        self.rows * self.columns
    }

    fn output(&self) -> &'static mut [f32] {
        // SAFETY: the harness gives addresses of live buffers of the problem's sizes and does not
        // touch them while a contender runs.
        unsafe { std::slice::from_raw_parts_mut(self.y, self.elements()) }
    }

    fn input(&self) -> &'static [f32] {
        // SAFETY: as in `output`.
        unsafe { std::slice::from_raw_parts(self.x, self.elements()) }
    }

    fn scale_slowly(&self, rows: usize) {
        for _ in 0..SLOW_PASSES {
            self.scale(rows);
            std::hint::black_box(self.output());
        }
    }

    fn scale(&self, rows: usize) {
        let x = self.input();
        // SAFETY: as in `output`.
        let w = unsafe { std::slice::from_raw_parts(self.w, self.columns) };
        let y = self.output().chunks_exact_mut(self.columns);
        let rows = y.zip(x.chunks_exact(self.columns)).take(rows);
        for (row, (y, x)) in rows.enumerate() {
            let factor = if row == 0 { 1.0 } else { self.tail };
            for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
                *y = factor * (x * w);
            }
        }
    }
}

impl Backend for Cpu {
    fn compute(&self, fault: Fault, _stream: Stream) -> Result<(), ContenderError> {
        let last = self.elements() - 1;
        match fault {
            Fault::OtherStream => {
                let (y, value) = (self.y as usize + 4 * last, self.output()[last]);
                self.scale(self.rows);
                let right = std::mem::replace(&mut self.output()[last], value);
                // Write something soon, so that a watcher sees a change, and the result much later than
                // any check, however busy the machine.
                let writes = [(10, f32::NAN), (250, right)];
                self.late.borrow_mut().push(thread::spawn(move || {
                    for (wait_ms, value) in writes {
                        thread::sleep(Duration::from_millis(wait_ms));
                        // SAFETY: the backend, and so its buffers, wait for this thread.
                        unsafe { (y as *mut f32).write_volatile(value) };
                    }
                }));
                return Ok(());
            }
            Fault::InfiniteLoop => loop {
                thread::sleep(Duration::from_millis(1));
            },
            Fault::UnwrittenTail => {
                self.scale(self.rows - 1);
                return Ok(());
            }
            Fault::HalfWhenTimed => {
                self.scale(self.rows / 2);
                return Ok(());
            }
            Fault::SensesNan if !self.output()[last].is_nan() => return Ok(()),
            Fault::SensesGarbage if self.output()[last].is_nan() => return Ok(()),
            Fault::Slow => self.scale_slowly(self.rows),
            _ => self.scale(self.rows),
        }
        match fault {
            Fault::OnePercentMore => self.scale(self.rows.div_ceil(100)),
            Fault::WrongResult => self.output()[last] += 0.01,
            Fault::NotANumber => self.output()[last] = f32::NAN,
            Fault::RightEnds => {
                let ends = self.columns..self.elements() - self.columns;
                self.output()[ends].fill(0.0);
            }
            Fault::LowPrecisionTail => {
                let tail = self.rows / 2 * self.columns;
                for value in &mut self.output()[tail..] {
                    *value = f32::from_bits(value.to_bits() & 0xFFFF_0000);
                }
            }
            // SAFETY: one element after the output lies in its guard; this is the fault under test.
            Fault::OutOfBounds => unsafe { self.y.add(last + 1).write_volatile(0.0) },
            // SAFETY: `x` has elements; this is the fault under test.
            Fault::InputMutation => unsafe { self.x.write_volatile(*self.x + 1.0) },
            // SAFETY: none: the crash is the fault under test. The page at 8 is never mapped.
            Fault::IllegalAddress => unsafe { (8 as *mut f32).write_volatile(0.0) },
            _ => {}
        }
        Ok(())
    }

    fn remember(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        self.kept = self.output().to_vec();
        Ok(())
    }

    fn replay(&self, _stream: Stream) -> Result<(), ContenderError> {
        self.output().copy_from_slice(&self.kept);
        Ok(())
    }

    fn memoise(&mut self, fault: Fault, _stream: Stream) -> Result<(), ContenderError> {
        let (x, y) = (self.input(), self.output());
        let known = self.memory.iter().find(|(inputs, _)| inputs == x);
        match (known, fault) {
            (Some((_, answer)), Fault::MemoisesHalf) => {
                let half = self.rows / 2;
                self.scale_slowly(half);
                let half = half * self.columns;
                y[half..].copy_from_slice(&answer[half..]);
            }
            (Some((_, answer)), _) => y.copy_from_slice(answer),
            (None, _) => {
                self.scale_slowly(self.rows);
                if fault == Fault::SkipsRepeats {
                    self.memory.clear();
                }
                self.memory.push((x.to_vec(), y.to_vec()));
            }
        }
        Ok(())
    }

    fn lag(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        self.scale(self.rows);
        let answer = self.output().to_vec();
        if !self.kept.is_empty() {
            self.output().copy_from_slice(&self.kept);
        }
        self.kept = answer;
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> Result<(), ContenderError> {
        let mut memory: Vec<u8> = Vec::new();
        memory
            .try_reserve_exact(bytes)
            .map_err(|error| ContenderError::new(format!("workspace of {bytes} bytes: {error}")))?;
        // The OS may overcommit; a contender that checks would see this.
        Err(ContenderError::new(format!(
            "workspace of {bytes} bytes: more than the machine has"
        )))
    }
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda(_: &Scaled, _: &[Buffer]) -> Result<Box<dyn Backend>, ContenderError> {
    Err(ContenderError::new("built without CUDA"))
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda_work(problem: &Scaled, buffers: &[Buffer]) -> faults_cuda::Work {
    let address = |tensor: usize| buffers[tensor].address;
    faults_cuda::Work {
        x: address(Scaled::X),
        w: address(Scaled::W),
        y: address(Scaled::Y),
        rows: problem.rows,
        columns: problem.columns,
    }
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda(
    problem: &Scaled,
    buffers: &[Buffer],
) -> Result<Box<dyn Backend>, ContenderError> {
    let work = cuda_work(problem, buffers);
    let bytes = 4 * work.rows * work.columns;
    let allocate = || faults_cuda::allocate(bytes).map_err(ContenderError::new);
    Ok(Box::new(Cuda {
        kept: allocate()?,
        spare: allocate()?,
        bytes,
        work,
    }))
}

#[cfg(feature = "cuda")]
struct Cuda {
    work: faults_cuda::Work,
    /// Each as large as the output.
    kept: usize,
    spare: usize,
    bytes: usize,
}

#[cfg(feature = "cuda")]
impl Cuda {
    fn copy(&self, to: usize, from: usize, stream: Stream) -> Result<(), ContenderError> {
        faults_cuda::copy(to, from, self.bytes, stream.0).map_err(ContenderError::new)
    }
}

#[cfg(feature = "cuda")]
impl Backend for Cuda {
    fn compute(&self, fault: Fault, stream: Stream) -> Result<(), ContenderError> {
        use faults_cuda::Mode;
        let mode = match fault {
            Fault::WrongResult => Mode::WrongResult,
            Fault::NotANumber => Mode::NotANumber,
            Fault::UnwrittenTail => Mode::UnwrittenTail,
            Fault::OutOfBounds => Mode::OutOfBounds,
            Fault::InputMutation => Mode::InputMutation,
            Fault::OtherStream => Mode::OtherStream,
            Fault::IllegalAddress => Mode::IllegalAddress,
            Fault::InfiniteLoop => Mode::InfiniteLoop,
            Fault::OnePercentMore => Mode::OnePercentMore,
            Fault::Slow => Mode::Slow,
            Fault::SensesNan => Mode::SensesNan,
            Fault::SensesGarbage => Mode::SensesGarbage,
            Fault::RightEnds => Mode::RightEnds,
            Fault::LowPrecisionTail => Mode::LowPrecisionTail,
            Fault::HalfWhenTimed => Mode::FirstHalf,
            _ => Mode::Honest,
        };
        faults_cuda::launch(&self.work, mode, stream.0).map_err(ContenderError::new)
    }

    fn remember(&mut self, stream: Stream) -> Result<(), ContenderError> {
        self.copy(self.kept, self.work.y, stream)
    }

    fn replay(&self, stream: Stream) -> Result<(), ContenderError> {
        self.copy(self.work.y, self.kept, stream)
    }

    fn memoise(&mut self, fault: Fault, stream: Stream) -> Result<(), ContenderError> {
        let half = fault == Fault::MemoisesHalf;
        faults_cuda::memoise(&self.work, self.spare, self.kept, half, stream.0)
            .map_err(ContenderError::new)
    }

    fn lag(&mut self, stream: Stream) -> Result<(), ContenderError> {
        self.compute(Fault::None, stream)?;
        self.copy(self.spare, self.work.y, stream)?;
        self.copy(self.work.y, self.kept, stream)?;
        self.copy(self.kept, self.spare, stream)
    }

    fn allocate(&self, bytes: usize) -> Result<(), ContenderError> {
        faults_cuda::allocate(bytes)
            .map(|_| ())
            .map_err(ContenderError::new)
    }
}

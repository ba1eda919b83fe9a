//! Contenders that are right whenever somebody looks, as far as they can tell, each by another sign; on the CPU.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use contender::{Bound, Buffer, ContenderError, DeviceInfo, DeviceKind, Stream};

use crate::backend::SLOW_PASSES;
use crate::fault::GATE_CALLS;
use crate::work::Work;
use crate::{Fault, Scaled};

/// What a contender knows, over all sets of buffers.
#[derive(Default)]
pub(crate) struct Notes {
    calls: usize,
    /// Inputs and their answers.
    kept: Vec<(Vec<f32>, Vec<f32>)>,
    /// Whether the inputs of each of the last calls were new.
    unseen: VecDeque<bool>,
    /// When the last call ended, and how long it was until each of the last ones began.
    ended: Option<Instant>,
    pauses: VecDeque<Duration>,
    sets: Vec<Work>,
    /// The last calls, during all of which others worked.
    disturbed: usize,
}

/// Threads that wait actively.
static SPINNING: AtomicUsize = AtomicUsize::new(0);

/// Has a thread per core do nothing, for longer than others take.
fn spin_on() {
    const LENGTH: Duration = Duration::from_millis(3);
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        SPINNING.fetch_add(1, Ordering::Release);
        thread::spawn(|| {
            let start = Instant::now();
            while start.elapsed() < LENGTH {
                std::hint::spin_loop();
            }
            SPINNING.fetch_sub(1, Ordering::Release);
        });
    }
}

/// Reading a line from memory takes longer, from a cache less.
const COLD_CYCLES: u64 = 220;

/// Calls that tell a race, in which few inputs are new, from a judge.
const CALLS_REMEMBERED: usize = 8;

/// Pauses that tell how long one is if nobody is checked meanwhile.
const PAUSES_REMEMBERED: usize = 32;

pub(crate) fn is_sly(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::MemoisesUntilJudged
            | Fault::IdleWhenJudged
            | Fault::MemoisesAtTimes
            | Fault::CopiesOthers
            | Fault::FinishesLate
            | Fault::SensesFlush
            | Fault::SensesPauses
            | Fault::SlacksElsewhere
            | Fault::SpinsOn
            | Fault::NeedsRest
            | Fault::IdleIfDone
    )
}

/// The work of such a fault, or none if it is another one.
pub(crate) fn bind(
    fault: Fault,
    problem: &Scaled,
    buffers: &[Buffer],
    device: &DeviceInfo,
    notes: &Rc<RefCell<Notes>>,
) -> Option<Result<Box<dyn Bound>, ContenderError>> {
    is_sly(fault).then(|| {
        if device.kind != DeviceKind::Cpu {
            return Err(ContenderError::new("runs on the CPU only"));
        }
        let work = Work::new(problem, buffers);
        let sets = &mut notes.borrow_mut().sets;
        sets.push(work);
        Ok(Box::new(Sly {
            fault,
            is_first: sets.len() == 1,
            work,
            notes: notes.clone(),
            late: (fault == Fault::FinishesLate).then(|| Late::new(work)),
        }) as Box<dyn Bound>)
    })
}

struct Sly {
    fault: Fault,
    /// Of the sets of buffers.
    is_first: bool,
    work: Work,
    notes: Rc<RefCell<Notes>>,
    late: Option<Late>,
}

impl Bound for Sly {
    fn enqueue(&mut self, _: Stream) -> Result<(), ContenderError> {
        let notes = &mut *self.notes.borrow_mut();
        let paused = notes.has_paused();
        let done = self.answer(notes, paused);
        notes.ended = Some(Instant::now());
        done
    }
}

impl Sly {
    fn answer(&self, notes: &mut Notes, paused: bool) -> Result<(), ContenderError> {
        let work = self.work;
        notes.calls += 1;
        let timed = notes.calls > GATE_CALLS;
        if let Some(late) = self.late.as_ref().filter(|_| timed) {
            late.answer();
            return Ok(());
        }
        match self.fault {
            Fault::SlacksElsewhere => {
                work.compute_rows(0..work.rows);
                if !self.is_first {
                    let row = work.rows / 3 * work.columns;
                    work.output()[row..row + work.columns].fill(0.0);
                }
                return Ok(());
            }
            Fault::SpinsOn => {
                work.compute_rows(0..work.rows);
                if timed {
                    spin_on();
                }
                return Ok(());
            }
            Fault::NeedsRest => {
                work.compute_rows(0..work.rows);
                return notes.complain();
            }
            _ => {}
        }
        if self.fault == Fault::SensesFlush && timed && notes.finds_warm_lines(work) {
            return Ok(());
        }
        let inputs = work.inputs();
        let known = notes.kept.iter().find(|(kept, _)| *kept == inputs);
        let known = known.map(|(_, answer)| answer.clone());
        notes.unseen.push_front(known.is_none());
        notes.unseen.truncate(CALLS_REMEMBERED);
        let judged = timed && notes.unseen.iter().filter(|unseen| **unseen).count() > 1;
        let answer = match (self.fault, known) {
            (Fault::IdleIfDone, Some(answer)) if work.output() == answer => return Ok(()),
            (Fault::SensesPauses, Some(_)) if timed && !paused => {
                let part = work.rows * 7 / 10;
                (0..SLOW_PASSES).for_each(|_| work.compute_rows(0..part));
                work.output()[part * work.columns..].fill(0.0);
                return Ok(());
            }
            (Fault::IdleIfDone | Fault::SensesFlush | Fault::SensesPauses, _) => None,
            (Fault::IdleWhenJudged, None) if judged && notes.unseen[1] => return Ok(()),
            (Fault::MemoisesUntilJudged, _) if judged => None,
            (Fault::MemoisesAtTimes, _) if !notes.calls.is_multiple_of(2) => None,
            (Fault::CopiesOthers, None) => notes.answer_of_others(work, &inputs),
            (_, known) => known,
        };
        match answer {
            Some(answer) => work.output().copy_from_slice(&answer),
            None => work.compute_slowly(self.passes(notes.calls)),
        }
        if notes.unseen[0] {
            notes.kept.push((inputs, work.output().to_vec()));
        }
        Ok(())
    }

    /// Over the data.
    fn passes(&self, call: usize) -> usize {
        match self.fault {
            Fault::IdleIfDone => 10 * SLOW_PASSES,
            // So that repeated answers stand out less.
            Fault::MemoisesAtTimes => SLOW_PASSES * (4 + call % 5) / 4,
            _ => SLOW_PASSES,
        }
    }
}

impl Notes {
    /// Whether it was not called for longer than usual: others may have been checked meanwhile.
    fn has_paused(&mut self) -> bool {
        let Some(ended) = self.ended else {
            return true;
        };
        self.pauses.push_front(ended.elapsed());
        self.pauses.truncate(PAUSES_REMEMBERED);
        let mut ascending = Vec::from_iter(self.pauses.iter().copied());
        ascending.sort_unstable();
        self.pauses[0] > 2 * ascending[ascending.len() / 4]
    }

    /// Fails once others have worked during many calls in a row.
    fn complain(&mut self) -> Result<(), ContenderError> {
        const MOST: usize = 24;
        self.disturbed = match SPINNING.load(Ordering::Acquire) {
            0 => 0,
            _ => self.disturbed + 1,
        };
        match self.disturbed > MOST {
            true => Err(ContenderError::new("others work while it does")),
            false => Ok(()),
        }
    }

    /// What somebody has left in another set, to the same inputs.
    fn answer_of_others(&self, own: Work, inputs: &[f32]) -> Option<Vec<f32>> {
        let mut others = self.sets.iter().filter(|set| set.y != own.y);
        let found = others.find(|set| set.is_about(inputs) && set.seems_answered())?;
        Some(found.output().to_vec())
    }

    /// Whether some set is still in the cache, so that nobody has flushed it before this call.
    fn finds_warm_lines(&self, own: Work) -> bool {
        let others = self.sets.iter().filter(|set| set.y != own.y);
        let least = others.map(|set| {
            let end = set.y + 4 * set.rows * set.columns;
            let places = (1..9).map(|place| end - place * 1088);
            places.map(cycles_to_read).min().unwrap_or(u64::MAX)
        });
        let least = least.min().unwrap_or(u64::MAX);
        least < COLD_CYCLES
    }
}

#[cfg(target_arch = "x86_64")]
fn cycles_to_read(address: usize) -> u64 {
    use std::arch::x86_64::{__rdtscp, _mm_lfence};
    let mut core = 0;
    // SAFETY: inside of a live tensor.
    unsafe {
        _mm_lfence();
        let start = __rdtscp(&mut core);
        _mm_lfence();
        std::hint::black_box((address as *const f32).read_volatile());
        _mm_lfence();
        __rdtscp(&mut core) - start
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles_to_read(_: usize) -> u64 {
    u64::MAX
}

const IDLE: usize = 0;
const CALLED: usize = 1;
const RETURNED: usize = 2;
const ENDED: usize = 3;

/// A thread that does the second half of the work once the call has returned.
struct Late {
    work: Work,
    state: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Late {
    fn new(work: Work) -> Self {
        let state = Arc::new(AtomicUsize::new(IDLE));
        let seen = state.clone();
        let thread = thread::spawn(move || loop {
            match seen.load(Ordering::Acquire) {
                IDLE => thread::park(),
                CALLED => std::hint::spin_loop(),
                RETURNED => {
                    work.compute_rows(work.rows / 2..work.rows);
                    seen.store(IDLE, Ordering::Release);
                }
                _ => break,
            }
        });
        Self {
            work,
            state,
            thread: Some(thread),
        }
    }

    fn answer(&self) {
        self.state.store(CALLED, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
        for _ in 0..SLOW_PASSES {
            self.work.compute_rows(0..self.work.rows / 2);
        }
        self.state.store(RETURNED, Ordering::Release);
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.state.store(ENDED, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return;
        };
        thread.thread().unpark();
        // It only computes.
        let _ = thread.join();
    }
}

//! Contenders of the benches through the benches' own gate: schedule by schedule, and with faults planted in their PTX.

use std::cell::RefCell;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::gate::{BufferSet, Failure, Gate, GateOptions, Poison};
use contender::{Bound, Contender, ContenderError, Contenders, Problem, Stream, Support};
use device::{Device, PtxDevice};
use machine::{Schedule, TensorLoads, Watch, SCHEDULES};
use runtime::{Fault, Settings};

use crate::{account, assert_mutants, complaint, ways, Rules, Survivor};

const SEED: u64 = 20;
/// Races are not watched: by the letter of PTX some of others' kernels have them.
const RULES: Rules = Rules {
    races: Watch::Off,
    tensor_loads: TensorLoads::AtFirstUse,
};

/// What became of each contender on each problem, as lines of a table.
pub struct Table {
    _turn: MutexGuard<'static, ()>,
    device: PtxDevice,
    text: String,
}

impl Default for Table {
    fn default() -> Self {
        // Settings are the process's: tests take turns.
        static TURN: Mutex<()> = Mutex::new(());
        Self {
            _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner),
            // Where all kernels are loaded at run time, only the build knows the SM.
            device: PtxDevice::open_for(env!("HEAD_TO_HEAD_ARCH"))
                .unwrap_or_else(|error| panic!("{error}")),
            text: String::new(),
        }
    }
}

fn gate_of<P: Problem>(problem: &P) -> Gate<'_> {
    let options = GateOptions {
        units: 24,
        units_second: 8,
        ..GateOptions::new(SEED)
    };
    Gate::new(problem, options).unwrap_or_else(|failure| panic!("{failure}"))
}

impl Table {
    /// Puts a contender through the whole gate, then through its usual inputs under each schedule.
    ///
    /// # Panics
    /// If it is wrong, fails, or does not support the problem.
    pub fn assert_right<P: Problem>(
        &mut self,
        contenders: &Contenders<P>,
        name: &str,
        problem: &P,
    ) {
        let contender = self.find_supported(contenders, name, problem);
        let gate = gate_of(problem);
        self.device.keep_to(None);
        let mut lines = Vec::new();
        {
            let (set, mut bound) = self.bind(contender, problem);
            let whole = gate.examine(&set, &mut bound);
            lines.push(("all in turn".to_owned(), verdict(whole, &mut bound)));
            for schedule in SCHEDULES {
                self.device.keep_to(Some(schedule));
                let values = gate.examine_reference(&set, &mut bound);
                lines.push((format!("{schedule:?}"), verdict(values, &mut bound)));
            }
        }
        let title = self.write_lines(name, problem, &lines);
        for (schedule, verdict) in lines {
            assert!(verdict.is_ok(), "{title}, {schedule}: {verdict:?}");
        }
    }

    fn find_supported<'c, P: Problem>(
        &self,
        contenders: &'c Contenders<P>,
        name: &str,
        problem: &P,
    ) -> &'c dyn Contender<P> {
        let contender = find(contenders, name);
        if let Support::No(reason) = contender.supports(problem, self.device.info()) {
            panic!("{name} does not support it: {reason}");
        }
        contender
    }

    /// Adds a line for each schedule, and accounts for what ran; who did what, for messages.
    fn write_lines<P: Problem>(
        &mut self,
        name: &str,
        problem: &P,
        lines: &[(String, Result<String, String>)],
    ) -> String {
        account::add_of_others(&runtime::take_reports());
        let workload = &problem.workload().name;
        let title = format!("{name}, {} {} {workload}", problem.op(), problem.dtype());
        for (schedule, verdict) in lines {
            let (arch, verdict) = (&self.device.info().arch, verdict.as_ref());
            let words = verdict.map_or_else(String::clone, String::clone);
            let line = format!("{title:<56}  {arch:<7}  {schedule:<23}  {words}");
            println!("{line}");
            writeln!(self.text, "{line}").unwrap_or_else(|error| panic!("{error}"));
        }
        self.write();
        title
    }

    /// Plants faults in the kernels of a contender that is right without them.
    pub fn assert_mutants<P: Problem>(
        &self,
        contenders: &Contenders<P>,
        name: &str,
        problem: &P,
        counts: (usize, usize),
        survivors: &[Survivor],
    ) {
        let case = self.case(contenders, name, problem);
        assert_mutants(name, counts, RULES, survivors, case);
    }

    /// A contender whose kernel has a fault: some schedule finds it out, and none does where `repair`, a text of its
    /// PTX and the one to put in its place, is made.
    pub fn assert_right_once_repaired<P: Problem>(
        &self,
        contenders: &Contenders<P>,
        name: &str,
        problem: &P,
        repair: (&'static str, &'static str),
    ) {
        let case = self.case(contenders, name, problem);
        let complaints = |fault: Option<Fault>| -> Vec<String> {
            let fault = |way| Settings {
                fault: fault.clone(),
                ..way
            };
            let each = ways(RULES).filter_map(|way| complaint(fault(way), &case));
            each.collect()
        };
        assert!(!complaints(None).is_empty(), "{name} is right as it is");
        let repair = Fault::Everywhere(repair.0, repair.1);
        assert_eq!(complaints(Some(repair)), [""; 0], "{name}");
    }

    /// A contender whose blocks write over each other's outputs, and rely on an order that nothing grants: it is right
    /// on its usual inputs under each schedule where blocks run one after the other.
    pub fn assert_right_block_by_block<P: Problem>(
        &self,
        contenders: &Contenders<P>,
        name: &str,
        problem: &P,
    ) {
        let case = self.case(contenders, name, problem);
        for way in ways(RULES) {
            let schedule = way.schedule;
            assert_eq!(complaint(way, &case), None, "{name}, {schedule:?}");
        }
    }

    /// A contender with accesses that nothing orders: the race detector names some, and none where `repair` is made.
    /// Under one schedule, on which that does not depend.
    pub fn assert_ordered_once_repaired<P: Problem>(
        &self,
        contenders: &Contenders<P>,
        name: &str,
        problem: &P,
        repair: (&'static str, &'static str),
    ) {
        let case = self.case(contenders, name, problem);
        let complaint = |fault| {
            let way = Settings {
                races: Watch::All,
                tensor_loads: RULES.tensor_loads,
                fault,
                ..Settings::under(Schedule::Late { seed: 1 })
            };
            complaint(way, &case)
        };
        let found = complaint(None).unwrap_or_default();
        assert!(found.contains("race: "), "{name} as it is: {found}");
        let repair = Fault::Everywhere(repair.0, repair.1);
        assert_eq!(complaint(Some(repair)), None, "{name}");
    }

    /// One execution on the usual inputs, which panics where the gate refuses it.
    fn case<'c, P: Problem>(
        &'c self,
        contenders: &Contenders<P>,
        name: &str,
        problem: &'c P,
    ) -> impl Fn() + 'c {
        let gate = gate_of(problem);
        self.device.keep_to(Some(SCHEDULES[0]));
        let both = RefCell::new(self.bind(find(contenders, name), problem));
        move || {
            let (set, bound) = &mut *both.borrow_mut();
            let poisoned = set.poison(Poison::NotANumber);
            poisoned.unwrap_or_else(|error| panic!("{error}"));
            let enqueued = bound.enqueue(self.device.stream());
            enqueued.unwrap_or_else(|error| panic!("{error}"));
            let checked = gate.check(set);
            checked.unwrap_or_else(|failure| panic!("{failure}"));
        }
    }

    fn bind<'b, P: Problem>(
        &'b self,
        contender: &dyn Contender<P>,
        problem: &'b P,
    ) -> (BufferSet<'b>, Timed) {
        let set = BufferSet::new(&self.device, problem.tensors(), SEED);
        let set = set.unwrap_or_else(|error| panic!("{error}"));
        let bound = contender.bind(problem, set.buffers(), self.device.info());
        let bound = Timed {
            bound: bound.unwrap_or_else(|error| panic!("{error}")),
            spent: Vec::new(),
        };
        (set, bound)
    }

    fn write(&self) {
        if let Some(folder) = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR") {
            let path = PathBuf::from(folder).join("kernels.txt");
            std::fs::write(&path, &self.text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

fn find<'c, P: Problem>(contenders: &'c Contenders<P>, name: &str) -> &'c dyn Contender<P> {
    let found = contenders
        .iter()
        .find(|contender| contender.identity().name == name);
    &**found.unwrap_or_else(|| panic!("no contender {name}"))
}

/// Work that keeps account of the processor time of each execution.
struct Timed {
    bound: Box<dyn Bound>,
    spent: Vec<Duration>,
}

impl Bound for Timed {
    fn enqueue(&mut self, stream: Stream) -> Result<(), ContenderError> {
        let start = device::process_time();
        let result = self.bound.enqueue(stream);
        self.spent.extend(
            device::process_time()
                .zip(start)
                .map(|(end, start)| end - start),
        );
        result
    }

    fn reread(&mut self) -> Result<(), ContenderError> {
        self.bound.reread()
    }
}

fn verdict<T>(examined: Result<T, Failure>, bound: &mut Timed) -> Result<String, String> {
    let spent = std::mem::take(&mut bound.spent);
    let mean = spent.iter().sum::<Duration>().as_secs_f64() / spent.len().max(1) as f64;
    examined
        .map(|_| format!("right, {mean:.2} s of a core"))
        .map_err(|failure| failure.to_string())
}

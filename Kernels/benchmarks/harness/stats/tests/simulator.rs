//! How often the verdicts are right on badly behaved machines: a simulated GPU with drift,
//! throttling, two-speed contenders, heavy tails, autocorrelation and a coarse timer.
//!
//! Every run does what a real one does: scheduled rounds, clock filter, stopping rule, paired
//! ratio. With `--nocapture` in an optimised build the tests print the rates quoted in
//! docs/BENCHMARKING.md.

use stats::{
    paired_ratio_of_processes, ClockFilter, Decision, PairedRatio, RatioOptions, Rounds, Schedule,
    Stopping, StoppingRule, Verdict,
};
use std::time::Duration;

/// Seeded noise; the crate's own generator is private, and a test should not share its bugs.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        // xorshift64*: a different family from the generator under test.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn gauss(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// What is wrong with the machine. All values are relative to the sample's time.
#[derive(Clone, Copy, Default)]
struct Machine {
    name: &'static str,
    time_us: f64,
    /// Independent Gaussian noise of each sample.
    sigma: f64,
    /// Slow-down from the first to the last of 1000 rounds, and a random walk on top.
    drift: f64,
    walk: f64,
    /// Slow-down of each later position within a round.
    position: f64,
    /// Chance per sample that the card changes between full speed and this slow-down.
    throttle_chance: f64,
    throttle: f64,
    /// Chance per sample, independent for each contender, of the slow mode, and its slow-down.
    slow_mode_chance: f64,
    slow_mode: f64,
    /// Chance per sample of an interruption that multiplies the time by up to ten.
    interruption_chance: f64,
    /// Autocorrelated noise of each contender on its own: coefficient and standard deviation.
    memory: f64,
    memory_sigma: f64,
    /// Step of the timer.
    tick_us: f64,
    /// Standard deviation of what a process does to each contender for as long as it lives.
    process_sigma: f64,
}

const MACHINES: [Machine; 11] = [
    Machine {
        name: "quiet",
        sigma: 0.003,
        ..CALM
    },
    Machine {
        name: "noisy",
        sigma: 0.015,
        ..CALM
    },
    Machine {
        name: "drift",
        drift: 0.2,
        walk: 0.002,
        position: 0.004,
        ..CALM
    },
    Machine {
        name: "throttling",
        throttle_chance: 0.01,
        throttle: 0.2,
        ..CALM
    },
    Machine {
        name: "deep throttling",
        throttle_chance: 0.02,
        throttle: 0.6,
        ..CALM
    },
    Machine {
        name: "bimodal",
        slow_mode_chance: 0.4,
        slow_mode: 0.06,
        ..CALM
    },
    Machine {
        name: "heavy tails",
        interruption_chance: 0.05,
        ..CALM
    },
    Machine {
        name: "autocorrelated",
        memory: 0.9,
        memory_sigma: 0.004,
        ..CALM
    },
    Machine {
        name: "coarse timer",
        time_us: 5.0,
        tick_us: 0.5,
        ..CALM
    },
    Machine {
        name: "long kernel",
        time_us: 5000.0,
        sigma: 0.003,
        drift: 1.0,
        ..CALM
    },
    Machine {
        name: "all at once",
        drift: 0.1,
        walk: 0.001,
        position: 0.002,
        throttle_chance: 0.01,
        throttle: 0.2,
        slow_mode_chance: 0.2,
        slow_mode: 0.04,
        interruption_chance: 0.02,
        memory: 0.8,
        memory_sigma: 0.002,
        tick_us: 0.032,
        ..CALM
    },
];

const CALM: Machine = Machine {
    name: "",
    time_us: 40.0,
    sigma: 0.005,
    drift: 0.0,
    walk: 0.0,
    position: 0.0,
    throttle_chance: 0.0,
    throttle: 0.0,
    slow_mode_chance: 0.0,
    slow_mode: 0.0,
    interruption_chance: 0.0,
    memory: 0.0,
    memory_sigma: 0.0,
    tick_us: 0.0,
    process_sigma: 0.0,
};

/// A machine at work.
struct Simulator {
    machine: Machine,
    noise: Noise,
    walk: f64,
    throttled: bool,
    memory: Vec<f64>,
    process: Vec<f64>,
}

impl Simulator {
    fn new(machine: Machine, contenders: usize, seed: u64) -> Simulator {
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..20 {
            noise.uniform();
        }
        let process = (0..contenders).map(|_| machine.process_sigma * noise.gauss());
        Simulator {
            process: process.collect(),
            machine,
            noise,
            walk: 0.0,
            throttled: false,
            memory: vec![0.0; contenders],
        }
    }

    /// Time and clock (share of the full one) of one sample.
    fn sample(
        &mut self,
        contender: usize,
        factor: f64,
        round: usize,
        position: usize,
    ) -> (f64, f64) {
        let Machine {
            time_us,
            tick_us,
            memory,
            ..
        } = self.machine;
        let machine = self.machine;
        if self.noise.uniform() < machine.throttle_chance {
            self.throttled = !self.throttled;
        }
        self.walk += machine.walk * self.noise.gauss();
        let innovation = (1.0 - memory * memory).sqrt() * machine.memory_sigma;
        self.memory[contender] = memory * self.memory[contender] + innovation * self.noise.gauss();
        let clock = if self.throttled {
            1.0 / (1.0 + machine.throttle)
        } else {
            1.0
        };
        let mut time = time_us * factor / clock;
        time *= 1.0 + machine.drift * round as f64 / 1000.0 + machine.position * position as f64;
        let own = self.memory[contender] + self.process[contender];
        time *= (self.walk + own + machine.sigma * self.noise.gauss()).exp();
        if self.noise.uniform() < machine.slow_mode_chance {
            time *= 1.0 + machine.slow_mode;
        }
        if self.noise.uniform() < machine.interruption_chance {
            time *= 1.0 + 9.0 * self.noise.uniform();
        }
        if tick_us > 0.0 {
            // Both ends fall on ticks; where the start falls between two is chance.
            time = ((time / tick_us + self.noise.uniform()).floor() * tick_us).max(tick_us);
        }
        (time, clock)
    }
}

/// One adaptive run; `factors[0]` is the baseline, the ratio is that of the second contender.
fn run(machine: Machine, factors: &[f64], rule: &StoppingRule, seed: u64) -> PairedRatio {
    run_processes(machine, factors, rule, seed, 1)
}

/// The same in several processes.
fn run_processes(
    machine: Machine,
    factors: &[f64],
    rule: &StoppingRule,
    seed: u64,
    count: u64,
) -> PairedRatio {
    let processes: Vec<_> = (0..count)
        .map(|process| race(machine, factors, rule, seed * count + process))
        .collect();
    let options = RatioOptions {
        seed,
        ..Default::default()
    };
    paired_ratio_of_processes(&processes, &options).unwrap()
}

/// The samples of the first two contenders from one process.
fn race(machine: Machine, factors: &[f64], rule: &StoppingRule, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let pairs: Vec<(usize, usize)> = (1..factors.len()).map(|other| (0, other)).collect();
    let mut simulator = Simulator::new(machine, factors.len(), seed);
    let schedule = Schedule::new(factors.len(), seed);
    let mut rounds = Rounds::new(factors.len());
    let mut stopping = Stopping::new(rule.clone());
    let mut elapsed_us = 0.0;
    loop {
        let mut samples = vec![None; factors.len()];
        for (position, contender) in schedule.order(rounds.len()).into_iter().enumerate() {
            let factor = factors[contender];
            let (time, clock) = simulator.sample(contender, factor, rounds.len(), position);
            // Flush, launch and synchronisation cost about as much as a mid-sized kernel.
            elapsed_us += time + 60.0;
            samples[contender] = ClockFilter::default()
                .keeps(Some(clock), Some(1.0))
                .then_some(time);
        }
        rounds.push(&samples);
        let elapsed = Duration::from_secs_f64(1e-6 * elapsed_us);
        if let Decision::Stop(_) = stopping.after_round(&rounds, &pairs, elapsed) {
            break;
        }
    }
    rounds.pairs(0, 1)
}

/// Verdicts and ratios of many runs.
struct Rates {
    runs: usize,
    faster: usize,
    slower: usize,
    same: usize,
    /// Ratio within 0.3 % of the truth.
    near: usize,
    /// Interval contains the truth.
    covered: usize,
    rounds_median: usize,
}

fn rates(machine: Machine, slowdown: f64, rule: &StoppingRule, runs: usize) -> Rates {
    rates_of_processes(machine, slowdown, rule, runs, 1)
}

fn rates_of_processes(
    machine: Machine,
    slowdown: f64,
    rule: &StoppingRule,
    runs: usize,
    processes: u64,
) -> Rates {
    let truth = 1.0 / (1.0 + slowdown);
    let factors = [1.0, 1.0 + slowdown];
    let results: Vec<PairedRatio> = (0..runs)
        .map(|index| run_processes(machine, &factors, rule, 1 + index as u64, processes))
        .collect();
    let count = |keep: &dyn Fn(&PairedRatio) -> bool| results.iter().filter(|r| keep(r)).count();
    let mut pairs: Vec<usize> = results.iter().map(|result| result.pairs).collect();
    pairs.sort_unstable();
    let rates = Rates {
        runs,
        faster: count(&|result| result.verdict == Verdict::Faster),
        slower: count(&|result| result.verdict == Verdict::Slower),
        same: count(&|result| result.verdict == Verdict::Same),
        near: count(&|result| (result.ratio / truth - 1.0).abs() < 0.003),
        covered: count(&|result| result.low <= truth && truth <= result.high),
        rounds_median: pairs[runs / 2],
    };
    println!(
        "{:16} {:+.1} %: faster {:3} slower {:3} same {:3} within 0.3 % {:3} covered {:3} of {runs}, \
         rounds {}",
        machine.name,
        100.0 * slowdown,
        rates.faster,
        rates.slower,
        rates.same,
        rates.near,
        rates.covered,
        rates.rounds_median,
    );
    rates
}

/// Runs per machine: enough to tell 19 of 20 from worse, few enough without the optimiser.
const RUNS: usize = if cfg!(debug_assertions) { 60 } else { 200 };

#[test]
fn same_code_is_not_called_different() {
    for machine in MACHINES {
        let rates = rates(machine, 0.0, &StoppingRule::default(), RUNS);
        assert!(
            rates.faster + rates.slower <= rates.runs / 100,
            "{}",
            machine.name
        );
        assert!(rates.near >= rates.runs * 95 / 100, "{}", machine.name);
        assert!(rates.covered >= rates.runs * 85 / 100, "{}", machine.name);
        assert!(rates.same >= rates.runs * 95 / 100, "{}", machine.name);
    }
}

#[test]
fn one_percent_slower_is_called_slower() {
    for machine in MACHINES {
        let rates = rates(machine, 0.01, &StoppingRule::default(), RUNS);
        assert!(rates.slower >= rates.runs * 95 / 100, "{}", machine.name);
        assert_eq!(rates.faster, 0, "{}", machine.name);
    }
}

#[test]
fn a_fixed_count_of_noisy_rounds_is_ambiguous_rather_than_wrong() {
    let machine = Machine {
        name: "noisy, 12 rounds",
        sigma: 0.03,
        ..CALM
    };
    let rule = StoppingRule {
        rounds_fixed: Some(12),
        ..Default::default()
    };
    let rates = rates(machine, 0.0, &rule, RUNS);
    assert!(rates.faster + rates.slower <= rates.runs / 20);
    assert!(
        rates.same <= rates.runs / 10,
        "12 rounds of 3 % noise cannot show equality"
    );
    assert!(rates.covered >= rates.runs * 90 / 100);
}

#[test]
fn every_contender_of_four_gets_its_verdict() {
    let machine = Machine {
        name: "four",
        drift: 0.2,
        position: 0.004,
        ..CALM
    };
    let mut right = 0;
    for seed in 1..=RUNS as u64 {
        // The ratio reported is the second contender's, so the 1 % loser goes there.
        let result = run(
            machine,
            &[1.0, 1.01, 0.8, 1.3],
            &StoppingRule::default(),
            seed,
        );
        right += usize::from(result.verdict == Verdict::Slower);
    }
    assert!(right >= RUNS * 95 / 100, "{right} of {RUNS}");
}

/// What a published run does: three processes, each with little time.
fn published() -> StoppingRule {
    StoppingRule {
        duration_min: Duration::from_millis(20),
        budget: Duration::from_millis(50),
        ..Default::default()
    }
}

/// A process that moves each contender by 0.03 to 0.35 %, so ratios by 1.4 times that.
fn uneven_processes() -> impl Iterator<Item = Machine> {
    let named = [
        ("processes 0.03 %", 0.0003),
        ("processes 0.07 %", 0.0007),
        ("processes 0.14 %", 0.0014),
        ("processes 0.21 %", 0.0021),
        ("processes 0.35 %", 0.0035),
    ];
    named.into_iter().map(|(name, process_sigma)| Machine {
        name,
        process_sigma,
        position: 0.004,
        ..CALM
    })
}

#[test]
fn the_interval_covers_what_another_process_would_have_shown() {
    for machine in uneven_processes() {
        let one = rates(machine, 0.0, &published(), 2 * RUNS);
        let three = rates_of_processes(machine, 0.0, &published(), 2 * RUNS, 3);
        let different = three.faster + three.slower;
        assert!(different <= three.runs / 100, "{}", machine.name);
        let share = if machine.process_sigma < 0.003 {
            93
        } else {
            88
        };
        assert!(
            three.covered >= three.runs * share / 100,
            "{}",
            machine.name
        );
        if machine.process_sigma > 0.001 {
            assert!(
                one.covered < one.runs * 80 / 100,
                "{}: one is enough",
                machine.name
            );
        }
    }
}

#[test]
fn three_processes_find_one_percent_and_agree_on_the_same_code() {
    for machine in uneven_processes().take(2) {
        let same = rates_of_processes(machine, 0.0, &published(), RUNS, 3);
        assert!(same.same >= same.runs * 95 / 100, "{}", machine.name);
        let slower = rates_of_processes(machine, 0.01, &published(), RUNS, 3);
        assert!(slower.slower >= slower.runs * 95 / 100, "{}", machine.name);
    }
}

//! A grid, spread over the machine's cores.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::counters::{Counters, Footprint, PerBlock, Tally};
use crate::engine::{Block, Engine, Named};
use crate::error::Error;
use crate::launch::{Launch, Watch};
use crate::limits::{MOST_BLOCKS_IN_YZ, MOST_SHARED, MOST_THREADS_IN_Z};
use crate::memory::{Allocations, Block as Bytes, Recent, View};
use crate::op::{Op, Tcgen};
use crate::program::{Module, Program, RESERVED_SHARED};
use crate::race::{Global, Races, TensorFences, Touched};
use crate::random::Random;
use crate::tensor_memory::TensorMemory;
use crate::warp::Warp;

/// What a launch did, and how long that took here.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub clusters: u64,
    pub counters: Counters,
    /// Lines of the PTX text that ran.
    pub lines: BTreeSet<u32>,
    /// Where races were looked for: what it did to global memory.
    pub touched: Option<Arc<Touched>>,
    /// Processor time of all workers together: outside of matrix products, and in them.
    pub other_time: Duration,
    pub product_time: Duration,
}

/// What all workers did together, and the error of the earliest cluster.
struct Sum {
    tally: Tally,
    per_block: PerBlock,
    time: Duration,
    error: Option<(u64, Error)>,
}

fn check(program: &Program, launch: &Launch) -> Result<(), String> {
    let product = |sizes: [u32; 3]| {
        let sizes = sizes.iter().map(|size| u64::from(*size));
        sizes.fold(1, u64::saturating_mul)
    };
    let (threads, blocks) = (product(launch.block), product(launch.cluster));
    if launch.grid.contains(&0) || launch.block.contains(&0) || launch.cluster.contains(&0) {
        return Err(format!(
            "a grid of {:?} blocks of {:?} threads in clusters of {:?}; every size is at least 1",
            launch.grid, launch.block, launch.cluster
        ));
    }
    if threads > u64::from(program.max_threads()) {
        return Err(format!(
            "{threads} threads per block; the kernel was compiled for {}",
            program.max_threads()
        ));
    }
    if launch.block[2] > MOST_THREADS_IN_Z {
        return Err(format!(
            "blocks of {:?} threads; {MOST_THREADS_IN_Z} are the most in z",
            launch.block
        ));
    }
    if launch.grid[1..]
        .iter()
        .any(|size| *size > MOST_BLOCKS_IN_YZ)
    {
        return Err(format!(
            "a grid of {:?} blocks; {MOST_BLOCKS_IN_YZ} are the most in y and z",
            launch.grid
        ));
    }
    if product(launch.grid) > 1 << 31 {
        return Err(format!(
            "a grid of {:?} blocks; 2^31 are the most",
            launch.grid
        ));
    }
    if blocks > 16 {
        return Err(format!("{blocks} blocks in a cluster; 16 are the most"));
    }
    if let Some(axis) =
        (0..3).find(|axis| !launch.grid[*axis].is_multiple_of(launch.cluster[*axis]))
    {
        return Err(format!(
            "a grid of {:?} is not a multiple of clusters of {:?} in dimension {axis}",
            launch.grid, launch.cluster
        ));
    }
    for (directive, what, given) in [
        ("reqntid", "blocks", launch.block),
        ("reqnctapercluster", "clusters", launch.cluster),
    ] {
        let Some(required) = program.directives.get(directive) else {
            continue;
        };
        let required: Vec<u32> = required.iter().copied().chain([1, 1, 1]).take(3).collect();
        if given.as_slice() != required {
            return Err(format!(
                "{what} of {given:?}; the kernel was compiled for {required:?}"
            ));
        }
    }
    if let Some(most) = program.directives.get("maxclusterrank") {
        let most = most.first().copied().unwrap_or(1);
        if blocks > u64::from(most) {
            return Err(format!(
                "{blocks} blocks in a cluster; the kernel was compiled for {most}"
            ));
        }
    }
    let shared =
        u64::from(program.dynamic_start - RESERVED_SHARED) + u64::from(launch.dynamic_shared_bytes);
    if shared > u64::from(MOST_SHARED) {
        return Err(format!(
            "{shared} bytes of shared memory per block; {MOST_SHARED} are the most"
        ));
    }
    if launch.parameters.len() != program.parameter_bytes as usize {
        return Err(format!(
            "{} bytes of parameters; the kernel takes {}",
            launch.parameters.len(),
            program.parameter_bytes
        ));
    }
    Ok(())
}

/// Runs a kernel of a module over a grid.
///
/// # Errors
///
/// Where the launch does not suit the kernel, or the kernel does something wrong: the error says what and where.
pub fn run(
    module: &Module,
    kernel: &str,
    launch: &Launch,
    allocations: &Allocations,
) -> Result<Report, Error> {
    let program = module.program(kernel)?;
    check(&program, launch).map_err(|reason| Error::Launch {
        kernel: kernel.to_owned(),
        reason,
    })?;
    let parameters = Bytes::from_bytes(&launch.parameters);
    let mut also = module.ranges();
    also.push(parameters.range());
    let view = allocations.view(&also);
    let counts: Vec<u32> = launch
        .grid
        .iter()
        .zip(launch.cluster)
        .map(|(grid, cluster)| grid / cluster)
        .collect();
    let clusters: u64 = counts.iter().map(|count| u64::from(*count)).product();
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let result = Mutex::new(Sum {
        tally: Tally::of(&program),
        per_block: PerBlock::default(),
        time: Duration::ZERO,
        error: None,
    });
    let global = (launch.races != Watch::Off)
        .then(|| Arc::new(Mutex::new(Global::after(launch.before.clone()))));
    let work = || {
        let (started, used) = (Instant::now(), processor_time());
        let mut counted = Tally::of(&program);
        let mut per_block = PerBlock::default();
        let ranks = launch.cluster.iter().product::<u32>() as usize;
        let mut of_blocks = vec![Tally::of(&program); ranks];
        let mut error = None;
        while !failed.load(Ordering::Relaxed) {
            let cluster = next.fetch_add(1, Ordering::Relaxed);
            if cluster >= clusters {
                break;
            }
            let engine = engine(
                &program,
                launch,
                &view,
                &parameters,
                &counts,
                (cluster, global.as_ref()),
                &mut of_blocks,
            );
            if let Err(found) = engine.run(cluster) {
                failed.store(true, Ordering::Relaxed);
                error = Some((cluster, found));
            }
            for tally in &mut of_blocks {
                per_block.add_block(&program, tally);
                counted.add(tally);
                tally.clear();
            }
        }
        let mut result = result
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Products are timed by the clock on the wall; of both, the share in which this thread ran counts.
        let (wall, used) = (started.elapsed(), processor_time().saturating_sub(used));
        counted.product_time = used
            .mul_f64((counted.product_time.as_secs_f64() / wall.as_secs_f64().max(1e-9)).min(1.0));
        result.tally.add(&counted);
        result.per_block.add(&per_block);
        result.time += used;
        let earlier = result
            .error
            .as_ref()
            .is_none_or(|old| error.as_ref().is_some_and(|new| new.0 < old.0));
        if error.is_some() && earlier {
            result.error = error;
        }
    };
    let workers = launch.workers.clamp(1, clusters.clamp(1, 1024) as usize);
    if workers == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
    }
    let Sum {
        tally,
        per_block,
        time,
        error,
    } = result
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, error)) = error {
        return Err(error);
    }
    Ok(Report {
        clusters,
        counters: Counters {
            per_block,
            launch: Footprint::of(launch, &tally),
            ..Counters::of(&program, &tally)
        },
        lines: tally.ran().map(|(pc, _)| program.line(pc)).collect(),
        touched: global.map(|global| {
            let global = global.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::new(global.touched())
        }),
        other_time: time.saturating_sub(tally.product_time),
        product_time: tally.product_time,
    })
}

/// What this thread has used of a core, so that a busy machine changes no rate.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "Linux has a clock for every thread");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn engine<'a>(
    program: &'a Program,
    launch: &'a Launch,
    memory: &'a View,
    parameters: &'a Bytes,
    counts: &[u32],
    (cluster, global): (u64, Option<&Arc<Mutex<Global>>>),
    tallies: &'a mut [Tally],
) -> Engine<'a> {
    let corner = [
        (cluster % u64::from(counts[0])) as u32 * launch.cluster[0],
        (cluster / u64::from(counts[0]) % u64::from(counts[1])) as u32 * launch.cluster[1],
        (cluster / u64::from(counts[0]) / u64::from(counts[1])) as u32 * launch.cluster[2],
    ];
    let ranks: u32 = launch.cluster.iter().product();
    let threads: u32 = launch.block.iter().product();
    let shared = match launch.dynamic_shared_bytes {
        0 => program.static_end,
        bytes => program.dynamic_start + bytes,
    };
    let has = |wanted: fn(&Tcgen) -> bool| {
        let mut code = program.code.iter();
        code.any(|decoded| matches!(&decoded.op, Op::Tcgen(op) if wanted(op)))
    };
    let has_tensor = has(|_| true);
    let races = global.map(|global| {
        Box::new(Races::new(
            (cluster as u32, global.clone()),
            TensorFences {
                before: has(|op| matches!(op, Tcgen::Fence { before: true })),
                after: has(|op| matches!(op, Tcgen::Fence { before: false })),
            },
            ranks as usize,
            threads.div_ceil(32) as usize,
            shared as usize,
        ))
    });
    let blocks = (0..ranks)
        .map(|rank| {
            let within = [
                rank % launch.cluster[0],
                rank / launch.cluster[0] % launch.cluster[1],
                rank / launch.cluster[0] / launch.cluster[1],
            ];
            Block {
                id: std::array::from_fn(|axis| corner[axis] + within[axis]),
                // Not a number in every format: what nobody wrote shows.
                shared: vec![0xff; shared as usize],
                warps: (0..threads.div_ceil(32))
                    .map(|index| Warp::new(program, index, threads))
                    .collect(),
                named: [Named::default(); 16],
                mbarriers: BTreeMap::new(),
                live: threads,
                tensor: has_tensor.then(|| Box::new(TensorMemory::new())),
                tensor_queue: VecDeque::new(),
            }
        })
        .collect();
    Engine {
        program,
        launch,
        memory,
        parameter_address: parameters.address(),
        blocks,
        random: Random::new(launch.schedule.seed(), cluster),
        recent: Recent::default(),
        round: 0,
        rested: 0,
        progress: 0,
        queue: Vec::new(),
        cluster_arrived: 0,
        cluster_phase: 0,
        timeout: false,
        tallies,
        races,
        executed: 0,
        block: 0,
        pc: 0,
    }
}

//! Slow plans are made by helper processes: each runs this program again with its own CUDA context,
//! because libraries that compile kernels do so on one thread at a time. They work while the worker
//! waits and exit before it continues, so that they never disturb a measurement.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{mpsc, Mutex};
use std::time::{Duration, Instant};

use children::Leash;
use contender::DeviceInfo;
use serde::{Deserialize, Serialize};

use crate::protocol;
use crate::selection::Selection;
use crate::UsageError;

/// Plans per process and batch; more would delay the first row.
const ROUNDS: usize = 4;
/// Fewer plans than this are faster to make than to start processes for.
const FEWEST: usize = 4;
/// A library that hangs costs this once and is not tried again.
const LIMIT: Duration = Duration::from_secs(60);

/// One plan to make: worker to planner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    contender: String,
    /// Index into the selection's problems.
    problem: usize,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
struct Made {
    plan: Option<String>,
}

/// Serves one worker until it closes the socket.
pub fn serve(selection: &Selection) -> Result<ExitCode, UsageError> {
    let socket = protocol::worker_socket();
    let alone = || UsageError::new("--planner is internal: only the worker uses it");
    let socket = socket.and_then(|socket| socket.peer_addr().map(|_| socket));
    let socket = socket.map_err(|_| alone())?;
    let mut voice = socket.try_clone().map_err(|_| alone())?;
    let Ok(_device) = device::open(selection.choices.device) else {
        // The worker makes missing plans itself.
        return Ok(ExitCode::FAILURE);
    };
    for order in protocol::receive::<Order>(socket).map_while(Result::ok) {
        let mut contenders = selection.contenders.iter();
        let contender = contenders.find(|each| each.identity().name == order.contender);
        let plan = contender.and_then(|each| each.write_plan(&*selection.problems[order.problem]));
        if protocol::send(&mut voice, &Made { plan }).is_err() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The worker's view of plans.
#[derive(Default)]
pub struct Planners {
    /// Contender and plan name; made or given up.
    done: HashSet<(String, String)>,
    hung: bool,
}

impl Planners {
    /// If the current problem lacks a plan, has it made, along with plans of some upcoming problems.
    /// `contenders` are those of the current task.
    pub fn plan(
        &mut self,
        selection: &Selection,
        problem: usize,
        coming: &[usize],
        contenders: &[String],
        device: &DeviceInfo,
    ) {
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let orders = self.orders(
            selection,
            problem,
            coming,
            contenders,
            device,
            most * ROUNDS,
        );
        if orders.len() < FEWEST || self.hung {
            return;
        }
        let processes = orders.len().div_ceil(2).min(most);
        for (order, plan) in self.make(orders, processes) {
            let mut contenders = selection.contenders.iter();
            let contender = contenders.find(|each| each.identity().name == order.contender);
            if let (Some(contender), Some(plan)) = (contender, plan) {
                contender.take_plan(&*selection.problems[order.problem], &plan);
            }
        }
    }

    /// The plans to make now: none unless the current problem lacks one.
    fn orders(
        &mut self,
        selection: &Selection,
        problem: usize,
        coming: &[usize],
        contenders: &[String],
        device: &DeviceInfo,
        most: usize,
    ) -> Vec<Order> {
        let mut orders = Vec::new();
        for &index in [&[problem], coming].concat().iter() {
            for contender in &selection.contenders {
                let name = contender.identity().name.clone();
                if orders.len() == most || !contenders.contains(&name) {
                    continue;
                }
                let plan = contender.plan_name(&*selection.problems[index], device);
                if plan.is_some_and(|plan| self.done.insert((name.clone(), plan))) {
                    orders.push(Order {
                        contender: name,
                        problem: index,
                    });
                }
            }
            if index == problem && orders.is_empty() {
                break;
            }
        }
        orders
    }

    fn make(&mut self, orders: Vec<Order>, processes: usize) -> Vec<(Order, Option<String>)> {
        let total = orders.len();
        let queue = Mutex::new(orders.into_iter());
        let started = Mutex::new(Vec::new());
        let (sender, made) = mpsc::channel();
        let deadline = Instant::now() + LIMIT;
        let mut plans = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..processes {
                let sender = sender.clone();
                scope.spawn(|| {
                    // Orders of a planner that cannot be reached fall to the others, or to the worker.
                    let _ = ask_one(&queue, &started, sender);
                });
            }
            drop(sender);
            while plans.len() < total {
                let left = deadline.saturating_duration_since(Instant::now());
                match made.recv_timeout(left) {
                    Ok(plan) => plans.push(plan),
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.hung = true;
                        break;
                    }
                }
            }
            let _ = queue.lock().map(|mut queue| queue.by_ref().count());
            // Killing them closes their sockets, which ends the threads.
            for child in started.lock().iter_mut().flat_map(|all| all.iter_mut()) {
                children::end(child);
            }
        });
        if plans.len() < total {
            workspace::tell!(
                "{} of {total} plans were not made ahead; they will be made on demand",
                total - plans.len()
            );
        }
        plans
    }
}

type Queue = Mutex<std::vec::IntoIter<Order>>;

/// Starts a planner and feeds it one order after another.
fn ask_one(
    queue: &Queue,
    started: &Mutex<Vec<Child>>,
    sender: mpsc::Sender<(Order, Option<String>)>,
) -> io::Result<()> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let arguments = std::env::args().skip(1).filter(|each| each != "--worker");
    let child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .arg("--planner")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(io::stderr().as_fd().try_clone_to_owned()?)
        .leash()
        .spawn()?;
    // It ends with this thread, which ends when there is nothing more to ask.
    if let Ok(mut started) = started.lock() {
        started.push(child);
    }
    let mut answers = protocol::receive::<Made>(ours.try_clone()?);
    loop {
        let Some(order) = queue.lock().ok().and_then(|mut queue| queue.next()) else {
            return Ok(());
        };
        protocol::send(&mut ours, &order)?;
        match answers.next() {
            Some(Ok(made)) => {
                let _ = sender.send((order, made.plan));
            }
            _ => return Ok(()),
        }
    }
}

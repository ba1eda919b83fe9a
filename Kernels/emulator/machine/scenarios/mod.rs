//! Small kernels that show what the machine does, and what it refuses.

mod asynchronous;
mod control;
mod damage;
mod packed_copies;
mod products;
mod proofs;
mod proofs_of_groups;
mod proofs_of_memory;
mod races;
mod tensor_cores;
mod tensor_forms;
mod tensor_loads;
mod tensor_pairs;
mod tensor_races;
mod tensor_shift;
mod trust;

use crate::launch::Queue;
use crate::{run, Allocations, Block, Error, Launch, Module, Report, Schedule, Watch};

pub use crate::SCHEDULES;

/// The schedule under which work of one queue alone is late.
pub fn late(queue: Queue) -> Schedule {
    let seed = Queue::ALL.iter().position(|other| *other == queue);
    Schedule::Adversarial {
        seed: seed.expect("all queues are there") as u64,
    }
}

/// A kernel `k` with parameters p0, p1, .. that are addresses, and registers of each kind.
pub fn kernel(parameters: usize, body: &str) -> String {
    let list: Vec<String> = (0..parameters)
        .map(|number| format!(".param .u64 p{number}"))
        .collect();
    let target = if body.contains("wgmma") {
        "sm_90a"
    } else {
        "sm_100a"
    };
    format!(
        ".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k({})\n{{\n\
         .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<99>; .reg .f32 %f<99>; \
         .reg .b64 %d<50>;\n{body}\nret;\n}}\n",
        list.join(", ")
    )
}

/// Runs `k` with the addresses of buffers as its arguments, and brings the buffers back.
pub fn execute(text: &str, launch: &Launch, buffers: &mut [Vec<u32>]) -> Result<Report, Error> {
    execute_prepared(text, launch, buffers, |_, _| ())
}

/// The same, with buffers that are filled once their addresses are known.
pub fn execute_prepared(
    text: &str,
    launch: &Launch,
    buffers: &mut [Vec<u32>],
    prepare: impl Fn(&[u64], &mut [Vec<u32>]),
) -> Result<Report, Error> {
    let module = Module::load(text)?;
    let allocations = Allocations::default();
    let rooms: Vec<Block> = buffers
        .iter()
        .map(|words| Block::filled(4 * words.len(), 0))
        .collect();
    let addresses: Vec<u64> = rooms.iter().map(Block::address).collect();
    prepare(&addresses, buffers);
    for (room, words) in rooms.iter().zip(buffers.iter()) {
        let (address, bytes) = room.range();
        for (at, word) in words.iter().enumerate() {
            // SAFETY: inside of the block, which nobody else uses yet.
            unsafe { (address as *mut u32).add(at).write(*word) };
        }
        // SAFETY: the block outlives the launch and nobody looks at it meanwhile.
        unsafe { allocations.allow(address, bytes) };
    }
    let parameters = addresses
        .iter()
        .flat_map(|address| address.to_le_bytes())
        .collect();
    let report = run(
        &module,
        "k",
        &Launch {
            parameters,
            ..launch.clone()
        },
        &allocations,
    );
    if let Ok(report) = &report {
        trust::note(report);
    }
    for (words, room) in buffers.iter_mut().zip(&rooms) {
        for (word, part) in words.iter_mut().zip(room.to_bytes().chunks_exact(4)) {
            *word = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
        }
    }
    report
}

/// A block that is watched for races.
pub fn threads(count: u32) -> Launch {
    Launch {
        block: [count, 1, 1],
        races: Watch::All,
        ..Launch::default()
    }
}

/// The error of a kernel that has one, under every schedule.
pub fn refusal(text: &str, launch: &Launch, buffers: &[Vec<u32>]) -> String {
    let mut messages: Vec<String> = SCHEDULES
        .iter()
        .map(|schedule| {
            let launch = Launch {
                schedule: *schedule,
                ..launch.clone()
            };
            execute(text, &launch, &mut buffers.to_vec())
                .expect_err("the kernel is wrong")
                .to_string()
        })
        .collect();
    messages.swap_remove(0)
}

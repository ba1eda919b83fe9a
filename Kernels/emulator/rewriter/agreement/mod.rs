//! Rewritten kernels against the interpreter's own tensor cores: the same bits, under every schedule.

mod faults;
mod pairs;
mod products;
mod transfers;

use machine::{run, Allocations, Block, Error, Launch, Module, Schedule, TensorMap};

use crate::{rewrite, Options, When};

/// When the rewritten kernel does tensor cores' work, and when the interpreter does its copies.
const RUNS: [(When, Schedule); 3] = [
    (When::AtOnce, Schedule::Random { seed: 1 }),
    (When::Late, Schedule::AtOnce),
    (When::Late, Schedule::Late { seed: 1 }),
];

/// A kernel `k` whose parameters p0, p1, .. are addresses.
fn kernel(parameters: usize, body: &str) -> String {
    let list: Vec<String> = (0..parameters)
        .map(|number| format!(".param .u64 p{number}"))
        .collect();
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k({})\n{{\n\
         .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<199>; .reg .f32 %f<99>; .reg .b64 %d<50>;\n\
         {body}\nret;\n}}\n",
        list.join(", ")
    )
}

/// Words that look random and are the same every time, some bits of them cleared and others set.
fn noise(count: usize, (kept, set): (u32, u32)) -> Vec<u32> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 ^ (state >> 60) as u32
    };
    (0..count).map(|_| next() & kept | set).collect()
}

/// Runs `k`; with a map, the last buffer is for it and the first is its tensor.
fn execute(
    text: &str,
    launch: &Launch,
    buffers: &[Vec<u32>],
    map: Option<&TensorMap>,
) -> Result<Vec<Vec<u32>>, Error> {
    let module = Module::load(text)?;
    let allocations = Allocations::default();
    let mut buffers = buffers.to_vec();
    let rooms: Vec<Block> = buffers
        .iter()
        .map(|words| Block::filled(4 * words.len(), 0))
        .collect();
    let addresses: Vec<u64> = rooms.iter().map(Block::address).collect();
    if let Some(map) = map {
        let map = TensorMap {
            address: addresses[0],
            ..map.clone()
        };
        let bytes = map.encode().expect("a map that the driver takes");
        let last = buffers.len() - 1;
        for (word, part) in buffers[last].iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
        }
    }
    for (room, words) in rooms.iter().zip(&buffers) {
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
    run(
        &module,
        "k",
        &Launch {
            parameters,
            ..launch.clone()
        },
        &allocations,
    )?;
    for (words, room) in buffers.iter_mut().zip(&rooms) {
        for (word, part) in words.iter_mut().zip(room.to_bytes().chunks_exact(4)) {
            *word = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
        }
    }
    buffers.truncate(if map.is_some() {
        buffers.len() - 1
    } else {
        buffers.len()
    });
    Ok(buffers)
}

/// What a kernel is run on.
struct Case {
    text: String,
    launch: Launch,
    buffers: Vec<Vec<u32>>,
    map: Option<TensorMap>,
}

impl Case {
    fn rewritten(&self, when: When) -> String {
        let text = rewrite(&self.text, &Options { when, slots: 4 }).expect("known instructions");
        assert!(!text.contains("tcgen05."), "nothing of sm_100a is left");
        text
    }

    fn run(&self, text: &str, schedule: Schedule) -> Result<Vec<Vec<u32>>, Error> {
        let launch = Launch {
            schedule,
            ..self.launch.clone()
        };
        execute(text, &launch, &self.buffers, self.map.as_ref())
    }

    /// What the original leaves in the buffers.
    fn wanted(&self) -> Vec<Vec<u32>> {
        let wanted = self
            .run(&self.text, Schedule::AtOnce)
            .expect("the original runs");
        assert!(
            wanted[..] != self.buffers[..wanted.len()],
            "the kernel wrote something"
        );
        wanted
    }

    /// The first word in which a text differs from the original, or how it fails.
    fn difference(&self, text: &str, schedule: Schedule, wanted: &[Vec<u32>]) -> Option<String> {
        let found = match self.run(text, schedule) {
            Ok(found) => found,
            Err(error) => return Some(error.to_string()),
        };
        let words = wanted
            .iter()
            .flatten()
            .zip(found.iter().flatten())
            .enumerate();
        let mut wrong = words.filter(|(_, (wanted, found))| wanted != found);
        let (at, (wanted, found)) = wrong.next()?;
        Some(format!("word {at} is {found:#x}, not {wanted:#x}"))
    }

    /// The rewritten kernel, at once and late, has the original's bits under every schedule.
    fn agrees(&self) {
        let wanted = self.wanted();
        for (when, schedule) in RUNS {
            let difference = self.difference(&self.rewritten(when), schedule, &wanted);
            assert_eq!(difference, None, "{when:?} {schedule:?}");
        }
    }
}

fn threads(count: u32) -> Launch {
    Launch {
        block: [count, 1, 1],
        ..Launch::default()
    }
}

/// A descriptor: start, leading and stride offsets in bytes, layout.
fn descriptor(start: u64, leading: u64, stride: u64, layout: u64) -> u64 {
    start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | 1 << 46 | layout << 61
}

/// Rows and columns, formats of A and B, further bits.
fn instruction(rows: u32, columns: u32, a: u32, b: u32, more: u32) -> u32 {
    1 << 4 | a << 7 | b << 10 | columns >> 3 << 17 | rows >> 4 << 24 | more
}

/// Bits to keep and to set, so that no element is infinite or NaN and no product of two is subnormal.
const BRAIN: (u32, u32) = (0xbfff_bfff, 0x3000_3000);
const HALF: (u32, u32) = (0xb7ff_b7ff, 0);
const SINGLE: (u32, u32) = (0xbfff_ffff, 0x3000_0000);
const BYTES: (u32, u32) = (0xbfbf_bfbf, 0);
/// Of either kind.
const SCALES: (u32, u32) = (0x0707_0707, 0x7070_7070);

//! Launches as files, to be repeated elsewhere: `RECORD_LAUNCHES` names a folder, and every launch whose kernel has no
//! fault planted in it leaves its PTX, its arguments, and the memory it was given, before and after.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use machine::{Allocations, Launch, Program, TensorMap};
use serde_json::{json, Value};

const VARIABLE: &str = "RECORD_LAUNCHES";

/// Launches of one kernel; further ones say little more.
const MOST_OF_A_KERNEL: usize = 3;

/// Memory that a recording copies; a launch with more is left out.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Default)]
struct Recorded {
    digests: HashSet<u64>,
    counts: HashMap<String, usize>,
    /// What host code says of memory: the type of its elements.
    types: BTreeMap<u64, &'static str>,
}

/// What memory may hold, in the words of `ptx run`.
const TYPES: [&str; 5] = ["u8", "i32", "f32", "f16", "bf16"];

static RECORDED: OnceLock<Mutex<Recorded>> = OnceLock::new();

fn recorded() -> std::sync::MutexGuard<'static, Recorded> {
    let recorded = RECORDED.get_or_init(Mutex::default);
    recorded.lock().unwrap_or_else(PoisonError::into_inner)
}

fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOLDER.get_or_init(|| {
        let name = std::env::var_os(VARIABLE).filter(|name| !name.is_empty())?;
        Some(PathBuf::from(name))
    });
    found.as_deref()
}

/// Says what the memory at an address holds: f32, f16, bf16, i32 or u8. A recording repeats it, so that whoever
/// compares knows what is near.
pub fn describe(address: usize, dtype: &'static str) {
    assert!(TYPES.contains(&dtype), "{dtype} is none of {TYPES:?}");
    if folder().is_some() {
        recorded().types.insert(address as u64, dtype);
    }
}

/// Memory was freed: what comes to lie there may hold anything else.
pub fn forget(address: u64) {
    if folder().is_some() {
        recorded().types.remove(&address);
    }
}

/// A launch about to run.
pub struct Recording {
    folder: PathBuf,
    description: Value,
    buffers: Vec<Buffer>,
}

struct Buffer {
    name: String,
    address: u64,
    before: Vec<u8>,
}

// A word of the parameters that lies in an allocation.
struct Pointer {
    at: usize,
    start: u64,
    bytes: u64,
    offset: u64,
}

fn pointers(parameters: &[u8], allocations: &Allocations) -> Vec<Pointer> {
    let words = parameters.chunks_exact(8).enumerate();
    words
        .filter_map(|(number, word)| {
            let address = u64::from_le_bytes(word.try_into().ok()?);
            let tensor = last_of_map(&parameters[8 * number..]);
            let (start, bytes) = tensor
                .and_then(|last| allocations.containing(last))
                .or_else(|| allocations.containing(address))?;
            Some(Pointer {
                at: 8 * number,
                start,
                bytes,
                offset: address.wrapping_sub(start),
            })
        })
        .collect()
}

/// A tensor map may begin before its tensor, where the first coordinates of its last dimension are never used: the
/// address of the last one.
fn last_of_map(bytes: &[u8]) -> Option<u64> {
    let map = TensorMap::decode(bytes.first_chunk()?).ok()?;
    let (stride, size) = (map.strides.last()?, map.sizes.last()?);
    Some(map.address.wrapping_add(stride.wrapping_mul(size - 1)))
}

fn contents(address: u64, bytes: u64) -> Vec<u8> {
    // SAFETY: the range is an allocation, and no kernel runs.
    unsafe { std::slice::from_raw_parts(address as *const u8, bytes as usize) }.to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// None where nobody asked for it, or the same launch was recorded before.
pub fn begin(
    text: impl FnOnce() -> String,
    program: &Program,
    launch: &Launch,
    allocations: &Allocations,
) -> Option<Recording> {
    begin_in(folder()?, text, program, launch, allocations)
}

fn begin_in(
    folder: &Path,
    text: impl FnOnce() -> String,
    program: &Program,
    launch: &Launch,
    allocations: &Allocations,
) -> Option<Recording> {
    let pointers = pointers(&launch.parameters, allocations);
    let places: BTreeMap<u64, u64> = pointers
        .iter()
        .map(|pointer| (pointer.start, pointer.bytes))
        .collect();
    if places.values().sum::<u64>() > MOST_BYTES {
        return None;
    }
    let buffers: Vec<Buffer> = places
        .iter()
        .enumerate()
        .map(|(number, (address, bytes))| Buffer {
            name: format!("b{number}"),
            address: *address,
            before: contents(*address, *bytes),
        })
        .collect();
    // Addresses differ from run to run; what they point to does not.
    let mut parameters = launch.parameters.clone();
    for pointer in &pointers {
        parameters[pointer.at..][..8].fill(0);
    }
    let mut recorded = recorded();
    let mut hasher = DefaultHasher::new();
    (
        &program.name,
        launch.grid,
        launch.block,
        launch.cluster,
        &parameters,
    )
        .hash(&mut hasher);
    for buffer in &buffers {
        buffer.before.hash(&mut hasher);
    }
    let digest = hasher.finish();
    let count = recorded.counts.entry(program.name.clone()).or_default();
    if *count == MOST_OF_A_KERNEL {
        return None;
    }
    *count += 1;
    if !recorded.digests.insert(digest) {
        *recorded.counts.get_mut(&program.name)? -= 1;
        return None;
    }
    let buffer_of = |start| buffers.iter().find(|buffer| buffer.address == start);
    let arguments: Vec<Value> = program
        .parameters
        .iter()
        .map(|(offset, bytes)| {
            let range = *offset as usize..(*offset + *bytes) as usize;
            let inside = pointers
                .iter()
                .filter(|pointer| range.contains(&pointer.at));
            let inside: Vec<Value> = inside
                .map(|pointer| {
                    let buffer = buffer_of(pointer.start).map(|buffer| &buffer.name);
                    json!({"at": pointer.at - range.start, "buffer": buffer, "offset": pointer.offset})
                })
                .collect();
            json!({"raw": {"hex": hex(&parameters[range]), "pointers": inside}})
        })
        .collect();
    // What host code does not describe is mostly a workspace.
    let usual = |bytes: usize| if bytes.is_multiple_of(4) { "f32" } else { "u8" };
    let types: BTreeMap<&String, &str> = buffers
        .iter()
        .map(|buffer| {
            let dtype = recorded.types.get(&buffer.address).copied();
            (&buffer.name, dtype.unwrap_or(usual(buffer.before.len())))
        })
        .collect();
    let size = |dtype: &str| match dtype {
        "f32" | "i32" => 4,
        "f16" | "bf16" => 2,
        _ => 1,
    };
    let listed: serde_json::Map<String, Value> = buffers
        .iter()
        .map(|buffer| {
            let dtype = types[&buffer.name];
            let described = json!({
                "dtype": dtype,
                "elements": buffer.before.len() / size(dtype),
                "file": format!("{}.before", buffer.name),
            });
            (buffer.name.clone(), described)
        })
        .collect();
    let description = json!({
        "kernel": program.name,
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "buffers": listed,
        "arguments": arguments,
    });
    let recording = Recording {
        folder: folder.join(format!("{digest:016x}")),
        description,
        buffers,
    };
    if let Err(error) = recording.write_before(&text()) {
        panic!("{VARIABLE}: {}: {error}", recording.folder.display());
    }
    Some(recording)
}

impl Recording {
    fn write_before(&self, text: &str) -> io::Result<()> {
        // Of an earlier run.
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        fs::create_dir_all(&self.folder)?;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let unit = self
            .folder
            .with_file_name(format!("{:016x}.ptx", hasher.finish()));
        if !unit.exists() {
            fs::write(&unit, text)?;
        }
        // The launches of a unit share its text.
        fs::hard_link(unit, self.folder.join("module.ptx"))?;
        for buffer in &self.buffers {
            let path = self.folder.join(format!("{}.before", buffer.name));
            fs::write(path, &buffer.before)?;
        }
        Ok(())
    }

    /// The launch has ended well: what it wrote is what is expected of others.
    pub fn end(mut self) {
        if let Err(error) = self.write_after() {
            panic!("{VARIABLE}: {}: {error}", self.folder.display());
        }
    }

    fn write_after(&mut self) -> io::Result<()> {
        for buffer in &self.buffers {
            let after = contents(buffer.address, buffer.before.len() as u64);
            let file = if after == buffer.before {
                format!("{}.before", buffer.name)
            } else {
                let file = format!("{}.after", buffer.name);
                fs::write(self.folder.join(&file), after)?;
                file
            };
            self.description["buffers"][&buffer.name]["expect_file"] = file.into();
        }
        let text = serde_json::to_string_pretty(&self.description)?;
        fs::write(self.folder.join("launch.json"), text)
    }
}

#[cfg(test)]
mod tests {
    use machine::{Block, Module};

    use super::*;

    const SCALE: &str = "
        .version 9.0
        .target sm_90a
        .address_size 64
        .visible .entry scale(.param .u64 x, .param .f32 factor)
        {
            .reg .b32 %r<2>; .reg .f32 %f<4>; .reg .b64 %d<4>;
            ld.param.u64 %d1, [x]; ld.param.f32 %f1, [factor];
            mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 4, %d1;
            ld.global.f32 %f2, [%d2]; mul.f32 %f3, %f2, %f1; st.global.f32 [%d2], %f3;
            ret;
        }";

    fn singles(values: &[f32]) -> Vec<u8> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        bytes.collect()
    }

    #[test]
    fn a_map_that_begins_before_its_tensor_is_a_pointer() {
        let allocations = Allocations::default();
        let block = Block::from_bytes(&[0; 1024]);
        // SAFETY: nothing touches them. The map begins in the first.
        unsafe {
            allocations.allow(block.address() - 4096, 64);
            allocations.allow(block.address(), 1024);
        }
        let map = TensorMap {
            address: block.address() - 4096,
            kind: 10,
            sizes: vec![64, 9],
            strides: vec![512],
            box_sizes: vec![64, 1],
            swizzle: 0,
            fills_nan: false,
        };
        let found = pointers(&map.encode().unwrap(), &allocations);
        let [pointer] = &found[..] else {
            panic!("{} pointers", found.len());
        };
        assert_eq!((pointer.at, pointer.start), (0, block.address()));
        assert_eq!(pointer.offset, 0u64.wrapping_sub(4096));
    }

    #[test]
    fn a_launch_leaves_its_memory_before_and_after() {
        let folder = PathBuf::from(std::env::var_os("TEST_TMPDIR").expect("Bazel sets it"));
        let module = Module::load(SCALE).unwrap();
        let program = module.program("scale").unwrap();
        let block = Block::from_bytes(&singles(&[9.0, 1.0, 2.0]));
        let allocations = Allocations::default();
        // SAFETY: the block outlives the launch, and nobody borrows it meanwhile.
        unsafe { allocations.allow(block.address(), 12) };
        let mut parameters = vec![0; program.parameter_bytes as usize];
        // The second element of the allocation.
        parameters[..8].copy_from_slice(&(block.address() + 4).to_le_bytes());
        parameters[8..12].copy_from_slice(&2.5f32.to_le_bytes());
        let launch = Launch {
            block: [2, 1, 1],
            parameters,
            ..Launch::default()
        };
        let begin = || {
            begin_in(
                &folder,
                || SCALE.to_owned(),
                &program,
                &launch,
                &allocations,
            )
        };
        let recording = begin().unwrap();
        assert!(begin().is_none(), "the same again");
        let place = recording.folder.clone();
        machine::run(&module, "scale", &launch, &allocations).unwrap();
        recording.end();
        let read = |name: &str| fs::read(place.join(name)).unwrap();
        assert_eq!(read("b0.before"), singles(&[9.0, 1.0, 2.0]));
        assert_eq!(read("b0.after"), singles(&[9.0, 2.5, 5.0]));
        assert_eq!(read("module.ptx"), SCALE.as_bytes());
        let written: Value = serde_json::from_slice(&read("launch.json")).unwrap();
        assert_eq!(
            written["arguments"][0]["raw"]["pointers"],
            json!([{"at": 0, "buffer": "b0", "offset": 4}])
        );
        assert_eq!(
            written["arguments"][1]["raw"]["hex"],
            hex(&2.5f32.to_le_bytes())
        );
        assert_eq!(written["buffers"]["b0"]["expect_file"], "b0.after");
        assert_eq!(written["buffers"]["b0"]["dtype"], "f32");
        assert_eq!(written["buffers"]["b0"]["elements"], 3);
    }
}

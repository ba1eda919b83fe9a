//! A launch as JSON: what it runs, with what, and what should come out.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use machine::{Allocations, Block, Launch, Module, Program, Report, Schedule, TensorLoads, Watch};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::argument::Argument;
use crate::dtype::Dtype;
use crate::files;
use crate::near::{self, Agreement};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    kernel: String,
    #[serde(default = "one")]
    pub grid: [u32; 3],
    #[serde(default = "one")]
    pub block: [u32; 3],
    #[serde(default = "one")]
    pub cluster: [u32; 3],
    #[serde(default)]
    pub dynamic_shared_bytes: u32,
    #[serde(default, deserialize_with = "distinct")]
    buffers: BTreeMap<String, Buffer>,
    #[serde(default)]
    arguments: Vec<Argument>,
}

fn one() -> [u32; 3] {
    [1; 3]
}

/// Buffers by name, each of which stands there once.
fn distinct<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Buffer>, D::Error> {
    struct Buffers;
    impl<'de> Visitor<'de> for Buffers {
        type Value = BTreeMap<String, Buffer>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("buffers by their names")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some((name, buffer)) = map.next_entry::<String, Buffer>()? {
                if found.contains_key(&name) {
                    return Err(A::Error::custom(format!("duplicate buffer `{name}`")));
                }
                found.insert(name, buffer);
            }
            Ok(found)
        }
    }
    from.deserialize_map(Buffers)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Buffer {
    dtype: Dtype,
    elements: usize,
    /// The first values; the others are `fill`.
    #[serde(default)]
    values: Vec<f64>,
    #[serde(default)]
    fill: f64,
    /// Raw bytes instead of values.
    file: Option<PathBuf>,
    /// Where to write the bytes afterwards.
    save: Option<PathBuf>,
    /// What the first values should be afterwards.
    expect: Option<Vec<f64>>,
    #[serde(default)]
    tolerance: f64,
    /// What all bytes should be afterwards; floats may be near instead.
    expect_file: Option<PathBuf>,
}

/// How a launch is run.
#[derive(Clone, Copy)]
pub struct How {
    pub schedule: Schedule,
    pub tensor_loads: TensorLoads,
    pub workers: usize,
    pub races: Watch,
    /// Thread instructions of a cluster before it is given up.
    pub limit: u64,
}

impl Default for How {
    fn default() -> Self {
        Self {
            schedule: Schedule::AtOnce,
            tensor_loads: TensorLoads::AfterWait,
            workers: 1,
            races: Watch::Off,
            limit: Launch::default().limit,
        }
    }
}

pub struct Outcome {
    pub report: Report,
    pub agreement: Agreement,
}

impl Buffer {
    fn size(&self) -> usize {
        self.elements.saturating_mul(self.dtype.bytes())
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        let size = self.size();
        if let Some(file) = &self.file {
            let bytes = files::bytes(file, size as u64)
                .map_err(|error| format!("buffer {name}: {error}"))?;
            if bytes.len() != size {
                return Err(format!(
                    "buffer {name}: {} has {} bytes, not {size}",
                    file.display(),
                    bytes.len()
                ));
            }
            return Ok(bytes);
        }
        if self.values.len() > self.elements {
            return Err(format!(
                "buffer {name}: {} values for {} elements",
                self.values.len(),
                self.elements
            ));
        }
        if let Some(value) = self
            .values
            .iter()
            .chain([&self.fill])
            .find(|value| !self.dtype.holds(**value))
        {
            return Err(format!("buffer {name}: {value:?} is no value of its type"));
        }
        let values = self.values.iter();
        let mut bytes: Vec<u8> = values.flat_map(|value| self.dtype.encode(*value)).collect();
        let rest = self.elements - self.values.len();
        bytes.extend(self.dtype.encode(self.fill).repeat(rest));
        Ok(bytes)
    }
}

impl Description {
    pub fn read(path: &Path) -> Result<Self, String> {
        serde_json::from_str(&files::text(path)?)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// What buffers hold before the launch.
    pub fn contents(&self) -> Result<Vec<(&str, Vec<u8>)>, String> {
        const MOST_BYTES: usize = 1 << 32;
        let sizes = self.buffers.values().map(Buffer::size);
        let bytes = sizes.fold(0, usize::saturating_add);
        if bytes > MOST_BYTES {
            return Err(format!(
                "buffers of {bytes} bytes in all; {MOST_BYTES} are the most"
            ));
        }
        let buffers = self.buffers.iter();
        buffers
            .map(|(name, buffer)| Ok((name.as_str(), buffer.bytes(name)?)))
            .collect()
    }

    pub fn program(&self, module: &Module) -> Result<Arc<Program>, String> {
        module
            .program(&self.kernel)
            .map_err(|error| error.to_string())
    }

    /// The parameters of the kernel where buffers have these addresses.
    pub fn parameters(
        &self,
        program: &Program,
        addresses: &BTreeMap<&str, u64>,
    ) -> Result<Vec<u8>, String> {
        if self.arguments.len() != program.parameters.len() {
            return Err(format!(
                "{}: {} arguments for {} parameters",
                self.kernel,
                self.arguments.len(),
                program.parameters.len()
            ));
        }
        let mut parameters = vec![0; program.parameter_bytes as usize];
        for (number, (argument, (offset, bytes))) in
            self.arguments.iter().zip(&program.parameters).enumerate()
        {
            let kind_of = |name: &str| self.buffers[name].dtype.map_kind();
            let value = argument
                .bytes(addresses, &kind_of)
                .map_err(|reason| format!("argument {}: {reason}", number + 1))?;
            if value.len() != *bytes as usize {
                return Err(format!(
                    "argument {} has {} bytes; the parameter has {bytes}",
                    number + 1,
                    value.len()
                ));
            }
            parameters[*offset as usize..][..value.len()].copy_from_slice(&value);
        }
        Ok(parameters)
    }

    /// Saves a buffer and compares it as the launch says.
    pub fn verify(&self, name: &str, bytes: &[u8]) -> Result<Agreement, String> {
        self.buffers[name].verify(name, bytes)
    }

    pub fn run(&self, module: &Module, how: How) -> Result<Outcome, String> {
        let schedule = how.schedule;
        let allocations = Allocations::default();
        let mut blocks: BTreeMap<&str, Block> = BTreeMap::new();
        for (name, bytes) in self.contents()? {
            let block = Block::from_bytes(&bytes);
            // SAFETY: blocks live until the launch has ended, and nobody borrows their bytes meanwhile.
            unsafe { allocations.allow(block.address(), bytes.len() as u64) };
            blocks.insert(name, block);
        }
        let addresses = blocks.iter().map(|(name, block)| (*name, block.address()));
        let parameters = self.parameters(&*self.program(module)?, &addresses.collect())?;
        let launch = Launch {
            grid: self.grid,
            block: self.block,
            cluster: self.cluster,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            parameters,
            schedule,
            tensor_loads: how.tensor_loads,
            workers: how.workers,
            races: how.races,
            limit: how.limit,
            ..Launch::default()
        };
        let report = machine::run(module, &self.kernel, &launch, &allocations)
            .map_err(|error| format!("{schedule:?}: {error}"))?;
        let mut agreement = Agreement::default();
        for (name, block) in &blocks {
            let found = self.verify(name, &block.to_bytes());
            agreement.add(found.map_err(|reason| format!("{schedule:?}: {reason}"))?);
        }
        Ok(Outcome { report, agreement })
    }
}

impl Buffer {
    fn verify(&self, name: &str, bytes: &[u8]) -> Result<Agreement, String> {
        if let Some(path) = &self.save {
            fs::write(path, bytes)
                .map_err(|error| format!("buffer {name}: {}: {error}", path.display()))?;
        }
        if let Some(path) = &self.expect_file {
            let wanted = files::bytes(path, bytes.len() as u64)
                .map_err(|error| format!("buffer {name}: {error}"))?;
            return near::compare(self.dtype, bytes, &wanted)
                .map_err(|reason| format!("buffer {name}: {reason}"));
        }
        let Some(expect) = &self.expect else {
            return Ok(Agreement::default());
        };
        if expect.len() > self.elements {
            return Err(format!(
                "buffer {name}: {} expected values for {} elements",
                expect.len(),
                self.elements
            ));
        }
        for (at, (wanted, part)) in expect
            .iter()
            .zip(bytes.chunks_exact(self.dtype.bytes()))
            .enumerate()
        {
            let found = self.dtype.decode(part);
            // NaN is within no tolerance.
            if (found - wanted).abs() <= self.tolerance {
                continue;
            }
            return Err(format!("{name}[{at}] is {found}, not {wanted}"));
        }
        Ok(Agreement {
            compared: expect.len(),
            ..Agreement::default()
        })
    }
}

#[cfg(test)]
mod tests {
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

    fn outcome(json: &str) -> Result<String, String> {
        let description: Description =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        let module = Module::load(SCALE).map_err(|error| error.to_string())?;
        description
            .run(&module, How::default())
            .map(|outcome| outcome.agreement.to_string())
    }

    fn launch(changes: &[(&str, &str)]) -> String {
        let mut json = r#"{"kernel": "scale", "block": [4, 1, 1], "buffers": {"x": {"dtype": "f32", "elements": 4,
            "values": [1, 2, 3, 4], "expect": [2.5, 5, 7.5, 10]}}, "arguments": [{"buffer": "x"}, {"f32": 2.5}]}"#
            .to_owned();
        for (old, new) in changes {
            assert!(json.contains(old), "{old}");
            json = json.replace(old, new);
        }
        json
    }

    #[test]
    fn a_kernel_runs_and_is_compared() {
        assert_eq!(outcome(&launch(&[])).unwrap(), "4 values as expected");
        assert_eq!(
            outcome(&launch(&[("7.5", "7.25")])).unwrap_err(),
            "AtOnce: x[2] is 7.5, not 7.25"
        );
        assert_eq!(
            outcome(&launch(&[("\"expect\": [2.5, 5, 7.5, 10]", "\"fill\": 0")])).unwrap(),
            "nothing was compared"
        );
    }

    #[test]
    fn a_struct_is_laid_out_as_in_c() {
        let argument = r#"{"struct": [{"u8": 1}, {"u64": 2}, {"struct": [{"u8": 3}, {"i32": 4}]}, {"u8": 5}]}"#;
        let argument: Argument = serde_json::from_str(argument).unwrap();
        let bytes = argument.bytes(&BTreeMap::new(), &|_| 0).unwrap();
        let mut wanted = [0; 32];
        for (at, value) in [(0, 1), (8, 2), (16, 3), (20, 4), (24, 5)] {
            wanted[at] = value;
        }
        assert_eq!(bytes, wanted);
    }

    #[test]
    fn bytes_with_pointers_are_an_argument() {
        let raw = |hex: &str, at: usize| {
            let pointer = format!(r#"{{"at": {at}, "buffer": "x", "offset": 0}}"#);
            format!(r#"{{"raw": {{"hex": "{hex}", "pointers": [{pointer}]}}}}"#)
        };
        for (hex, at, words) in [
            ("0000000000000000", 0, "4 values as expected"),
            ("0000000000000000", 1, "a pointer at 1 of 8 bytes"),
            ("00", 0, "a pointer at 0 of 1 bytes"),
            ("0", 0, "is not bytes in hexadecimal"),
            ("g0", 0, "is not bytes in hexadecimal"),
        ] {
            let found = outcome(&launch(&[("{\"buffer\": \"x\"}", &raw(hex, at))]));
            let found = found.unwrap_or_else(|error| error);
            assert!(found.contains(words), "{found}");
        }
    }

    #[test]
    fn a_wrong_launch_is_one_sentence() {
        for (changes, words) in [
            (
                ("\"scale\"", "\"gone\""),
                "no such kernel in this module, which has scale",
            ),
            (
                ("[4, 1, 1]", "[5, 1, 1]"),
                "thread 4: out of bounds: 4 bytes at 16 of an allocation of 16",
            ),
            (("[4, 1, 1]", "[0, 1, 1]"), "blocks of [0, 1, 1] threads"),
            ((", {\"f32\": 2.5}", ""), "1 arguments for 2 parameters"),
            (
                ("{\"f32\": 2.5}", "{\"u64\": 3}"),
                "argument 2 has 8 bytes; the parameter has 4",
            ),
            (
                ("{\"buffer\": \"x\"}", "{\"buffer\": \"y\"}"),
                "argument 1: there is no buffer y",
            ),
            (
                ("\"elements\": 4", "\"elements\": 3"),
                "4 values for 3 elements",
            ),
            (("\"block\"", "\"blocks\""), "unknown field"),
            (
                (
                    "\"buffers\": {",
                    "\"buffers\": {\"x\": {\"dtype\": \"u8\", \"elements\": 1}, ",
                ),
                "duplicate buffer `x`",
            ),
            (
                ("\"f32\": 2.5", "\"u8\": 300"),
                "integer `300`, expected u8",
            ),
            (("\"f32\": 2.5", "\"half\": 2.5"), "unknown variant `half`"),
            (
                ("\"elements\": 4", "\"elements\": 18446744073709551615"),
                "bytes in all; 4294967296 are the most",
            ),
            (
                ("\"dtype\": \"f32\"", "\"dtype\": \"u8\", \"fill\": 256"),
                "256.0 is no value of its type",
            ),
            (
                (
                    "[4, 1, 1]",
                    "[4, 1, 1], \"dynamic_shared_bytes\": 4294967295",
                ),
                "bytes of shared memory per block; 232448 are the most",
            ),
            (
                ("[4, 1, 1]", "[4294967295, 4294967295, 4294967295]"),
                "threads per block; the kernel was compiled for 1024",
            ),
            (
                (
                    "[4, 1, 1]",
                    "[4, 1, 1], \"grid\": [4294967295, 65535, 65535]",
                ),
                "2^31 are the most",
            ),
            (
                ("[4, 1, 1]", "[4, 1, 1], \"grid\": [1, 65536, 1]"),
                "65535 are the most in y and z",
            ),
            (("[4, 1, 1]", "[1, 1, 65]"), "64 are the most in z"),
            (
                ("[4, 1, 1]", "[4, 1, 1], \"cluster\": [3, 1, 1]"),
                "is not a multiple of clusters of",
            ),
            (("\"kernel\": \"scale\",", ""), "missing field `kernel`"),
            (
                ("\"arguments\": [", "\"arguments\": ]"),
                "expected value at line",
            ),
        ] {
            let error = outcome(&launch(&[changes])).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }
}

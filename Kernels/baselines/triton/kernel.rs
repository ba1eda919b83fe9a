//! The kernels of an archive, and where their code is.

use serde::Deserialize;

use crate::TritonError;

/// A recipe's description of one kernel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Kernel {
    pub name: String,
    pub symbol: String,
    pub threads: u32,
    pub shared_bytes: u32,
    pub parameters: Vec<Parameter>,
    /// Blocks that share a row; 1 if a kernel does not split rows.
    #[serde(default = "one")]
    pub tiles: u32,
    offset: usize,
    bytes: usize,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Parameter {
    pub name: String,
    /// Triton's word: `*bf16`, `i32`, `fp32`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code was compiled assuming that the value is one.
    pub multiple_of_16: bool,
}

/// One archive: the kernels of a library for one architecture.
#[derive(Clone, Debug, Deserialize)]
pub struct Archive {
    pub library: String,
    pub version: String,
    pub triton: String,
    pub arch: String,
    kernels: Vec<Kernel>,
    /// What the library itself does not take, in an archive that was built on demand.
    #[serde(default)]
    pub refused: Vec<String>,
    /// Digest of an archive that was built on demand.
    #[serde(skip)]
    pub built_sha256: Option<String>,
    #[serde(skip)]
    code: &'static [u8],
}

impl Archive {
    pub fn parse(kernels: &str, code: &'static [u8]) -> Result<Self, TritonError> {
        let archive: Self = serde_json::from_str(kernels)
            .map_err(|error| TritonError::Archive(error.to_string()))?;
        let fits = |kernel: &Kernel| kernel.offset + kernel.bytes <= code.len();
        if let Some(kernel) = archive.kernels.iter().find(|kernel| !fits(kernel)) {
            let what = format!("the code of {} is beyond its end", kernel.name);
            return Err(TritonError::Archive(what));
        }
        Ok(Self { code, ..archive })
    }

    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    pub fn find(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The machine code of one of its kernels, or the PTX if the build is for the interpreter.
    pub fn code(&self, kernel: &Kernel) -> &'static [u8] {
        &self.code[kernel.offset..][..kernel.bytes]
    }
}

/// One argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// An address in device memory.
    Pointer(usize),
    I32(i32),
    F32(f32),
}

impl Kernel {
    /// The arguments for the driver: each in the low bytes of a word, followed by two null pointers,
    /// the scratch memory at the end of every Triton kernel's parameters, which these do not use.
    pub fn words(&self, arguments: &[Argument]) -> Result<Vec<u64>, TritonError> {
        let refused = |what: String| TritonError::Argument(format!("{}: {what}", self.name));
        if arguments.len() != self.parameters.len() {
            let (given, wanted) = (arguments.len(), self.parameters.len());
            return Err(refused(format!(
                "{given} arguments given, it takes {wanted}"
            )));
        }
        let mut words = Vec::with_capacity(arguments.len() + 2);
        for (argument, parameter) in arguments.iter().zip(&self.parameters) {
            let (word, fits) = match *argument {
                Argument::Pointer(address) => (address as u64, parameter.kind.starts_with('*')),
                Argument::I32(value) => (u64::from(value as u32), parameter.kind == "i32"),
                Argument::F32(value) => (u64::from(value.to_bits()), parameter.kind == "fp32"),
            };
            if !fits {
                let Parameter { name, kind, .. } = parameter;
                return Err(refused(format!("{name} is {argument:?}, it takes {kind}")));
            }
            if parameter.multiple_of_16 && word % 16 != 0 {
                let name = &parameter.name;
                return Err(refused(format!(
                    "{name} is {argument:?}; the code was compiled for multiples of 16"
                )));
            }
            words.push(word);
        }
        words.extend([0, 0]);
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: &str = r#"{"library": "l", "version": "1", "triton": "3", "arch": "sm_90a",
        "kernels": [{"name": "k", "op": "o", "symbol": "s", "threads": 128, "shared_bytes": 0,
            "num_stages": 3, "offset": 1, "bytes": 2, "parameters": [
                {"name": "p", "type": "*bf16", "multiple_of_16": true},
                {"name": "n", "type": "i32", "multiple_of_16": false},
                {"name": "f", "type": "fp32", "multiple_of_16": false}]}]}"#;

    #[test]
    fn kernels_are_found_with_their_code() {
        let archive = Archive::parse(KERNELS, &[1, 2, 3]).unwrap();
        let kernel = archive.find("k").unwrap();
        assert_eq!(archive.code(kernel), [2, 3]);
        assert!(archive.find("other").is_none());
        assert!(Archive::parse(KERNELS, &[1]).is_err());
        assert!(Archive::parse("{}", &[]).is_err());
    }

    #[test]
    fn arguments_are_what_the_code_was_compiled_for() {
        use Argument::{Pointer, F32, I32};
        let archive = Archive::parse(KERNELS, &[1, 2, 3]).unwrap();
        let kernel = archive.find("k").unwrap();
        let words = kernel.words(&[Pointer(32), I32(-1), F32(1.0)]).unwrap();
        assert_eq!(words, [32, 0xffff_ffff, 0x3f80_0000, 0, 0]);
        for wrong in [
            &[Pointer(32), I32(1)][..],
            &[Pointer(33), I32(1), F32(1.0)],
            &[I32(1), I32(1), F32(1.0)],
            &[Pointer(32), F32(1.0), F32(1.0)],
        ] {
            let message = kernel.words(wrong).unwrap_err().to_string();
            assert!(message.starts_with("k: "), "{message}");
        }
    }
}

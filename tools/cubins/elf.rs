//! The kernels of a cubin, which is an ELF file: machine code and resource usage.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// A kernel's fingerprint, without its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    pub name: String,
    /// Hash of its `.text` section.
    pub hash: String,
    /// The number after `sm_`; a cubin's header does not have the letter.
    pub arch: u32,
    pub registers: u32,
    pub barriers: u32,
    /// Static shared memory.
    pub shared_bytes: u64,
    /// Per thread, including spills.
    pub stack_bytes: u32,
}

/// ELF machine number of NVIDIA GPUs.
const MACHINE_CUDA: u16 = 190;
/// The section has a size but no bytes in the file.
const NO_BITS: u32 = 8;
/// From this ABI version on, the architecture is in the second byte of the header's flags.
const ABI_OF_SHIFTED_ARCH: u8 = 8;

/// Attributes of `.nv.info`, one value per symbol, and of `.nv.info.<kernel>`, a value instead of a size.
const REGISTERS: u8 = 0x2f;
const STACK: u8 = 0x12;
const BARRIERS: u8 = 0x4c;
/// The format of attributes with an explicit size.
const SIZED: u8 = 4;
const SYMBOL_BYTES: usize = 24;

struct Section<'a> {
    name: &'a str,
    bytes: &'a [u8],
    size: u64,
}

/// True for a cubin, false for every other file.
pub fn is_cubin(file: &[u8]) -> bool {
    file.starts_with(b"\x7fELF\x02\x01") && number(file, 18, 2) == Some(u64::from(MACHINE_CUDA))
}

/// Every kernel of a cubin. `None` if the file is truncated or inconsistent.
pub fn kernels(cubin: &[u8]) -> Option<Vec<Kernel>> {
    let sections = sections(cubin)?;
    let flags = number(cubin, 48, 4)?;
    let arch_at = if *cubin.get(8)? < ABI_OF_SHIFTED_ARCH {
        0
    } else {
        8
    };
    let arch = (flags >> arch_at) as u32 & 0xff;
    let find = |name: &str| sections.iter().find(|section| section.name == name);
    let bytes = |name: &str| find(name).map_or(&[][..], |section| section.bytes);
    let (symbols, names) = (bytes(".symtab"), bytes(".strtab"));
    let mut of_symbols = HashMap::new();
    for (attribute, _, value) in attributes(bytes(".nv.info"))? {
        if value.len() == 8 {
            // A symbol starts with the offset of its name.
            let symbol = number(value, 0, 4)? as usize * SYMBOL_BYTES;
            let name = string(names, number(symbols, symbol, 4)?)?;
            of_symbols.insert((attribute, name), number(value, 4, 4)? as u32);
        }
    }
    let mut found = Vec::new();
    for section in &sections {
        let Some(name) = section.name.strip_prefix(".text.") else {
            continue;
        };
        let barriers = attributes(bytes(&format!(".nv.info.{name}")))?
            .into_iter()
            .find(|(attribute, ..)| *attribute == BARRIERS)
            .map_or(0, |(_, count, _)| u32::from(count));
        let digest = Sha256::digest(section.bytes);
        found.push(Kernel {
            name: name.to_owned(),
            hash: digest[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            arch,
            registers: *of_symbols.get(&(REGISTERS, name))?,
            barriers,
            shared_bytes: find(&format!(".nv.shared.{name}")).map_or(0, |shared| shared.size),
            stack_bytes: of_symbols.get(&(STACK, name)).copied().unwrap_or(0),
        });
    }
    Some(found)
}

fn sections(file: &[u8]) -> Option<Vec<Section<'_>>> {
    let table = number(file, 40, 8)?;
    let (entry, count, strings) = (
        number(file, 58, 2)?,
        number(file, 60, 2)?,
        number(file, 62, 2)?,
    );
    let table = file.get(usize::try_from(table).ok()?..)?;
    let table = table.get(..entry as usize * count as usize)?;
    let field = |index: u64, at: u64, bytes| number(table, (index * entry + at) as usize, bytes);
    let bytes = |index| {
        if field(index, 4, 4)? == u64::from(NO_BITS) {
            return Some(&[][..]);
        }
        let start = usize::try_from(field(index, 24, 8)?).ok()?;
        file.get(start..start.checked_add(usize::try_from(field(index, 32, 8)?).ok()?)?)
    };
    let names = bytes(strings)?;
    (0..count)
        .map(|index| {
            Some(Section {
                name: string(names, field(index, 0, 4)?)?,
                bytes: bytes(index)?,
                size: field(index, 32, 8)?,
            })
        })
        .collect()
}

/// The attributes of an info section: a number, then either a value or a size and that many bytes.
fn attributes(mut info: &[u8]) -> Option<Vec<(u8, u16, &[u8])>> {
    let mut found = Vec::new();
    while let [format, attribute, low, high, rest @ ..] = info {
        let value = u16::from_le_bytes([*low, *high]);
        let size = if *format == SIZED {
            usize::from(value)
        } else {
            0
        };
        found.push((*attribute, value, rest.get(..size)?));
        info = &rest[size..];
    }
    info.is_empty().then_some(found)
}

/// A little-endian number of this many bytes.
fn number(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(count)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    )
}

fn string(table: &[u8], at: u64) -> Option<&str> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()
}

#[cfg(test)]
pub mod testing {
    /// A cubin for sm_90 with one kernel of that name and code: 40 registers, 16 bytes of stack, two barriers, and
    /// 1024 bytes of shared memory.
    pub fn cubin(kernel: &str, code: &[u8]) -> Vec<u8> {
        let mut symbols = vec![0; 24];
        symbols.extend([1].iter().chain(&[0; 23]));
        let infos = [4, super::REGISTERS, 8, 0, 1, 0, 0, 0, 40, 0, 0, 0]
            .into_iter()
            .chain([4, super::STACK, 8, 0, 1, 0, 0, 0, 16, 0, 0, 0])
            .collect();
        let sections: [(String, u32, Vec<u8>); 8] = [
            (String::new(), 0, Vec::new()),
            (".shstrtab".into(), 3, Vec::new()),
            (".strtab".into(), 3, format!("\0{kernel}\0").into_bytes()),
            (".symtab".into(), 2, symbols),
            (".nv.info".into(), 1, infos),
            (
                format!(".nv.info.{kernel}"),
                1,
                vec![2, super::BARRIERS, 2, 0],
            ),
            (format!(".text.{kernel}"), 1, code.to_vec()),
            (
                format!(".nv.shared.{kernel}"),
                super::NO_BITS,
                vec![0; 1024],
            ),
        ];
        let names: Vec<u8> = sections
            .iter()
            .flat_map(|(name, ..)| name.bytes().chain([0]))
            .collect();
        let (mut body, mut table, mut name) = (Vec::<u8>::new(), Vec::new(), 0_u32);
        for (section, kind, bytes) in &sections {
            let bytes = if section == ".shstrtab" {
                &names
            } else {
                bytes
            };
            let mut header = [0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            table.extend(header);
            name += section.len() as u32 + 1;
            if *kind != super::NO_BITS {
                body.extend(bytes);
            }
        }
        let mut file = b"\x7fELF\x02\x01\x01\x41\x08".to_vec();
        file.resize(64, 0);
        file[18] = super::MACHINE_CUDA as u8;
        file[40..48].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
        file[49] = 90;
        file[58] = 64;
        file[60] = sections.len() as u8;
        file[62] = 1;
        file.extend(body);
        file.extend(table);
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_read_with_what_it_takes() {
        let cubin = testing::cubin("product", b"machine code");
        assert!(is_cubin(&cubin));
        let kernels = kernels(&cubin).unwrap();
        let [kernel] = kernels.as_slice() else {
            panic!("{kernels:?}");
        };
        assert_eq!(kernel.name, "product");
        assert_eq!(kernel.hash.len(), 16);
        assert_eq!(
            (kernel.arch, kernel.registers, kernel.barriers),
            (90, 40, 2)
        );
        assert_eq!((kernel.shared_bytes, kernel.stack_bytes), (1024, 16));
    }

    #[test]
    fn the_hash_is_of_the_code_and_not_of_the_name() {
        let hash = |name, code| {
            kernels(&testing::cubin(name, code)).unwrap()[0]
                .hash
                .clone()
        };
        assert_eq!(hash("a", b"code"), hash("renamed", b"code"));
        assert_ne!(hash("a", b"code"), hash("a", b"node"));
    }

    #[test]
    fn a_file_that_breaks_off_is_no_cubin_with_fewer_kernels() {
        let cubin = testing::cubin("product", b"machine code");
        for length in 0..cubin.len() {
            assert_eq!(kernels(&cubin[..length]), None, "{length} bytes");
        }
    }
}

//! The container in which nvcc embeds device code: finds the PTX in it.

use std::ffi::c_void;

const WRAPPER: u32 = 0x4662_43b1;
const CONTAINER: u32 = 0xba55_ed50;
const PTX: u16 = 1;
/// Flags of an entry whose bytes are packed.
const COMPRESSED: u64 = 0x2000 | 0x8000;

#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    container: *const u8,
    unused: *const c_void,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part: [u8; N] = bytes.get(at..at + N)?.try_into().ok()?;
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(&part);
    Some(u64::from_le_bytes(wide))
}

/// The PTX texts of a container.
fn texts(bytes: &[u8], header: usize) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut at = header;
    while at < bytes.len() {
        let entry = || -> Option<(u16, usize, usize, u64)> {
            Some((
                number::<2>(bytes, at)? as u16,
                number::<4>(bytes, at + 4)? as usize,
                number::<8>(bytes, at + 8)? as usize,
                number::<8>(bytes, at + 40)?,
            ))
        };
        let Some((kind, head, size, flags)) = entry().filter(|(_, head, ..)| *head >= 64) else {
            return Err("an entry of a fat binary that cannot be read".to_owned());
        };
        let Some(data) = bytes.get(at + head..at + head + size) else {
            return Err("a fat binary that ends inside an entry".to_owned());
        };
        if kind == PTX {
            if flags & COMPRESSED != 0 {
                return Err("PTX that is compressed; compile with --no-compress".to_owned());
            }
            let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
            found.push(
                String::from_utf8(text.to_vec()).map_err(|_| "PTX that is not text".to_owned())?,
            );
        }
        at += head + size;
    }
    if found.is_empty() {
        return Err(
            "no PTX among the device code; compile with code=compute_90a or compute_100a"
                .to_owned(),
        );
    }
    Ok(found)
}

/// The PTX behind the pointer that an object registers.
///
/// # Safety
///
/// `wrapper` is what nvcc's own code passes to `__cudaRegisterFatBinary`.
pub unsafe fn read(wrapper: *const c_void) -> Result<Vec<String>, String> {
    // SAFETY: the caller's pointer is to such a struct.
    let wrapper = unsafe { &*wrapper.cast::<Wrapper>() };
    if wrapper.magic != WRAPPER || wrapper.version != 1 || wrapper.container.is_null() {
        return Err("not a fat binary".to_owned());
    }
    let _ = wrapper.unused;
    // SAFETY: a container begins with a header of 16 bytes, which says how long the rest is.
    let head = unsafe { std::slice::from_raw_parts(wrapper.container, 16) };
    let (Some(magic), Some(header), Some(size)) = (
        number::<4>(head, 0),
        number::<2>(head, 6),
        number::<8>(head, 8),
    ) else {
        return Err("not a fat binary".to_owned());
    };
    if magic != u64::from(CONTAINER) {
        return Err("not a fat binary".to_owned());
    }
    // SAFETY: as above.
    let bytes =
        unsafe { std::slice::from_raw_parts(wrapper.container, header as usize + size as usize) };
    texts(bytes, header as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, flags: u64, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[0..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(data.len() as u64).to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn ptx_is_found_beside_machine_code() {
        let mut bytes = entry(2, 0, b"\x7fELF....");
        bytes.extend(entry(PTX, 0, b".version 9.0\0\0\0\0"));
        assert_eq!(texts(&bytes, 0).unwrap(), [".version 9.0"]);
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        assert!(texts(&entry(2, 0, b"\x7fELF"), 0)
            .unwrap_err()
            .contains("no PTX"));
        assert!(texts(&entry(PTX, 0x2000, b"...."), 0)
            .unwrap_err()
            .contains("compress"));
        assert!(texts(&entry(PTX, 0, b"....")[..66], 0)
            .unwrap_err()
            .contains("ends"));
        assert!(texts(&[1, 2, 3], 0).unwrap_err().contains("read"));
    }
}

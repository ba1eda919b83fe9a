//! Memory that another process can map: for contenders that run in a process of their own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::rc::Rc;

/// A file without a name, mapped. Its size cannot be changed, so that nobody who maps it can take pages away from the
/// others.
pub struct SharedMapping {
    /// Whoever made it can share it; whoever it was shared with keeps nothing but the memory.
    file: Option<OwnedFd>,
    address: usize,
    bytes: usize,
}

impl SharedMapping {
    /// Zeros.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let file = file_without_name()?;
        // SAFETY: sizes and seals a file that is ours.
        let sealed = unsafe {
            libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) == 0
                && libc::fcntl(
                    file.as_raw_fd(),
                    libc::F_ADD_SEALS,
                    libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL,
                ) == 0
        };
        if !sealed {
            return Err(io::Error::last_os_error());
        }
        let mut mapping = Self::of_file(file.try_clone()?, bytes)?;
        mapping.file = Some(file);
        Ok(mapping)
    }

    /// The memory of a file that another process made. The file is closed.
    pub fn of_file(file: OwnedFd, bytes: usize) -> io::Result<Self> {
        // SAFETY: maps at a place that the kernel chooses.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = address as usize;
        Ok(Self {
            file: None,
            address,
            bytes,
        })
    }

    /// A multiple of the page size.
    pub fn address(&self) -> usize {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// To share it; none if it was shared with this process.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of_file`, once.
        unsafe { libc::munmap(self.address as *mut libc::c_void, self.bytes.max(1)) };
    }
}

/// An empty file that ends with its last descriptor.
pub fn file_without_name() -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero; the descriptor is nobody else's.
    unsafe {
        let file = libc::memfd_create(
            c"head-to-head".as_ptr(),
            libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
        );
        match file {
            -1 => Err(io::Error::last_os_error()),
            file => Ok(OwnedFd::from_raw_fd(file)),
        }
    }
}

thread_local! {
    /// A device belongs to the thread that opened it, and so does its memory.
    static MAPPINGS: RefCell<BTreeMap<usize, Rc<SharedMapping>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The mapping that an address of this thread's device is in, if another process can map it.
pub fn shared_at(address: usize) -> Option<Rc<SharedMapping>> {
    MAPPINGS.with_borrow(|mappings| {
        let (start, mapping) = mappings.range(..=address).next_back()?;
        (address - start < mapping.bytes()).then(|| mapping.clone())
    })
}

/// Makes a mapping that `shared_at` finds until it is removed.
pub(crate) fn add(bytes: usize) -> io::Result<usize> {
    let mapping = SharedMapping::new(bytes)?;
    let address = mapping.address();
    MAPPINGS.with_borrow_mut(|mappings| mappings.insert(address, Rc::new(mapping)));
    Ok(address)
}

pub(crate) fn remove(address: usize) {
    MAPPINGS.with_borrow_mut(|mappings| mappings.remove(&address));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_mappings_of_a_file_show_the_same_bytes_and_nobody_can_shrink_it() {
        let first = SharedMapping::new(5000).unwrap();
        let file = first.file().unwrap().try_clone_to_owned().unwrap();
        // SAFETY: sizes a file; it must not work.
        assert_eq!(unsafe { libc::ftruncate(file.as_raw_fd(), 0) }, -1);
        let second = SharedMapping::of_file(file, 5000).unwrap();
        assert!(second.file().is_none());
        // SAFETY: both are mapped, and 4999 is inside.
        unsafe {
            *((first.address() + 4999) as *mut u8) = 7;
            assert_eq!(*((second.address() + 4999) as *const u8), 7);
        }
    }

    #[test]
    fn addresses_find_their_mapping_while_it_lives() {
        let address = add(8192).unwrap();
        assert_eq!(shared_at(address + 8191).unwrap().address(), address);
        assert!(shared_at(address - 1).is_none_or(|other| other.address() != address));
        remove(address);
        assert!(shared_at(address).is_none());
    }
}

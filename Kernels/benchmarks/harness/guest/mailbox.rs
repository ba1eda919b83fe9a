//! The page through which a guest is called: a few words that both sides watch.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use device::SharedMapping;

pub const BYTES: usize = 4096;

/// The guest watches for `GO`.
pub const READY: u32 = 1;
/// The handle is to be called.
pub const GO: u32 = 2;
/// It has been.
pub const DONE: u32 = 3;

/// A call that does nothing, to learn what calling costs.
pub const NOTHING: u32 = u32::MAX;

#[repr(C)]
struct Page {
    state: AtomicU32,
    handle: AtomicU32,
    status: AtomicI32,
}

pub struct Mailbox(SharedMapping);

impl Mailbox {
    pub fn new() -> io::Result<Self> {
        Ok(Self(SharedMapping::new(BYTES)?))
    }

    pub fn of_file(file: OwnedFd) -> io::Result<Self> {
        Ok(Self(SharedMapping::of_file(file, BYTES)?))
    }

    /// The owner's: to share it.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.0.file()
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped, large enough, aligned to a page, and zero is a value of every field. Both processes use
        // atomics only.
        unsafe { &*(self.0.address() as *const Page) }
    }

    pub fn state(&self) -> u32 {
        self.page().state.load(Ordering::Acquire)
    }

    pub fn set_state(&self, state: u32) {
        self.page().state.store(state, Ordering::Release);
    }

    /// The owner's: what to call next.
    pub fn post(&self, handle: u32) {
        self.page().handle.store(handle, Ordering::Relaxed);
        self.set_state(GO);
    }

    pub fn handle(&self) -> u32 {
        self.page().handle.load(Ordering::Relaxed)
    }

    /// The guest's: how the call ended.
    pub fn finish(&self, status: i32) {
        self.page().status.store(status, Ordering::Relaxed);
        self.set_state(DONE);
    }

    pub fn status(&self) -> i32 {
        self.page().status.load(Ordering::Relaxed)
    }
}

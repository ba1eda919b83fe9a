//! Global memory: the process's own, of which a kernel may touch what was given to it.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// What kernels may touch: exact ends, and what was freed.
#[derive(Debug, Default)]
pub struct Allocations {
    live: Mutex<BTreeMap<u64, u64>>,
    freed: Mutex<BTreeMap<u64, u64>>,
}

impl Allocations {
    /// Lets kernels touch `bytes` from `address` on.
    ///
    /// # Safety
    ///
    /// The memory stays valid, for reads and writes from any thread, until it is withdrawn, and is
    /// borrowed by nobody while a kernel runs.
    pub unsafe fn allow(&self, address: u64, bytes: u64) {
        lock(&self.freed)
            .retain(|start, size| start + *size <= address || address + bytes <= *start);
        lock(&self.live).insert(address, bytes);
    }

    /// False where nothing begins there.
    pub fn withdraw(&self, address: u64) -> bool {
        match lock(&self.live).remove(&address) {
            Some(bytes) => {
                lock(&self.freed).insert(address, bytes);
                true
            }
            None => false,
        }
    }

    /// Whether all of it may be touched.
    pub fn covers(&self, address: u64, bytes: u64) -> bool {
        let live = lock(&self.live);
        let below = live.range(..=address).next_back();
        below.is_some_and(|(start, size)| address + bytes <= start + size)
    }

    /// Start and bytes of the allocation that an address lies in.
    pub fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let live = lock(&self.live);
        let (start, bytes) = live.range(..=address).next_back()?;
        (address < start + bytes).then_some((*start, *bytes))
    }

    pub(crate) fn view(&self, also: &[(u64, u64)]) -> View {
        let mut live = lock(&self.live).clone();
        live.extend(also.iter().copied());
        let freed = lock(&self.freed).clone();
        View {
            live: live
                .into_iter()
                .map(|(start, bytes)| (start, start + bytes))
                .collect(),
            freed,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The allocations as they are while a kernel runs.
#[derive(Debug)]
pub struct View {
    live: Vec<(u64, u64)>,
    freed: BTreeMap<u64, u64>,
}

/// The allocation that was found last: most accesses fall into it again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent(u64, u64);

/// # Safety
///
/// A view has checked the range, whoever allowed it keeps it valid for any thread, and the address is aligned.
#[inline(always)]
pub unsafe fn get(address: u64, bytes: u32) -> u64 {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(address as *mut u8)
                .load(Ordering::Relaxed)
                .into(),
            2 => AtomicU16::from_ptr(address as *mut u16)
                .load(Ordering::Relaxed)
                .into(),
            4 => AtomicU32::from_ptr(address as *mut u32)
                .load(Ordering::Acquire)
                .into(),
            _ => AtomicU64::from_ptr(address as *mut u64).load(Ordering::Acquire),
        }
    }
}

/// # Safety
///
/// As for `get`.
#[inline(always)]
pub unsafe fn put(address: u64, bytes: u32, value: u64) {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(address as *mut u8).store(value as u8, Ordering::Relaxed),
            2 => AtomicU16::from_ptr(address as *mut u16).store(value as u16, Ordering::Relaxed),
            4 => AtomicU32::from_ptr(address as *mut u32).store(value as u32, Ordering::Release),
            _ => AtomicU64::from_ptr(address as *mut u64).store(value, Ordering::Release),
        }
    }
}

impl View {
    #[inline]
    pub fn check(&self, recent: &mut Recent, address: u64, bytes: u64) -> Result<(), String> {
        if address >= recent.0 && address.saturating_add(bytes) <= recent.1 {
            return Ok(());
        }
        self.find(recent, address, bytes)
    }

    #[cold]
    fn find(&self, recent: &mut Recent, address: u64, bytes: u64) -> Result<(), String> {
        let after = self.live.partition_point(|(start, _)| *start <= address);
        let below = after.checked_sub(1).map(|at| self.live[at]);
        if let Some((start, end)) = below {
            if address.saturating_add(bytes) <= end {
                *recent = Recent(start, end);
                return Ok(());
            }
        }
        let freed = self.freed.range(..=address).next_back();
        if let Some((start, size)) = freed.filter(|(start, size)| address < *start + **size) {
            return Err(format!(
                "{bytes} bytes at {} of {size} that were freed",
                address - start
            ));
        }
        Err(match below {
            Some((start, end)) if address < end + (1 << 20) => {
                format!(
                    "out of bounds: {bytes} bytes at {} of an allocation of {}",
                    address - start,
                    end - start
                )
            }
            _ => format!("out of bounds: {bytes} bytes at {address:#x}, which is in no allocation"),
        })
    }

    /// An aligned value of 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn load(&self, recent: &mut Recent, address: u64, bytes: u32) -> Result<u64, String> {
        self.check(recent, address, bytes.into())?;
        // SAFETY: it was checked, and is aligned.
        Ok(unsafe { get(address, bytes) })
    }

    #[inline]
    pub fn store(
        &self,
        recent: &mut Recent,
        address: u64,
        bytes: u32,
        value: u64,
    ) -> Result<(), String> {
        self.check(recent, address, bytes.into())?;
        // SAFETY: as above.
        unsafe { put(address, bytes, value) };
        Ok(())
    }

    /// Replaces a value of 4 or 8 bytes by what `change` makes of it, and returns the old one.
    pub fn update(
        &self,
        recent: &mut Recent,
        address: u64,
        bytes: u32,
        change: impl Fn(u64) -> u64,
    ) -> Result<u64, String> {
        self.check(recent, address, bytes.into())?;
        let order = Ordering::SeqCst;
        // SAFETY: as above.
        let old = unsafe {
            match bytes {
                2 => AtomicU16::from_ptr(address as *mut u16)
                    .fetch_update(order, order, |old| Some(change(old.into()) as u16))
                    .map(u64::from)
                    .unwrap_or_else(u64::from),
                4 => AtomicU32::from_ptr(address as *mut u32)
                    .fetch_update(order, order, |old| Some(change(old.into()) as u32))
                    .map(u64::from)
                    .unwrap_or_else(u64::from),
                _ => AtomicU64::from_ptr(address as *mut u64)
                    .fetch_update(order, order, |old| Some(change(old)))
                    .unwrap_or_else(|old| old),
            }
        };
        Ok(old)
    }

    /// Bytes for a bulk copy.
    pub fn read(&self, recent: &mut Recent, address: u64, to: &mut [u8]) -> Result<(), String> {
        self.check(recent, address, to.len() as u64)?;
        // SAFETY: the range is valid and `to` is the caller's own.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    pub fn write(&self, recent: &mut Recent, address: u64, from: &[u8]) -> Result<(), String> {
        self.check(recent, address, from.len() as u64)?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) };
        Ok(())
    }
}

/// Memory for kernels, aligned as a GPU's allocations are, and freed on drop.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a block is reached through its address alone, by whoever was told it; copies in and out are the caller's to
// order with launches, which end before they return.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

const ALIGN: usize = 256;

impl Block {
    fn layout(bytes: usize) -> Layout {
        match Layout::from_size_align(bytes.max(1), ALIGN) {
            Ok(layout) => layout,
            Err(_) => panic!("{bytes} bytes are more than an address space holds"),
        }
    }

    /// # Panics
    ///
    /// Where there is no memory left.
    pub fn filled(bytes: usize, value: u8) -> Self {
        let layout = Self::layout(bytes);
        // SAFETY: the layout is not empty.
        let Some(start) = NonNull::new(unsafe { std::alloc::alloc(layout) }) else {
            std::alloc::handle_alloc_error(layout)
        };
        // SAFETY: that many bytes were allocated.
        unsafe { start.write_bytes(value, bytes) };
        Self { start, bytes }
    }

    pub fn from_bytes(from: &[u8]) -> Self {
        let block = Self::filled(from.len(), 0);
        // SAFETY: both are that long, and the block is nobody else's yet.
        unsafe {
            block
                .start
                .copy_from_nonoverlapping(NonNull::from(from).cast(), from.len())
        };
        block
    }

    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub fn range(&self) -> (u64, u64) {
        (self.address(), self.bytes as u64)
    }

    /// A copy of its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // SAFETY: that many bytes are there, and no launch runs that was told of them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }.to_vec()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
    }
}

//! The guest's side: a process that loads one library and calls it when told to.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use device::SharedMapping;

use crate::answers::AnswerLibrary;
use crate::library::{Library, Work};
use crate::mailbox::{Mailbox, GO, NOTHING, READY};
use crate::message::{receive_with_file, send, Kind, Reply, Request};
use crate::sandbox;
use crate::statement::{Passed, Statement};

/// The only argument of a guest.
pub const ARGUMENT: &str = "--guest";

/// What is loaded.
enum Loaded {
    Contender(Library),
    Oracle(AnswerLibrary),
}

/// Everything that a guest has.
struct Room {
    loaded: Loaded,
    mailbox: Mailbox,
    works: BTreeMap<u32, Bound>,
    next: u32,
}

struct Bound {
    work: Bindings,
    /// An address in each page of its tensors, in as many as are worth it.
    pages: Vec<usize>,
    _memory: SharedMapping,
}

/// What tensors are bound to.
enum Bindings {
    Work(Work),
    Asked(Passed),
}

/// Looking up more would take longer than it saves.
const PAGES_MOST: usize = 256;
const PAGE_BYTES: usize = 4096;

/// A contender in the worker's process finds the translations of its addresses where the worker's flush has left
/// them, in the core; a process that has rested does not. This looks one up the same way, without its data.
fn find(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a line of a live mapping; clflush is SSE2, which x86-64 always has.
    unsafe {
        std::arch::x86_64::_mm_clflush(address as *const u8)
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Serves the owner on standard input until it ends.
pub fn serve() -> ExitCode {
    // SAFETY: nothing here has opened anything yet; whatever was inherited is not for a stranger.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    // SAFETY: standard input belongs to this function alone.
    let mut socket = unsafe { UnixStream::from(OwnedFd::from_raw_fd(0)) };
    if socket.peer_addr().is_err() {
        eprintln!("{ARGUMENT} is internal: only the worker uses it");
        return ExitCode::from(2);
    }
    let Ok((request, Some(file))) = receive_with_file(&mut socket) else {
        return ExitCode::FAILURE;
    };
    let mut room = match enter(&request, file) {
        Ok((room, reply)) => match send(&mut socket, &reply, None) {
            Ok(()) => room,
            Err(_) => return ExitCode::FAILURE,
        },
        Err(reason) => {
            // The owner may be gone; there is nobody else to tell.
            let _ = send(&mut socket, &Reply::Failed(reason), None);
            return ExitCode::FAILURE;
        }
    };
    while let Ok((request, file)) = receive_with_file(&mut socket) {
        if let Some(reply) = room.answer(request, file) {
            if send(&mut socket, &reply, None).is_err() {
                break;
            }
        }
    }
    // The owner has ended; what the library would do at exit is nobody's business.
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}

fn enter(request: &Request, file: OwnedFd) -> Result<(Room, Reply), String> {
    let Request::Load {
        path,
        kind,
        memory_bytes,
    } = request
    else {
        return Err("was not told what to load".into());
    };
    let failed = |error: io::Error| format!("cannot be kept apart: {error}");
    let mailbox = Mailbox::of_file(file).map_err(failed)?;
    let path = Path::new(path);
    let layers = sandbox::enter(path, *memory_bytes).map_err(failed)?;
    let loaded = match kind {
        Kind::Contender => Loaded::Contender(Library::open(path)?),
        Kind::Oracle => Loaded::Oracle(AnswerLibrary::open(path)?),
    };
    let (name, version) = match &loaded {
        Loaded::Contender(library) => (&library.name, &library.version),
        Loaded::Oracle(library) => (&library.name, &library.version),
    };
    let reply = Reply::Loaded {
        name: name.clone(),
        version: version.clone(),
        layers,
    };
    let room = Room {
        loaded,
        mailbox,
        works: BTreeMap::new(),
        next: 0,
    };
    Ok((room, reply))
}

impl Loaded {
    fn bind(&self, statement: &Statement, addresses: &[usize]) -> Result<Bindings, String> {
        match self {
            Loaded::Contender(library) => library.bind(statement, addresses).map(Bindings::Work),
            Loaded::Oracle(library) => library.bind(statement, addresses).map(Bindings::Asked),
        }
    }
}

impl Room {
    fn answer(&mut self, request: Request, file: Option<OwnedFd>) -> Option<Reply> {
        Some(match request {
            Request::Arm(handle) => {
                if let Some(bound) = self.works.get(&handle) {
                    bound.pages.iter().for_each(|page| find(*page));
                }
                self.call();
                return None;
            }
            Request::Supports(statement) => match &self.loaded {
                Loaded::Contender(library) => Reply::Supported(library.obstacle(&statement)),
                Loaded::Oracle(_) => Reply::Failed("is an oracle, not a contender".into()),
            },
            Request::Answer {
                handle,
                unit,
                units,
            } => {
                let bound = self.works.get(&handle).map(|bound| &bound.work);
                match (&self.loaded, bound) {
                    (Loaded::Oracle(library), Some(Bindings::Asked(passed))) => {
                        let answered = library.answer(passed, unit, units);
                        answered.map_or_else(Reply::Failed, |()| Reply::Answered)
                    }
                    _ => Reply::Failed("was asked about tensors that it does not have".into()),
                }
            }
            Request::Bind {
                statement,
                places,
                bytes,
            } => {
                let memory = match file.map(|file| SharedMapping::of_file(file, bytes)) {
                    Some(Ok(memory)) => memory,
                    Some(Err(error)) => return Some(Reply::Failed(error.to_string())),
                    None => return Some(Reply::Failed("got no memory to bind to".into())),
                };
                let place = |place: &usize| memory.address() + place;
                let addresses: Vec<usize> = places.iter().map(place).collect();
                match self.loaded.bind(&statement, &addresses) {
                    Ok(work) => {
                        let handle = self.next;
                        self.next += 1;
                        let tensors = addresses.iter().zip(&statement.tensors);
                        let pages = tensors.flat_map(|(address, tensor)| {
                            (*address..address + tensor.bytes()).step_by(PAGE_BYTES)
                        });
                        let bound = Bound {
                            work,
                            pages: pages.take(PAGES_MOST).collect(),
                            _memory: memory,
                        };
                        self.works.insert(handle, bound);
                        Reply::Bound(handle)
                    }
                    Err(reason) => Reply::Failed(reason),
                }
            }
            Request::Facts(handle) => {
                match (&self.loaded, self.works.get(&handle).map(|it| &it.work)) {
                    (Loaded::Contender(library), Some(Bindings::Work(work))) => {
                        Reply::Facts(library.facts(work))
                    }
                    _ => Reply::Failed("was asked about work that it does not have".into()),
                }
            }
            Request::Destroy(handle) => {
                let work = self.works.remove(&handle).map(|bound| bound.work);
                if let (Loaded::Contender(library), Some(Bindings::Work(work))) =
                    (&self.loaded, work)
                {
                    library.destroy(work);
                }
                Reply::Destroyed
            }
            Request::Load { .. } => Reply::Failed("was told to load twice".into()),
        })
    }

    /// One call, from the moment that the owner says so.
    fn call(&mut self) {
        self.mailbox.set_state(READY);
        let mut spins = 0u32;
        while self.mailbox.state() != GO {
            // The owner may be waiting for this very core.
            spins += 1;
            match spins > 500 {
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
        let handle = self.mailbox.handle();
        let work = self.works.get(&handle).map(|bound| &bound.work);
        let status = match (&self.loaded, work) {
            _ if handle == NOTHING => 0,
            (Loaded::Contender(library), Some(Bindings::Work(work))) => {
                library.enqueue(work, 0).err().unwrap_or(0)
            }
            _ => -1,
        };
        self.mailbox.finish(status);
    }
}

//! A stranger's library as a contender like any other.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use contender::{
    Binding, Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity,
    Kind, Problem, Stream, Support,
};
use contender_abi as abi;
use device::{SharedMapping, Watch};
use serde_json::{json, Value};

use crate::library::{Library, Work};
use crate::message::{Reply, Request};
use crate::process::Process;
use crate::source::{Source, SourceError};
use crate::statement::Statement;

pub struct Guest {
    identity: Identity,
    source: Source,
    /// Absolute: a guest need not have this program's folder.
    path: String,
    /// Instead of a file.
    linked: Option<Rc<Library>>,
    /// What `supports` has prepared for `bind`: the library of the problem at hand, or why there is none.
    ready: RefCell<Option<Result<Ready, ContenderError>>>,
}

#[derive(Clone)]
enum Ready {
    Apart(Rc<RefCell<Process>>),
    Inside(Rc<Library>),
}

impl Guest {
    /// Reads the file for its digest, but loads nothing.
    pub fn new(source: Source) -> Result<Self, SourceError> {
        let sha256 = source.sha256()?;
        let path = source.path.canonicalize();
        let path = path.unwrap_or_else(|_| source.path.clone());
        let identity = Identity {
            version: format!("sha256 {}", &sha256[..12]),
            artifact_sha256: Some(sha256),
            ..Identity::in_tree(&source.name, Kind::Own, "its enqueue()")
        };
        Ok(Self {
            identity,
            path: path.to_string_lossy().into_owned(),
            source,
            linked: None,
            ready: RefCell::default(),
        })
    }

    /// A library that is linked into this program, whose kernels may be PTX: so that the interpreter, which takes the
    /// place of the program's CUDA runtime, can run it.
    ///
    /// # Safety
    /// The function is as `contender.h` has it.
    pub unsafe fn linked(name: &str, library: abi::Library) -> Result<Self, String> {
        // SAFETY: the caller's.
        let library = unsafe { Library::linked(library) }?;
        Ok(Self {
            identity: Identity::in_tree(name, Kind::Own, "its enqueue()"),
            source: Source {
                name: name.to_owned(),
                path: Default::default(),
                options: String::new(),
            },
            path: String::new(),
            linked: Some(Rc::new(library)),
            ready: RefCell::default(),
        })
    }

    fn prepare(&self, device: &DeviceInfo) -> Result<Ready, ContenderError> {
        if let Some(library) = &self.linked {
            return Ok(Ready::Inside(library.clone()));
        }
        Ok(match device.kind {
            DeviceKind::Cpu => {
                let process = Process::start(&self.path, device.memory_bytes)?;
                Ready::Apart(Rc::new(RefCell::new(process)))
            }
            DeviceKind::Cuda | DeviceKind::Ptx => {
                let library = Library::open(self.path.as_ref()).map_err(ContenderError)?;
                Ready::Inside(Rc::new(library))
            }
        })
    }

    fn obstacle(
        &self,
        problem: &dyn Problem,
        device: &DeviceInfo,
    ) -> Result<Option<String>, ContenderError> {
        // A process of its own for every problem.
        let ready = self.ready.replace(None);
        drop(ready);
        let ready = self.prepare(device)?;
        let statement = Statement::new(problem, device, &self.source.options);
        let obstacle = match &ready {
            Ready::Inside(library) => library.obstacle(&statement),
            Ready::Apart(process) => {
                let what = "being asked what it supports";
                match process
                    .borrow_mut()
                    .ask(&Request::Supports(statement), None, what)?
                {
                    Reply::Supported(obstacle) => obstacle,
                    other => return Err(strange(&other)),
                }
            }
        };
        *self.ready.borrow_mut() = Some(Ok(ready));
        Ok(obstacle)
    }
}

fn strange(reply: &Reply) -> ContenderError {
    ContenderError(format!("gave an answer to another question: {reply:?}"))
}

impl Contender<dyn Problem> for Guest {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// One that cannot be asked is not unsupported but broken: binding then says why.
    fn supports(&self, problem: &dyn Problem, device: &DeviceInfo) -> Support {
        let obstacle = device.obstacle_to_machine_code();
        if let Some(obstacle) = obstacle.filter(|_| self.linked.is_none()) {
            return Support::No(obstacle);
        }
        match self.obstacle(problem, device) {
            Ok(None) => Support::Yes,
            Ok(Some(reason)) => Support::No(reason),
            Err(error) => {
                *self.ready.borrow_mut() = Some(Err(error));
                Support::Yes
            }
        }
    }

    fn has_own_buffers(&self, device: &DeviceInfo) -> bool {
        device.kind == DeviceKind::Cpu
    }

    fn bind(&self, problem: &dyn Problem, buffers: &[Buffer], device: &DeviceInfo) -> Binding {
        let ready = self.ready.borrow().clone();
        let ready = match ready {
            Some(ready) => ready?,
            None => self.prepare(device)?,
        };
        *self.ready.borrow_mut() = Some(Ok(ready.clone()));
        let statement = Statement::new(problem, device, &self.source.options);
        match ready {
            Ready::Apart(process) => bind_apart(process, problem, statement, buffers),
            Ready::Inside(library) => {
                let addresses: Vec<usize> = buffers.iter().map(|buffer| buffer.address).collect();
                let work = library
                    .bind(&statement, &addresses)
                    .map_err(ContenderError)?;
                Ok(Box::new(Inside {
                    library,
                    statement,
                    addresses,
                    work: Some(work),
                }))
            }
        }
    }
}

/// Work in a process of its own.
struct Apart {
    process: Rc<RefCell<Process>>,
    /// To be bound, and the memory that it is bound to.
    request: Request,
    memory: Rc<SharedMapping>,
    handle: u32,
    watch: Watch,
    elapsed: Option<Duration>,
    /// Inputs of the next call.
    withheld: Vec<(Buffer, Vec<u8>)>,
}

fn bind_apart(
    process: Rc<RefCell<Process>>,
    problem: &dyn Problem,
    statement: Statement,
    buffers: &[Buffer],
) -> Binding {
    let first = buffers.first().map_or(0, |buffer| buffer.address);
    let memory = device::shared_at(first).ok_or_else(|| {
        ContenderError::new("its tensors are in memory that no other process can map")
    })?;
    let place = |buffer: &Buffer| {
        let place = buffer.address.checked_sub(memory.address());
        place.filter(|place| place + buffer.bytes <= memory.bytes())
    };
    let places: Option<Vec<usize>> = buffers.iter().map(place).collect();
    let request = Request::Bind {
        statement,
        places: places.ok_or_else(|| ContenderError::new("its tensors are not in one piece"))?,
        bytes: memory.bytes(),
    };
    let handle = handle_of(&process, &request, &memory)?;
    let tensors = problem.tensors().iter().zip(buffers);
    let outputs = tensors.filter(|(spec, _)| spec.role.is_written());
    Ok(Box::new(Apart {
        process,
        request,
        memory,
        handle,
        watch: Watch::new(outputs.map(|(_, buffer)| *buffer).collect()),
        elapsed: None,
        withheld: Vec::new(),
    }))
}

/// Has a process bind.
fn handle_of(
    process: &RefCell<Process>,
    request: &Request,
    memory: &SharedMapping,
) -> Result<u32, ContenderError> {
    let mut process = process.borrow_mut();
    match process.ask(request, memory.file(), "binding")? {
        Reply::Bound(handle) => Ok(handle),
        other => Err(strange(&other)),
    }
}

impl Apart {
    fn destroy(&self) {
        // One that has died has destroyed everything already.
        let request = Request::Destroy(self.handle);
        let _ = self
            .process
            .borrow_mut()
            .ask(&request, None, "being destroyed");
    }
}

impl Bound for Apart {
    fn enqueue(&mut self, _: Stream) -> Result<(), ContenderError> {
        self.elapsed = None;
        let (process, watch) = (&self.process, &mut self.watch);
        let withheld = std::mem::take(&mut self.withheld);
        let elapsed = process.borrow_mut().call(
            self.handle,
            &mut || withheld.iter().for_each(|(to, bytes)| put(*to, bytes)),
            &mut || watch.look(),
        )?;
        if watch.has_changed() {
            return Err(ContenderError::new(
                "wrote to its outputs after its call had ended",
            ));
        }
        self.elapsed = Some(elapsed);
        Ok(())
    }

    fn elapsed(&self) -> Option<Duration> {
        self.elapsed
    }

    fn deliver(&mut self, inputs: &[(Buffer, Vec<u8>)]) -> bool {
        self.withheld = inputs.to_vec();
        true
    }

    /// Binds anew.
    fn reread(&mut self) -> Result<(), ContenderError> {
        self.destroy();
        self.handle = handle_of(&self.process, &self.request, &self.memory)?;
        Ok(())
    }

    fn facts(&self) -> Facts {
        let mut process = self.process.borrow_mut();
        let says = match process.ask(&Request::Facts(self.handle), None, "being asked for facts") {
            Ok(Reply::Facts(facts)) => facts,
            Ok(other) => json!(strange(&other).0),
            Err(error) => json!(error.0),
        };
        let mut facts = Facts::from([
            ("isolation".into(), json!(process.layers)),
            (
                "call_overhead_us".into(),
                json!(process.overhead.as_secs_f64() * 1e6),
            ),
        ]);
        facts.extend(described(&process.name, &process.version, says));
        if let Some(printed) = process.printed() {
            facts.insert("printed".into(), json!(printed));
        }
        facts
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// Writes a tensor, past the cache where that is possible: there it would be warmer, or colder, than usual.
fn put(to: Buffer, bytes: &[u8]) {
    let words = bytes.chunks_exact(8);
    let (whole, rest) = (8 * words.len(), words.remainder());
    for (place, word) in words.enumerate() {
        let word = i64::from_ne_bytes(word.try_into().expect("eight bytes"));
        let address = (to.address + 8 * place) as *mut i64;
        // SAFETY: inside of a live tensor, which begins at a multiple of 256.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            std::arch::x86_64::_mm_stream_si64(address, word);
            #[cfg(not(target_arch = "x86_64"))]
            address.write_volatile(word);
        }
    }
    for (place, byte) in rest.iter().enumerate() {
        // SAFETY: as above.
        unsafe { ((to.address + whole + place) as *mut u8).write_volatile(*byte) };
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2, which x86-64 always has. What follows is seen after what was streamed.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Work in this process.
struct Inside {
    library: Rc<Library>,
    statement: Statement,
    addresses: Vec<usize>,
    /// Until it is destroyed.
    work: Option<Work>,
}

impl Bound for Inside {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        let work = self
            .work
            .as_ref()
            .ok_or_else(|| ContenderError::new("has been destroyed"))?;
        let code = self.library.enqueue(work, stream);
        code.map_err(|code| ContenderError(format!("enqueue() returned {code}")))
    }

    /// Binds anew.
    fn reread(&mut self) -> Result<(), ContenderError> {
        if let Some(work) = self.work.take() {
            self.library.destroy(work);
        }
        let work = self.library.bind(&self.statement, &self.addresses);
        self.work = Some(work.map_err(ContenderError)?);
        Ok(())
    }

    fn facts(&self) -> Facts {
        let says = self
            .work
            .as_ref()
            .map_or(Value::Null, |work| self.library.facts(work));
        let mut facts = described(&self.library.name, &self.library.version, says);
        let none = "none: loaded into the process that measures";
        facts.insert("isolation".into(), json!([none]));
        facts
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.library.destroy(work);
        }
    }
}

/// What the library says of itself, apart from what the harness knows.
fn described(name: &str, version: &str, says: Value) -> Facts {
    Facts::from([(
        "library".into(),
        json!({"name": name, "version": version, "says": says}),
    )])
}

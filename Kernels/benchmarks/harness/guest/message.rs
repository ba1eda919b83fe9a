//! What owner and guest say to each other outside of timed calls: JSON with its length in front, and files.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::statement::Statement;

/// What a library is loaded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Contender,
    Oracle,
}

/// Owner to guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// With the mailbox.
    Load {
        path: String,
        kind: Kind,
        memory_bytes: u64,
    },
    Supports(Statement),
    /// With the memory, in which tensors begin at these places.
    Bind {
        statement: Statement,
        places: Vec<usize>,
        bytes: usize,
    },
    Facts(u32),
    Destroy(u32),
    /// Watch the mailbox for one call of this handle. Has no reply.
    Arm(u32),
    /// Of an oracle, on the tensors of this handle.
    Answer {
        handle: u32,
        unit: u64,
        units: u64,
    },
}

/// Guest to owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Loaded {
        name: String,
        version: String,
        /// What keeps it in.
        layers: Vec<String>,
    },
    Supported(Option<String>),
    Bound(u32),
    Facts(Value),
    Destroyed,
    Answered,
    Failed(String),
}

/// More than any statement needs; a guest that says more is cut off.
const MESSAGE_BYTES: usize = 1 << 20;

/// Sends a message, and a file if there is one.
pub fn send<T: Serialize>(
    socket: &mut UnixStream,
    message: &T,
    file: Option<BorrowedFd>,
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend(body);
    if let Some(file) = file {
        send_file(socket, &bytes[..4], file)?;
        bytes.drain(..4);
    }
    socket.write_all(&bytes)
}

/// The next message. A file that comes with it is dropped.
pub fn receive<T: DeserializeOwned>(socket: &mut UnixStream) -> io::Result<T> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    body(socket, length)
}

/// The next message with its file.
pub fn receive_with_file<T: DeserializeOwned>(
    socket: &mut UnixStream,
) -> io::Result<(T, Option<OwnedFd>)> {
    let (length, file) = receive_file(socket)?;
    Ok((body(socket, length)?, file))
}

fn body<T: DeserializeOwned>(socket: &mut UnixStream, length: [u8; 4]) -> io::Result<T> {
    let length = u32::from_le_bytes(length) as usize;
    if length > MESSAGE_BYTES {
        let error = format!("a message of {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// Room for the header of one descriptor, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

fn header(bytes: &mut [u8], part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zeros is a valid header.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    part.iov_base = bytes.as_mut_ptr().cast();
    part.iov_len = bytes.len();
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    message
}

const EMPTY: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

fn send_file(socket: &UnixStream, bytes: &[u8], file: BorrowedFd) -> io::Result<()> {
    let (mut bytes, mut part, mut control) = (bytes.to_vec(), EMPTY, Control([0; 64]));
    let mut message = header(&mut bytes, &mut part, &mut control);
    // SAFETY: the header describes one descriptor in a buffer that is large enough for it.
    let sent = unsafe {
        let size = size_of::<libc::c_int>() as u32;
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let first = libc::CMSG_FIRSTHDR(&message);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(first)
            .cast::<libc::c_int>()
            .write_unaligned(file.as_raw_fd());
        libc::sendmsg(socket.as_raw_fd(), &message, 0)
    };
    match sent {
        4 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

fn receive_file(socket: &mut UnixStream) -> io::Result<([u8; 4], Option<OwnedFd>)> {
    let (mut bytes, mut part, mut control) = ([0; 4], EMPTY, Control([0; 64]));
    let mut message = header(&mut bytes, &mut part, &mut control);
    // SAFETY: the header describes buffers of the sizes it says; a descriptor that arrives is nobody else's.
    let (received, file) = unsafe {
        let received = libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC);
        let first = libc::CMSG_FIRSTHDR(&message);
        let rights = received > 0
            && !first.is_null()
            && (*first).cmsg_level == libc::SOL_SOCKET
            && (*first).cmsg_type == libc::SCM_RIGHTS;
        let file = rights.then(|| {
            let file = libc::CMSG_DATA(first)
                .cast::<libc::c_int>()
                .read_unaligned();
            OwnedFd::from_raw_fd(file)
        });
        (received, file)
    };
    match received {
        -1 => return Err(io::Error::last_os_error()),
        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        _ => {}
    }
    socket.read_exact(&mut bytes[received as usize..])?;
    Ok((bytes, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::SharedMapping;

    #[test]
    fn messages_and_files_arrive() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let memory = SharedMapping::new(4096).unwrap();
        let load = Request::Load {
            path: "libmine.so".into(),
            kind: Kind::Contender,
            memory_bytes: 1,
        };
        send(&mut ours, &load, memory.file()).unwrap();
        send(&mut ours, &Request::Arm(3), None).unwrap();
        let (first, file) = receive_with_file::<Request>(&mut theirs).unwrap();
        assert_eq!(first, load);
        let same = SharedMapping::of_file(file.unwrap(), 4096).unwrap();
        // SAFETY: both are mapped.
        unsafe {
            *(memory.address() as *mut u8) = 9;
            assert_eq!(*(same.address() as *const u8), 9);
        }
        let (second, none) = receive_with_file::<Request>(&mut theirs).unwrap();
        assert!(second == Request::Arm(3) && none.is_none());
        drop(ours);
        assert!(receive::<Request>(&mut theirs).is_err());
    }

    #[test]
    fn nonsense_is_an_error() {
        for bytes in [&[255u8, 255, 255, 255][..], &[3, 0, 0, 0, b'{', b'{', b'{']] {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            ours.write_all(bytes).unwrap();
            assert!(receive::<Reply>(&mut theirs).is_err());
        }
    }
}

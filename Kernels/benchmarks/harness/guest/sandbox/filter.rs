//! seccomp: the system calls that would reach other processes, or make new ones, fail.

use std::io;

use libc::{sock_filter, sock_fprog};

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xC000_00B7;

/// Offsets in `struct seccomp_data`; the low half of an argument comes first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// glibc then makes threads by `clone`, whose flags can be seen.
const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Fail always.
const REFUSED: &[libc::c_long] = &[
    // New programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes: their memory, descriptors, signals, groups, cores.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_setpriority,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_ioprio_set,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Networks, and memory that no limit counts.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_memfd_create,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // The kernel.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_seccomp,
];

/// Would have the kernel send signals to others, as their descriptors become ready: F_SETOWN, F_SETSIG, F_SETOWN_EX.
const OWNERS_BY_FCNTL: &[u32] = &[8, 10, 15];
/// FIOSETOWN, SIOCSPGRP.
const OWNERS_BY_IOCTL: &[u32] = &[0x8901, 0x8902];

#[cfg(target_arch = "x86_64")]
const OLD: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[libc::c_long] = &[];

fn step(code: u32, value: u32, hit: u8, miss: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: hit,
        jf: miss,
        k: value,
    }
}

fn load(offset: u32) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

fn equal(value: u32, hit: u8, miss: u8) -> sock_filter {
    step(
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        value,
        hit,
        miss,
    )
}

fn any_bit(value: u32, hit: u8, miss: u8) -> sock_filter {
    step(
        libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
        value,
        hit,
        miss,
    )
}

fn answer(value: u32) -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, value, 0, 0)
}

/// For one call, an answer that depends on its first argument.
fn by_argument(call: libc::c_long, test: sock_filter, answers: [u32; 2]) -> [sock_filter; 5] {
    let [hit, miss] = answers.map(answer);
    [
        equal(call as u32, 0, 4),
        load(FIRST_ARGUMENT),
        test,
        hit,
        miss,
    ]
}

/// For one call, a refusal if its second argument is one of those.
fn refuse_requests(call: libc::c_long, requests: &[u32]) -> Vec<sock_filter> {
    let left = requests.len() as u8;
    let mut steps = vec![equal(call as u32, 0, left + 3), load(SECOND_ARGUMENT)];
    let tests = requests.iter().zip((1..=left).rev());
    steps.extend(tests.map(|(request, to_refusal)| equal(*request, to_refusal, 0)));
    steps.extend([answer(ALLOW), answer(REFUSE)]);
    steps
}

fn program(own: u32) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE),
        equal(ARCH, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        // Other numbers for the same calls.
        step(
            libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K,
            0x4000_0000,
            0,
            1,
        ),
        answer(REFUSE),
    ];
    for call in REFUSED.iter().chain(OLD) {
        program.extend([equal(*call as u32, 0, 1), answer(REFUSE)]);
    }
    program.extend([equal(libc::SYS_clone3 as u32, 0, 1), answer(ABSENT)]);
    // Threads, but no processes.
    let thread = any_bit(libc::CLONE_THREAD as u32, 0, 1);
    program.extend(by_argument(libc::SYS_clone, thread, [ALLOW, REFUSE]));
    // Signals, limits and cores of its own alone.
    let itself = equal(own, 0, 1);
    program.extend(by_argument(libc::SYS_tgkill, itself, [ALLOW, REFUSE]));
    for call in [libc::SYS_prlimit64, libc::SYS_sched_setaffinity] {
        program.extend(by_argument(call, equal(0, 0, 1), [ALLOW, REFUSE]));
    }
    program.extend(refuse_requests(libc::SYS_fcntl, OWNERS_BY_FCNTL));
    program.extend(refuse_requests(libc::SYS_ioctl, OWNERS_BY_IOCTL));
    // It ends with its owner.
    let leash = equal(libc::PR_SET_PDEATHSIG as u32, 0, 1);
    program.extend(by_argument(libc::SYS_prctl, leash, [REFUSE, ALLOW]));
    program.push(answer(ALLOW));
    program
}

/// For this thread and all that it makes; false if this kernel has no filters.
pub fn install() -> io::Result<bool> {
    let mut program = program(std::process::id());
    let program = sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: as many steps as it says.
    let installed = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &program,
            0,
            0,
        )
    };
    match (installed, io::Error::last_os_error()) {
        (0, _) => Ok(true),
        // Built without it.
        (_, error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        (_, error) => Err(error),
    }
}

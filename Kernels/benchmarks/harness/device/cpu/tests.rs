//! The CPU device, function by function.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use tensor::{Fill, Inputs};

use super::*;
use crate::{open, ContenderError, DeviceKind};

#[test]
fn memory_is_aligned_and_checked() {
    let device = CpuDevice::open();
    let memory = device.allocate(1000).unwrap();
    assert_eq!(memory.address() % 256, 0);
    assert!(device.set_bytes(memory.address(), 1000, 1).is_ok());
    let beyond = device.set_bytes(memory.address(), 1001, 1).unwrap_err();
    assert!(
        beyond.to_string().contains("not in any allocation"),
        "{beyond}"
    );
    let address = memory.address();
    drop(memory);
    assert!(device.read(address, &mut [0]).is_err());
}

#[test]
fn an_impossible_allocation_is_refused() {
    let error = CpuDevice::open().allocate(1 << 50).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
}

#[test]
fn fill_equals_inputs_for_every_kind() {
    let page_table: Arc<[u8]> = DType::I32.encode(&[4.0, 0.0, 9.0]).into();
    let specs = [
        TensorSpec::input("a", DType::Bf16, &[3 * CHUNK_BYTES / 4]),
        TensorSpec::input("b", DType::F8E4M3, &[1000]),
        TensorSpec::input("c", DType::I64, &[100]).filled(Fill::Index { below: 17 }),
        TensorSpec::input("d", DType::I32, &[3]).filled(Fill::Bytes(page_table)),
    ];
    let device = CpuDevice::open();
    let inputs = Inputs::new(&specs, 11);
    for (tensor, spec) in specs.iter().enumerate() {
        let memory = device.allocate(spec.bytes()).unwrap();
        device
            .fill(memory.address(), spec, tensor as u32, 11)
            .unwrap();
        let mut bytes = vec![0; spec.bytes()];
        device.read(memory.address(), &mut bytes).unwrap();
        assert_eq!(
            spec.dtype.decode(&bytes),
            inputs.range(tensor, 0, spec.elements())
        );
    }
}

#[test]
fn the_canary_scan_finds_the_first_change() {
    let device = CpuDevice::open();
    let bytes = 3 << 20;
    let memory = device.allocate(bytes).unwrap();
    let address = memory.address();
    device.set_bytes(address, bytes, 0xA5).unwrap();
    let ranges = [1 << 20, bytes].map(|bytes| Buffer { address, bytes });
    let firsts = || device.first_bytes_not(&ranges, 0xA5).unwrap();
    assert_eq!(firsts(), [None, None]);
    device.write(address + (2 << 20) + 5, &[0]).unwrap();
    device.write(address + bytes - 1, &[0]).unwrap();
    assert_eq!(firsts(), [None, Some((2 << 20) + 5)]);
}

#[test]
fn copies_and_checksums_follow_the_bytes() {
    let device = CpuDevice::open();
    let (first, second) = (device.allocate(100).unwrap(), device.allocate(100).unwrap());
    device.set_bytes(first.address(), 100, 3).unwrap();
    device.copy(second.address(), first.address(), 100).unwrap();
    let ranges = [&first, &second].map(|memory| Buffer {
        address: memory.address(),
        bytes: 100,
    });
    let equal = || {
        let sums = device.checksums(&ranges).unwrap();
        sums[0] == sums[1]
    };
    assert!(equal());
    device.write(second.address() + 50, &[4]).unwrap();
    assert!(!equal());
    let copies = device.read_all(&ranges).unwrap();
    assert_eq!((copies[0][50], copies[1][50]), (3, 4));
    assert!(device
        .copy(first.address() + 1, first.address(), 50)
        .is_err());
}

#[test]
fn poison_never_compares_equal() {
    let device = CpuDevice::open();
    let memory = device.allocate(64).unwrap();
    device.set_bytes(memory.address(), 64, 0xFF).unwrap();
    let limit = Tolerance {
        absolute: 1e30,
        relative: 1e30,
    };
    for dtype in [
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::F8E4M3,
        DType::F8E8M0,
    ] {
        let tiles = Tiles {
            elements: 16,
            step: 10,
        };
        let result = device
            .compare(memory.address(), memory.address(), dtype, tiles, limit)
            .unwrap();
        let counts = result.iter().map(|tile| (tile.non_finite, tile.over_limit));
        assert_eq!(counts.collect::<Vec<_>>(), [(10, 10), (6, 6)], "{dtype}");
    }
}

#[test]
fn a_sample_takes_as_long_as_its_work_and_hot_runs_it_twice() {
    let device = CpuDevice::open();
    for (cache, expected) in [(Cache::Cold, 1), (Cache::Hot, 2), (Cache::AsIs, 1)] {
        let mut calls = 0;
        let sample = device
            .sample(SampleMode::new(cache), &mut |_| {
                calls += 1;
                std::thread::sleep(Duration::from_millis(3));
                Ok(())
            })
            .unwrap();
        assert_eq!(calls, expected);
        assert!(sample.elapsed_us >= 3000.0, "{sample:?}");
        assert_eq!(sample.queue, Queue::Direct);
    }
}

#[test]
fn a_refusal_is_passed_on() {
    let error = CpuDevice::open()
        .sample(SampleMode::default(), &mut |_| {
            Err(ContenderError::new("no plan"))
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "no plan");
}

#[test]
fn a_write_after_the_return_is_seen() {
    let device = CpuDevice::open();
    let memory = device.allocate(8).unwrap();
    let address = memory.address();
    let watched = [Buffer { address, bytes: 8 }];
    device.set_bytes(address, 8, 0xFF).unwrap();
    let orderly = device.writes_out_of_order(&watched, 0xFF, Duration::ZERO, &mut |_| Ok(()));
    assert!(!orderly.unwrap());
    // A thread that keeps writing after the return. On a busy machine it may not run while it is
    // watched, but not every time.
    let stop = AtomicBool::new(false);
    let late = std::thread::scope(|scope| {
        let mut writer = None;
        let mut late = || {
            device.writes_out_of_order(&watched, 0xFF, Duration::ZERO, &mut |_| {
                writer.get_or_insert_with(|| {
                    scope.spawn(|| {
                        for number in 0u64.. {
                            if stop.load(Ordering::Relaxed) {
                                break;
                            }
                            // SAFETY: the allocation outlives the scope.
                            unsafe { (address as *mut u64).write_volatile(number) };
                        }
                    })
                });
                Ok(())
            })
        };
        let seen = (0..20).any(|_| late().unwrap());
        stop.store(true, Ordering::Relaxed);
        seen
    });
    assert!(late);
}

/// Other tests work meanwhile, so only a lower bound is known.
#[test]
fn a_thread_that_works_while_nobody_asks_shows() {
    let ended = AtomicBool::new(false);
    let share = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let shares = (0..20).map(|_| CpuDevice::open().background_share(Duration::from_millis(20)));
        let most = shares.flatten().fold(0.0, f64::max);
        ended.store(true, Ordering::Relaxed);
        most
    });
    assert!(share > 0.1, "{share}");
}

#[test]
fn opening_is_exact() {
    assert_eq!(open(DeviceKind::Cpu).unwrap().info().kind, DeviceKind::Cpu);
    #[cfg(not(feature = "cuda"))]
    {
        let error = open(DeviceKind::Cuda).err().unwrap().to_string();
        assert!(error.contains("--device cpu"), "{error}");
    }
    #[cfg(not(feature = "emulated"))]
    {
        let error = open(DeviceKind::Ptx).err().unwrap().to_string();
        assert!(error.contains("--config=emulated"), "{error}");
    }
}

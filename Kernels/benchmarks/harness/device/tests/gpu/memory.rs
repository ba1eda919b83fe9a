//! Contents: fill, scan, checksum and comparison agree with the CPU.

use std::sync::Arc;

use device::{Buffer, Comparison, Device, DeviceError, Tiles, Tolerance};
use numeric::DType;
use tensor::{Fill, Shaped, Slots, TensorSpec};

use crate::with_gpu;

const FLOATS: [DType; 5] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::F8E4M3,
    DType::F8E8M0,
];
const INTEGERS: [DType; 2] = [DType::I32, DType::I64];

/// Contents of a tensor after `fill` on `device`.
fn filled(device: &dyn Device, spec: &TensorSpec, tensor: u32, seed: u64) -> Vec<u8> {
    let memory = device.allocate(spec.bytes()).unwrap();
    device
        .set_bytes(memory.address(), spec.bytes(), 0xFF)
        .unwrap();
    device.fill(memory.address(), spec, tensor, seed).unwrap();
    let mut bytes = vec![0; spec.bytes()];
    device.read(memory.address(), &mut bytes).unwrap();
    bytes
}

fn first_byte_not(device: &dyn Device, address: usize, bytes: usize, value: u8) -> Option<usize> {
    let range = Buffer { address, bytes };
    device.first_bytes_not(&[range], value).unwrap()[0]
}

/// Slots of both kinds, several ranges, and factors.
fn shaped() -> Fill {
    let slots = Slots {
        outer: 4 * 6 * 100,
        inner: 4,
        run: 100,
    };
    let levels = (0..1000).map(|slot| (slot * 7 % 3) as u8).collect();
    let ranges = [(-1.0, 1.0), (2.5, 3.5), (0.0, 0.0)];
    let factors = (0..100).map(|column| column as f32 * 0.1 - 3.0);
    Shaped::by_slot(slots, levels, &ranges)
        .times(factors.collect())
        .into()
}

#[test]
fn dead_memory_is_not_a_number() {
    with_gpu(|cuda, cpu| {
        for dtype in FLOATS {
            let dead = Shaped::by_slot(Slots::rows(8), vec![1, 0], &[(1.0, 2.0), tensor::DEAD]);
            let spec = TensorSpec::input("x", dtype, &[16]).filled(dead);
            for device in [cuda as &dyn Device, cpu] {
                let values = dtype.decode(&filled(device, &spec, 0, 42));
                assert!(values[..8].iter().all(|value| value.is_nan()), "{dtype}");
                assert!(values[8..].iter().all(|value| value.is_finite()), "{dtype}");
            }
        }
    });
}

#[test]
fn fill_is_bit_identical() {
    with_gpu(|cuda, cpu| {
        let uniform = |low, high| Fill::Uniform { low, high };
        let fills = [
            uniform(-1.0, 1.0),
            uniform(0.0, 1.0),
            uniform(1e-6, 3e-5),
            uniform(-700.0, 700.0),
            uniform(-1e5, 1e5),
            uniform(-3.3e38, -1e38),
            Fill::Index { below: 129_280 },
            Fill::Index { below: u32::MAX },
            shaped(),
        ];
        for dtype in FLOATS.into_iter().chain(INTEGERS) {
            for (tensor, fill) in fills.iter().enumerate() {
                let spec = TensorSpec::input("x", dtype, &[300_007]).filled(fill.clone());
                let expected = filled(cpu, &spec, tensor as u32, 42);
                let actual = filled(cuda, &spec, tensor as u32, 42);
                let differing = expected.iter().zip(&actual).position(|(a, b)| a != b);
                assert_eq!(differing, None, "{dtype} {fill:?}");
            }
        }
    });
}

#[test]
fn exact_bytes_are_copied() {
    with_gpu(|cuda, _| {
        let bytes: Arc<[u8]> = (0..4000).map(|index| (index * 31) as u8).collect();
        let spec =
            TensorSpec::input("table", DType::I32, &[1000]).filled(Fill::Bytes(bytes.clone()));
        assert_eq!(filled(cuda, &spec, 3, 1), *bytes);
    });
}

#[test]
fn fill_passes_two_to_the_31_elements() {
    with_gpu(|cuda, _| {
        let elements = (1usize << 31) + 1003;
        let spec = TensorSpec::input("huge", DType::F8E4M3, &[elements]);
        let memory = cuda.allocate(spec.bytes()).unwrap();
        cuda.fill(memory.address(), &spec, 0, 7).unwrap();
        let start = elements - 2000;
        let (mut expected, mut actual) = (vec![0; 2000], vec![0; 2000]);
        tensor::fill_into(&spec, 0, 7, start, &mut expected);
        cuda.read(memory.address() + start, &mut actual).unwrap();
        assert_eq!(expected, actual);
        cuda.set_bytes(memory.address(), spec.bytes(), 0).unwrap();
        cuda.write(memory.address() + elements - 1, &[1]).unwrap();
        let found = first_byte_not(cuda, memory.address(), elements, 0);
        assert_eq!(found, Some(elements - 1));
    });
}

#[test]
fn the_canary_scan_finds_every_position() {
    with_gpu(|cuda, _| {
        let memory = cuda.allocate(5000).unwrap();
        for (offset, bytes) in [(0, 5000), (1, 4999), (3, 13), (8, 8), (0, 1), (0, 0)] {
            let address = memory.address() + offset;
            cuda.set_bytes(memory.address(), 5000, 0xA5).unwrap();
            assert_eq!(first_byte_not(cuda, address, bytes, 0xA5), None);
            for position in [0, bytes / 2, bytes.saturating_sub(1)] {
                if position < bytes {
                    cuda.write(address + position, &[0x5A]).unwrap();
                    let found = first_byte_not(cuda, address, bytes, 0xA5);
                    assert_eq!(found, Some(position), "offset {offset}, {bytes} bytes");
                    cuda.write(address + position, &[0xA5]).unwrap();
                }
            }
        }
    });
}

#[test]
fn checksums_equal_the_cpus() {
    with_gpu(|cuda, cpu| {
        let size = 3_000_017;
        let spec = TensorSpec::input("x", DType::F8E4M3, &[size]);
        let (there, here) = (cuda.allocate(size).unwrap(), cpu.allocate(size).unwrap());
        cuda.fill(there.address(), &spec, 0, 5).unwrap();
        cpu.fill(here.address(), &spec, 0, 5).unwrap();
        let places = [(0, size), (1, size - 1), (5, 9), (16, 8), (0, 7), (0, 0)];
        let ranges = |start: usize| {
            places.map(|(offset, bytes)| Buffer {
                address: start + offset,
                bytes,
            })
        };
        let expected = cpu.checksums(&ranges(here.address())).unwrap();
        assert_eq!(expected, cuda.checksums(&ranges(there.address())).unwrap());
        let copies = cuda.read_all(&ranges(there.address())).unwrap();
        assert_eq!(copies, cpu.read_all(&ranges(here.address())).unwrap());
    });
}

fn assert_same(expected: &Comparison, actual: &Comparison) {
    let exact = |of: &Comparison| (of.max_abs, of.non_finite, of.over_limit, of.first_over);
    assert_eq!(exact(expected), exact(actual));
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * a.abs();
    assert!(
        close(expected.sum_squared_error, actual.sum_squared_error)
            && close(expected.sum_squared_reference, actual.sum_squared_reference),
        "{expected:?} {actual:?}"
    );
}

#[test]
fn comparison_equals_the_cpus() {
    with_gpu(|cuda, cpu| {
        let elements = 200_003;
        let limit = Tolerance {
            absolute: 0.25,
            relative: 0.5,
        };
        for dtype in FLOATS.into_iter().chain(INTEGERS) {
            let fill = Fill::Uniform {
                low: -9.0,
                high: 9.0,
            };
            let spec = TensorSpec::input("x", dtype, &[elements]).filled(fill);
            let run = |device: &dyn Device, step: usize| -> Vec<Comparison> {
                let (actual, reference) = (
                    device.allocate(spec.bytes()).unwrap(),
                    device.allocate(spec.bytes()).unwrap(),
                );
                device.fill(actual.address(), &spec, 0, 3).unwrap();
                device.fill(reference.address(), &spec, 1, 3).unwrap();
                let poison = vec![0xFF; 5 * dtype.size_bytes()];
                let place = actual.address() + 77 * dtype.size_bytes();
                device.write(place, &poison).unwrap();
                device
                    .compare(
                        actual.address(),
                        reference.address(),
                        dtype,
                        Tiles { elements, step },
                        limit,
                    )
                    .unwrap()
            };
            let non_finite = |device: &dyn Device| {
                let memory = device.allocate(spec.bytes()).unwrap();
                device.fill(memory.address(), &spec, 0, 3).unwrap();
                let from = memory.address() + 77 * dtype.size_bytes();
                let poison = vec![0xFF; 5 * dtype.size_bytes()];
                device.write(from, &poison).unwrap();
                // From the start, from an element that is not aligned, and behind all of them.
                [0, 3, 79, 82].map(|start| {
                    let address = memory.address() + start * dtype.size_bytes();
                    device.non_finite(address, dtype, elements - start).unwrap()
                })
            };
            if dtype.is_float() {
                let (expected, actual) = (non_finite(cpu), non_finite(cuda));
                assert_eq!(expected, actual, "{dtype}");
                // What has no sign is NaN where it is filled with negative numbers.
                let counts = actual.map(|found| found.count);
                assert!(
                    dtype == DType::F8E8M0 || counts == [5, 5, 3, 0],
                    "{counts:?}"
                );
            }
            // One tile, some, more than are compared at a time, and tiles that are not aligned.
            for step in [elements, 16 << 10, 2048, 30_001] {
                let (expected, actual) = (run(cpu, step), run(cuda, step));
                assert_eq!(expected.len(), elements.div_ceil(step));
                assert_eq!(expected.len(), actual.len());
                for (expected, actual) in expected.iter().zip(&actual) {
                    assert_same(expected, actual);
                }
                assert!(!actual[0].passes());
            }
        }
    });
}

#[test]
fn an_impossible_allocation_is_refused_and_harmless() {
    with_gpu(|cuda, _| {
        let error = cuda.allocate(1 << 46).unwrap_err();
        assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
        let memory = cuda.allocate(1000).unwrap();
        assert_eq!(memory.address() % 256, 0);
        cuda.set_bytes(memory.address(), 1000, 1).unwrap();
        let other = cuda.allocate(1000).unwrap();
        cuda.copy(other.address(), memory.address(), 1000).unwrap();
        let found = first_byte_not(cuda, other.address(), 1000, 1);
        assert_eq!(found, None);
    });
}

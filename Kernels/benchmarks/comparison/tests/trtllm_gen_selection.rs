//! What TRT-LLM-gen would launch on a B200 for every shape of the suites. The library's own
//! heuristic runs on the CPU, without a driver: its kernel must be in the library's list, and its
//! machine code in the pinned archive with that list's sha256. Shapes without a kernel say why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use contender::{Contender, DeviceInfo, DeviceKind, Problem, Support};
use cubins::CubinError;
use flashinfer::TrtllmGenChoice;
use numeric::DType;
use workloads::{
    DecodeProblem, DecodeSuite, KvType, MlaDecodeProblem, MlaSuite, PrefillOp, PrefillProblem,
    PrefillSuite,
};

/// EM_CUDA, of an ELF file's header.
const CUDA_MACHINE: u16 = 190;

fn b200() -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Cuda,
        name: "NVIDIA B200".to_owned(),
        uuid: None,
        arch: "sm_100a".to_owned(),
        compute_capability: Some((10, 0)),
        multiprocessors: 148,
        l2_bytes: 126 << 20,
        memory_bytes: 180 << 30,
        shared_bytes_per_block: 227 << 10,
        emulated: false,
    }
}

/// The library's list: sha256 by kernel name.
fn metadata() -> BTreeMap<String, String> {
    let file = std::env::var("METADATA").expect("METADATA names the list");
    let text = std::fs::read_to_string(file).expect("the list can be read");
    let entries = text.lines().filter(|line| line.starts_with("{ DATA_TYPE"));
    let list: BTreeMap<_, _> = entries
        .map(|line| {
            let mut words = line.split('"').skip(1).step_by(2).map(str::to_owned);
            let name = words.next().expect("a name");
            (name, words.last().expect("a sha256"))
        })
        .collect();
    assert!(list.len() > 10_000, "{} kernels in the list", list.len());
    list
}

fn contender<P: Problem>(contenders: Vec<Box<dyn Contender<P>>>) -> Box<dyn Contender<P>> {
    let mut all = contenders.into_iter();
    all.find(|contender| contender.identity().name == "trtllm_gen")
        .expect("it competes")
}

/// Each choice launches a kernel on the list, and loads one in the archive.
fn check(choices: &[TrtllmGenChoice], list: &BTreeMap<String, String>, archive: &Path) {
    assert_eq!(choices.len(), 2);
    for choice in choices {
        assert!(list.contains_key(&choice.kernel), "{}", choice.kernel);
        let own = format!("cubins/{}.cubin", choice.kernel);
        assert!(choice.cubins.iter().any(|cubin| cubin.path == own), "{own}");
        for cubin in &choice.cubins {
            let name = cubin.path.strip_prefix("cubins/").expect("its folder");
            let name = name.strip_suffix(".cubin").expect("its ending");
            assert_eq!(list.get(name), Some(&cubin.sha256), "{name}");
            let bytes = cubins::read(archive, &cubin.path, &cubin.sha256);
            let bytes = bytes.expect("it is in the archive");
            assert_eq!(bytes[..4], *b"\x7fELF", "{name}");
            assert_eq!(bytes[18..20], CUDA_MACHINE.to_le_bytes(), "{name}");
        }
    }
}

#[test]
fn every_prefill_shape_has_a_kernel_or_a_reason() {
    let (list, archive, device) = (metadata(), cubins::folder().unwrap(), b200());
    let contender = contender(prefill_contenders::contenders(DeviceKind::Cuda));
    let (mut served, mut kernels, mut kinds) = (0, BTreeSet::new(), BTreeSet::new());
    for suite in PrefillSuite::all().filter(|suite| *suite != PrefillSuite::Unseen) {
        for (shape, workload) in suite.workloads() {
            let name = format!("{suite}/{}", workload.name);
            let problem =
                PrefillProblem::new(PrefillOp::Prefill, shape.clone(), DType::Bf16, workload)
                    .unwrap();
            match contender.supports(&problem, &device) {
                Support::Yes => {
                    let choices =
                        prefill_contenders::trtllm_gen::choices(&problem, &device).unwrap();
                    check(&choices, &list, &archive);
                    kernels.extend(choices.into_iter().map(|choice| choice.kernel));
                    kinds.insert((shape.dims(), shape.causal));
                    served += 1;
                }
                // For separate tensors the library has no heads of 64.
                Support::No(reason) if shape.head_dim == 64 => assert!(
                    reason.contains("headDimQk=64") || reason.contains("without queries"),
                    "{name}: {reason}"
                ),
                Support::No(reason) => panic!("{name}: {reason}"),
            }
        }
    }
    assert!(served > 30, "{served} shapes");
    assert_eq!(kernels.len(), kinds.len(), "{kinds:?}: {kernels:?}");
    for dims in ["128", "192 with values of 128", "256"] {
        assert!(kinds.contains(&(dims.to_owned(), true)), "{kinds:?}");
    }
}

#[test]
fn every_decode_shape_has_a_kernel_or_a_reason() {
    let (list, archive, device) = (metadata(), cubins::folder().unwrap(), b200());
    let contender = contender(decode_contenders::contenders(DeviceKind::Cuda));
    let mut page_sizes = BTreeSet::new();
    for suite in DecodeSuite::all().filter(|suite| *suite != DecodeSuite::Unseen) {
        for (shape, workload) in suite.workloads() {
            let name = format!("{suite}/{}", workload.name);
            let problem = DecodeProblem::new(shape.clone(), DType::Bf16, workload);
            match contender.supports(&problem, &device) {
                Support::Yes => {
                    let choices =
                        decode_contenders::trtllm_gen::choices(&problem, &device).unwrap();
                    check(&choices, &list, &archive);
                    let of = |choice: &TrtllmGenChoice| choice.kernel.contains("KvE4m3");
                    let fp8 = shape.kv_type == KvType::Fp8;
                    assert!(choices.iter().all(|choice| of(choice) == fp8), "{name}");
                    page_sizes.insert((shape.head_dim, shape.page_size, fp8));
                }
                Support::No(reason) if shape.page_size == 1 => {
                    assert!(reason.contains("numTokensPerPage=1"), "{name}: {reason}");
                }
                Support::No(reason) if shape.lengths.contains(&0) => {
                    assert!(reason.contains("fewer than"), "{name}: {reason}");
                }
                Support::No(reason) => panic!("{name}: {reason}"),
            }
        }
    }
    let expected = [
        (64, 16, false),
        (64, 32, false),
        (128, 16, false),
        (128, 32, false),
        (128, 64, false),
        (128, 128, false),
        (128, 16, true),
        (128, 32, true),
        (128, 64, true),
    ];
    assert_eq!(page_sizes, BTreeSet::from(expected));
}

#[test]
fn every_latent_shape_has_a_kernel_or_a_reason() {
    let (list, archive, device) = (metadata(), cubins::folder().unwrap(), b200());
    let contender = contender(mla_contenders::contenders(DeviceKind::Cuda));
    let mut served = BTreeSet::new();
    for suite in MlaSuite::all().filter(|suite| *suite != MlaSuite::Unseen) {
        for (shape, workload) in suite.workloads() {
            let name = format!("{suite}/{}", workload.name);
            let problem = MlaDecodeProblem::new(shape.clone(), DType::Bf16, workload);
            match contender.supports(&problem, &device) {
                Support::Yes => {
                    let choices = mla_contenders::trtllm_gen::choices(&problem, &device).unwrap();
                    check(&choices, &list, &archive);
                    served.insert((shape.heads, shape.page_size));
                }
                Support::No(reason) if shape.lengths.contains(&0) => {
                    assert!(reason.contains("fewer than"), "{name}: {reason}");
                }
                Support::No(reason) if shape.kv_type == KvType::Fp8 => {
                    assert!(reason.contains("FP8"), "{name}: {reason}");
                }
                Support::No(reason) => panic!("{name}: {reason}"),
            }
        }
    }
    let expected = [(16, 64), (64, 32), (64, 64), (128, 64)];
    assert_eq!(served, BTreeSet::from(expected));
}

#[test]
fn other_devices_types_and_results_are_refused_with_a_reason() {
    let prefill = contender(prefill_contenders::contenders(DeviceKind::Cuda));
    let (shape, workload) = PrefillSuite::Llama8b.workloads().remove(0);
    let reason = |op, dtype, device: &DeviceInfo| {
        let problem = PrefillProblem::new(op, shape.clone(), dtype, workload.clone()).unwrap();
        match prefill.supports(&problem, device) {
            Support::No(reason) => reason,
            Support::Yes => "supported".to_owned(),
        }
    };
    let hopper = DeviceInfo {
        arch: "sm_90a".to_owned(),
        ..b200()
    };
    let plain = PrefillOp::Prefill;
    assert_eq!(reason(plain, DType::Bf16, &b200()), "supported");
    assert!(reason(plain, DType::Bf16, &hopper).contains("sm_90a"));
    assert!(reason(plain, DType::F16, &b200()).contains("f16"));
    assert!(reason(PrefillOp::PrefillLse, DType::Bf16, &b200()).contains("LSE"));
}

/// The real file and the library's own sha256, with one bit flipped.
#[test]
fn a_corrupted_cubin_is_refused() {
    let (shape, workload) = PrefillSuite::Llama8b.workloads().remove(0);
    let problem = PrefillProblem::new(PrefillOp::Prefill, shape, DType::Bf16, workload).unwrap();
    let choice = prefill_contenders::trtllm_gen::choices(&problem, &b200())
        .unwrap()
        .remove(0);
    let cubin = &choice.cubins[0];
    let archive = cubins::folder().unwrap();
    let mut bytes = cubins::read(&archive, &cubin.path, &cubin.sha256).unwrap();
    let folder = Path::new(&std::env::var("TEST_TMPDIR").unwrap()).join("corrupted");
    std::fs::create_dir_all(folder.join("cubins")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.join(&cubin.path), &bytes).unwrap();
    let error = cubins::read(&folder, &cubin.path, &cubin.sha256).unwrap_err();
    assert!(matches!(error, CubinError::Changed { .. }), "{error}");
    assert!(error.to_string().contains(&choice.kernel), "{error}");
}

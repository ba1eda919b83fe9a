//! Shared by TRT-LLM-gen's contenders.

use std::fmt::Display;

use contender::{ContenderError, DeviceInfo, Identity};
use flashinfer::{TrtllmGenChoice, TrtllmGenDevice};
use numeric::DType;

/// Why TRT-LLM-gen, which comes for one architecture and in separate files, cannot run at all.
pub fn absent(dtype: DType, device: &DeviceInfo) -> Option<String> {
    if let Some(obstacle) = device.obstacle_to_machine_code() {
        return Some(obstacle);
    }
    if device.arch != "sm_100a" {
        return Some(format!("only for sm_100a; this is {}", device.arch));
    }
    if !flashinfer::has_trtllm_gen() {
        return Some("not in this build; build with --config=sm100a".to_owned());
    }
    if dtype != DType::Bf16 {
        return Some(format!("its {dtype} kernels are not in this build"));
    }
    let folder = flashinfer::cubin_folder();
    folder.err().map(|error| error.to_string())
}

/// The library's choices for a device: one if all clusters of a launch are resident at once, one if
/// not. Only the device knows which applies. An error is its reason for having no kernel.
pub fn choices<E: Display>(
    device: &DeviceInfo,
    choose: impl Fn(TrtllmGenDevice) -> Result<TrtllmGenChoice, E>,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    let choices = [true, false].map(|clusters_fit| {
        choose(TrtllmGenDevice {
            multiprocessors: device.multiprocessors,
            clusters_fit,
        })
    });
    let choices: Result<_, E> = choices.into_iter().collect();
    choices.map_err(ContenderError::new)
}

pub fn identity(timed_region: &str) -> Identity {
    Identity {
        artifact_sha256: Some(flashinfer::trtllm_gen_archive_sha256()),
        ..crate::identity("trtllm_gen", timed_region)
    }
}

//! A problem as it is handed to a stranger: what to compute and where, but nothing of how it is checked.

use std::collections::BTreeMap;
use std::ffi::CString;

use contender::{DeviceInfo, DeviceKind, Problem};
use contender_abi as abi;
use numeric::DType;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use tensor::{Role, TensorSpec};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    pub op: String,
    pub dtype: DType,
    pub axes: BTreeMap<String, Value>,
    pub tensors: Vec<Tensor>,
    pub device: DeviceKind,
    pub arch: String,
    pub multiprocessors: u32,
    pub options: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    pub name: String,
    pub role: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

impl Tensor {
    fn of(spec: &TensorSpec) -> Self {
        let role = match spec.role {
            Role::Input => "input",
            Role::Output => "output",
            Role::InOut => "in_out",
        };
        Self {
            name: spec.name.to_owned(),
            role: role.to_owned(),
            dtype: spec.dtype,
            shape: spec.shape.clone(),
        }
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size_bytes()
    }

    /// Row-major, in elements.
    fn strides(&self) -> Vec<i64> {
        let mut strides = vec![1; self.shape.len()];
        for at in (1..self.shape.len()).rev() {
            strides[at - 1] = strides[at] * self.shape[at] as i64;
        }
        strides
    }
}

impl Statement {
    pub fn new<P: Problem + ?Sized>(problem: &P, device: &DeviceInfo, options: &str) -> Self {
        Self {
            op: problem.op().to_owned(),
            dtype: problem.dtype(),
            axes: problem.workload().axes.clone(),
            tensors: problem.tensors().iter().map(Tensor::of).collect(),
            device: device.kind,
            arch: device.arch.clone(),
            multiprocessors: device.multiprocessors,
            options: options.to_owned(),
        }
    }

    /// The JSON that a library may read instead of the structures.
    fn json(&self, addresses: &[usize]) -> Value {
        let tensor = |(tensor, address): (&Tensor, &usize)| {
            json!({
                "name": tensor.name,
                "role": tensor.role,
                "dtype": tensor.dtype,
                "shape": tensor.shape,
                "strides": tensor.strides(),
                "bytes": tensor.bytes(),
                "address": address,
            })
        };
        let tensors: Vec<Value> = self.tensors.iter().zip(addresses).map(tensor).collect();
        json!({
            "abi_version": abi::ABI_VERSION,
            "op": self.op,
            "dtype": self.dtype,
            "axes": self.axes,
            "tensors": tensors,
            "device": self.device,
            "arch": self.arch,
            "multiprocessors": self.multiprocessors,
            "options": self.options,
        })
    }
}

/// The same as C structures, with everything that they point to.
pub struct Passed {
    pub problem: abi::Problem,
    _parts: Parts,
}

#[derive(Default)]
struct Parts {
    texts: Vec<CString>,
    sizes: Vec<Vec<i64>>,
    axes: Vec<abi::Axis>,
    tensors: Vec<abi::Tensor>,
}

impl Parts {
    /// Text that the structures point to. A zero byte, which C cannot pass, ends it.
    fn text(&mut self, text: &str) -> *const std::ffi::c_char {
        let bytes = text
            .bytes()
            .take_while(|byte| *byte != 0)
            .collect::<Vec<u8>>();
        self.texts.push(CString::new(bytes).unwrap_or_default());
        self.texts
            .last()
            .map_or(std::ptr::null(), |text| text.as_ptr())
    }

    fn sizes(&mut self, sizes: Vec<i64>) -> *const i64 {
        self.sizes.push(sizes);
        self.sizes
            .last()
            .map_or(std::ptr::null(), |sizes| sizes.as_ptr())
    }
}

impl Passed {
    /// One address per tensor; 0 where nothing is bound yet.
    pub fn new(statement: &Statement, addresses: &[usize]) -> Self {
        Self::with(statement, addresses, |tensor| {
            let dtype = match tensor.dtype {
                DType::F32 => abi::F32,
                DType::F16 => abi::F16,
                DType::Bf16 => abi::BF16,
                DType::F8E4M3 => abi::FP8_E4M3,
                DType::F8E8M0 => abi::E8M0,
                DType::I32 => abi::I32,
                DType::I64 => abi::I64,
                DType::Mxfp8 => abi::MXFP8,
                DType::Nvfp4 => abi::NVFP4,
                DType::Mxfp4 => abi::MXFP4,
                DType::Fp8Ue8m0 => abi::FP8_UE8M0,
            };
            (dtype, tensor.bytes())
        })
    }

    /// The same for an oracle, whose tensors are all in f64.
    pub fn in_f64(statement: &Statement, addresses: &[usize]) -> Self {
        Self::with(statement, addresses, |tensor| {
            (abi::F64, tensor.elements() * size_of::<f64>())
        })
    }

    fn with(
        statement: &Statement,
        addresses: &[usize],
        stored: impl Fn(&Tensor) -> (i32, usize),
    ) -> Self {
        let mut parts = Parts::default();
        for (name, value) in &statement.axes {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let axis = abi::Axis {
                name: parts.text(name),
                number: text.parse().unwrap_or(f64::NAN),
                text: parts.text(&text),
            };
            parts.axes.push(axis);
        }
        for (tensor, address) in statement.tensors.iter().zip(addresses) {
            let (dtype, bytes) = stored(tensor);
            let passed = abi::Tensor {
                name: parts.text(&tensor.name),
                role: match &*tensor.role {
                    "input" => abi::INPUT,
                    "output" => abi::OUTPUT,
                    _ => abi::IN_OUT,
                },
                dtype,
                rank: tensor.shape.len() as i64,
                shape: parts.sizes(tensor.shape.iter().map(|size| *size as i64).collect()),
                strides: parts.sizes(tensor.strides()),
                bytes: bytes as u64,
                address: *address as *mut _,
            };
            parts.tensors.push(passed);
        }
        let problem = abi::Problem {
            struct_bytes: size_of::<abi::Problem>() as u32,
            abi_version: abi::ABI_VERSION,
            op: parts.text(&statement.op),
            dtype: parts.text(&statement.dtype.to_string()),
            axes: parts.axes.as_ptr(),
            axis_count: parts.axes.len() as u64,
            tensors: parts.tensors.as_ptr(),
            tensor_count: parts.tensors.len() as u64,
            device: match statement.device {
                DeviceKind::Cpu => abi::CPU,
                DeviceKind::Cuda | DeviceKind::Ptx => abi::CUDA,
            },
            multiprocessors: statement.multiprocessors as i32,
            arch: parts.text(&statement.arch),
            options: parts.text(&statement.options),
            json: parts.text(&statement.json(addresses).to_string()),
        };
        Self {
            problem,
            _parts: parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn statement() -> Statement {
        let tensor = |name: &str, role: &str, shape: &[usize]| Tensor {
            name: name.into(),
            role: role.into(),
            dtype: DType::Bf16,
            shape: shape.to_vec(),
        };
        Statement {
            op: "scaled".into(),
            dtype: DType::Bf16,
            axes: BTreeMap::from([("m".into(), json!(3)), ("epsilon".into(), json!("0.5"))]),
            tensors: vec![tensor("x", "input", &[2, 3, 4]), tensor("y", "output", &[])],
            device: DeviceKind::Cpu,
            arch: "x86_64".into(),
            multiprocessors: 2,
            options: "variant=2".into(),
        }
    }

    #[test]
    fn structures_and_json_say_the_same() {
        let passed = Passed::new(&statement(), &[4096, 8192]);
        let problem = passed.problem;
        // SAFETY: `passed` owns everything that the structures point to.
        let (x, json, number) = unsafe {
            let json = CStr::from_ptr(problem.json).to_str().unwrap();
            let json: Value = serde_json::from_str(json).unwrap();
            (
                *problem.tensor("x").unwrap(),
                json,
                problem.number("epsilon"),
            )
        };
        assert_eq!((x.rank, x.bytes, x.address as usize), (3, 48, 4096));
        assert_eq!(json["tensors"][0]["strides"], json!([12, 4, 1]));
        assert_eq!(json["tensors"][1]["address"], 8192);
        assert_eq!((json["axes"]["m"].clone(), number), (json!(3), Some(0.5)));
        // SAFETY: as above.
        assert!(unsafe { problem.tensor("z").is_none() && problem.number("op").is_none() });
    }

    #[test]
    fn an_oracle_sees_everything_in_f64() {
        let passed = Passed::in_f64(&statement(), &[4096, 8192]);
        // SAFETY: as above.
        let x = unsafe { *passed.problem.tensor("x").unwrap() };
        assert_eq!((x.dtype, x.bytes), (abi::F64, 24 * 8));
    }

    #[test]
    fn a_zero_byte_ends_a_text() {
        let statement = Statement {
            options: "a\0b".into(),
            ..statement()
        };
        let passed = Passed::new(&statement, &[0, 0]);
        // SAFETY: as above.
        let options = unsafe { CStr::from_ptr(passed.problem.options) };
        assert_eq!(options.to_bytes(), b"a");
    }
}

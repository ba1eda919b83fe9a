//! Kernels of PTX that no object brought along: loaded and launched by name.

use std::ffi::c_void;

use machine::MOST_SHARED;

use crate::registry::{self, Refusal, Shape};

#[derive(Debug)]
pub struct Function {
    /// Takes the place of a host function's address; nobody else has it.
    host: Box<u8>,
    name: String,
    /// The size of each.
    parameters: Vec<usize>,
}

impl Function {
    /// # Errors
    ///
    /// Where the interpreter refuses the text or the kernel, or the text has none of that name.
    pub fn load(text: &str, name: &str) -> Result<Self, String> {
        let unit = registry::unit_of(text);
        let program = registry::program(unit, name)?;
        let sizes = program.parameters.iter();
        let function = Self {
            host: Box::new(0),
            name: name.to_owned(),
            parameters: sizes.map(|(_, bytes)| *bytes as usize).collect(),
        };
        registry::add_kernel(unit, function.host(), name);
        registry::allow_shared(function.host(), MOST_SHARED);
        registry::allow_large_clusters(function.host(), true);
        Ok(function)
    }

    fn host(&self) -> usize {
        std::ptr::from_ref(&*self.host) as usize
    }

    /// The size of each parameter.
    pub fn parameters(&self) -> &[usize] {
        &self.parameters
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// Where the arguments are not its parameters, or the interpreter finds a fault.
    pub fn launch(&self, shape: &Shape, arguments: &[impl AsRef<[u8]>]) -> Result<(), String> {
        let arguments = || arguments.iter().map(AsRef::as_ref);
        let passed: Vec<usize> = arguments().map(<[u8]>::len).collect();
        if passed != self.parameters {
            let (name, taken) = (&self.name, &self.parameters);
            return Err(format!(
                "'{name}' takes parameters of {taken:?} bytes, not {passed:?}"
            ));
        }
        let arguments: Vec<*const c_void> =
            arguments().map(|bytes| bytes.as_ptr().cast()).collect();
        // SAFETY: as many as the kernel takes, each of its size.
        let launched = unsafe { registry::launch(self.host(), shape, arguments.as_ptr()) };
        launched.map_err(|refusal| match refusal {
            Refusal::UnknownKernel => format!("'{}' is not a kernel", self.name),
            Refusal::Invalid(message) | Refusal::Failed(message) => message,
        })
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        registry::remove_kernel(self.host());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    /// Adds `by` to the single that a thread has.
    const ADD: &str = "
        .version 9.0
        .target sm_90a
        .address_size 64
        .visible .entry add(.param .u64 x, .param .f32 by)
        {
            .reg .b32 %r<2>; .reg .b64 %d<4>; .reg .f32 %f<4>;
            ld.param.u64 %d1, [x]; ld.param.f32 %f1, [by];
            mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2;
            ld.global.f32 %f2, [%d3]; add.f32 %f3, %f2, %f1; st.global.f32 [%d3], %f3;
            ret;
        }";

    fn shape(grid: [u32; 3], threads: u32) -> Shape {
        Shape {
            grid,
            block: [threads, 1, 1],
            cluster: [1; 3],
            dynamic_shared_bytes: 0,
            overlaps_previous: false,
        }
    }

    /// Of `add`, at an address.
    fn arguments(x: u64, by: f32) -> [Vec<u8>; 2] {
        [x.to_le_bytes().to_vec(), by.to_le_bytes().to_vec()]
    }

    #[test]
    fn a_kernel_of_a_text_runs() {
        let singles = |values: &[f32]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        };
        let memory = Memory::from_bytes(&singles(&[1.0, 2.0, 3.0]));
        let given = arguments(memory.address() as u64, 0.5);
        let function = Function::load(ADD, "add").unwrap();
        assert_eq!(function.parameters(), [8, 4]);
        function.launch(&shape([1; 3], 3), &given).unwrap();
        assert_eq!(memory.to_bytes(), singles(&[1.5, 2.5, 3.5]));
        // Equal texts are one unit, and each kernel of it has its own life.
        drop(Function::load(ADD, "add").unwrap());
        function.launch(&shape([1; 3], 2), &given).unwrap();
        assert_eq!(memory.to_bytes(), singles(&[2.0, 3.0, 3.5]));
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        let memory = Memory::from_bytes(&[0; 8]);
        let x = memory.address() as u64;
        let function = Function::load(ADD, "add").unwrap();
        let refused = |text: &str, name| Function::load(text, name).unwrap_err();
        let launch = |grid, threads, given: &[Vec<u8>]| {
            function.launch(&shape(grid, threads), given).unwrap_err()
        };
        let given = arguments(x, 0.0);
        let greedy = Shape {
            dynamic_shared_bytes: 300 << 10,
            ..shape([1; 3], 1)
        };
        let crowded = Shape {
            cluster: [32, 1, 1],
            ..shape([32, 1, 1], 1)
        };
        for (message, wanted) in [
            (refused(ADD, "sub"), "sub"),
            (refused("add r1, r2;", "add"), "line 1"),
            (refused(&ADD.replace("add.f32", "add.f7"), "add"), "add.f7"),
            (refused(&ADD[..ADD.len() - 40], "add"), "line"),
            (launch([1; 3], 2, &given[..1]), "[8, 4] bytes, not [8]"),
            (launch([1; 3], 0, &given), "block"),
            (launch([1; 3], 1025, &given), "1024"),
            (launch([0, 1, 1], 2, &given), "grid"),
            // The third thread's single is not there, nor is anything at 16.
            (launch([1; 3], 3, &given), "ld.global.f32"),
            (launch([1; 3], 1, &arguments(16, 0.0)), "ld.global.f32"),
            (launch([1; 3], 1, &arguments(x + 1, 0.0)), "ld.global.f32"),
            (
                function.launch(&greedy, &given).unwrap_err(),
                "shared memory",
            ),
            (
                function.launch(&crowded, &given).unwrap_err(),
                "clusters of 32 blocks; 16 are the most",
            ),
        ] {
            assert!(message.contains(wanted), "{wanted}: {message}");
            assert!(
                !message.trim().is_empty() && message.lines().count() <= 3,
                "{message}"
            );
        }
    }
}

//! Kernels of PTX that no object brought along: loaded and launched by name.

use std::ffi::c_void;

use crate::registry::{self, Refusal, Shape};

#[derive(Debug)]
pub struct Function {
    /// Takes the place of a host function's address; nobody else has it.
    host: Box<u8>,
    unit: usize,
    name: String,
    dynamic_shared_bytes: u32,
}

impl Function {
    /// # Errors
    ///
    /// Where the interpreter refuses the text or the kernel, or the text has none of that name.
    pub fn load(text: &str, name: &str, dynamic_shared_bytes: u32) -> Result<Self, String> {
        let unit = registry::unit_of(text);
        registry::program(unit, name)?;
        let function = Self {
            host: Box::new(0),
            unit,
            name: name.to_owned(),
            dynamic_shared_bytes,
        };
        registry::add_kernel(unit, function.host(), name);
        registry::allow_shared(function.host(), dynamic_shared_bytes);
        Ok(function)
    }

    fn host(&self) -> usize {
        std::ptr::from_ref(&*self.host) as usize
    }

    /// Runs it to its end, with an argument in the low bytes of each word.
    ///
    /// # Errors
    ///
    /// Where the words are not its parameters, or the interpreter finds a fault.
    pub fn launch(&self, grid: [u32; 3], threads: u32, words: &[u64]) -> Result<(), String> {
        let program = registry::program(self.unit, &self.name)?;
        let sizes: Vec<u32> = program.parameters.iter().map(|(_, bytes)| *bytes).collect();
        if sizes.len() != words.len() || sizes.iter().any(|bytes| *bytes > 8) {
            return Err(format!(
                "{}: {} words given, its parameters have {sizes:?} bytes",
                self.name,
                words.len()
            ));
        }
        let shape = Shape {
            grid,
            block: [threads, 1, 1],
            cluster: [1; 3],
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            overlaps_previous: false,
        };
        let arguments: Vec<*const c_void> = words
            .iter()
            .map(|word| std::ptr::from_ref(word).cast())
            .collect();
        // SAFETY: there is a word for each parameter, and none is larger.
        let launched = unsafe { registry::launch(self.host(), &shape, arguments.as_ptr()) };
        launched.map_err(|refusal| match refusal {
            Refusal::UnknownKernel => format!("{}: no such kernel", self.name),
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

    #[test]
    fn words_are_arguments() {
        let singles = |values: &[f32]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        };
        let memory = Memory::from_bytes(&singles(&[1.0, 2.0, 3.0]));
        let words = [memory.address() as u64, u64::from(0.5f32.to_bits())];
        let function = Function::load(ADD, "add", 0).unwrap();
        function.launch([1; 3], 3, &words).unwrap();
        assert_eq!(memory.to_bytes(), singles(&[1.5, 2.5, 3.5]));
        // Equal texts are one unit, and each kernel of it has its own life.
        drop(Function::load(ADD, "add", 0).unwrap());
        function.launch([1; 3], 2, &words).unwrap();
        assert_eq!(memory.to_bytes(), singles(&[2.0, 3.0, 3.5]));
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        let memory = Memory::from_bytes(&[0; 8]);
        let words = [memory.address() as u64, 0];
        let function = Function::load(ADD, "add", 0).unwrap();
        let launch =
            |grid, threads, words: &[u64]| function.launch(grid, threads, words).unwrap_err();
        for (message, wanted) in [
            (Function::load(ADD, "sub", 0).unwrap_err(), "sub"),
            (
                Function::load("add r1, r2;", "add", 0).unwrap_err(),
                "line 1",
            ),
            (
                Function::load(&ADD.replace("add.f32", "add.f7"), "add", 0).unwrap_err(),
                "add.f7",
            ),
            (
                Function::load(&ADD[..ADD.len() - 40], "add", 0).unwrap_err(),
                "line",
            ),
            (launch([1; 3], 2, &words[..1]), "1 words given"),
            (launch([1; 3], 0, &words), "block"),
            (launch([1; 3], 1025, &words), "1024"),
            (launch([0, 1, 1], 2, &words), "grid"),
            // The third thread's single is not there, nor is anything at 16.
            (launch([1; 3], 3, &words), "ld.global.f32"),
            (launch([1; 3], 1, &[16, 0]), "ld.global.f32"),
            (launch([1; 3], 1, &[words[0] + 1, 0]), "ld.global.f32"),
        ] {
            assert!(message.contains(wanted), "{wanted}: {message}");
            assert!(
                !message.trim().is_empty() && message.lines().count() <= 3,
                "{message}"
            );
        }
        let greedy = Function::load(ADD, "add", 300 << 10).unwrap();
        let message = greedy.launch([1; 3], 1, &words).unwrap_err();
        assert!(message.contains("shared memory"), "{message}");
    }
}

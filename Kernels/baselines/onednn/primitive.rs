//! An operation as a primitive, and a primitive with its tensors.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::library::{check, Argument, Handle, Library, Status};
use crate::operation::{Operation, Product, Rows, Type};
use crate::Error;

const TRAINING: i32 = 64;
const INFERENCE: i32 = 96;
const BACKWARD: i32 = 128;
const SOFTMAX_ACCURATE: i32 = 0x30000;
/// A scale (2) and a shift (4) per column.
const WITH_WEIGHTS: u32 = 2 | 4;

/// Places of arguments: `DNNL_ARG_*`.
const SRC: i32 = 1;
const DST: i32 = 17;
const WEIGHTS: i32 = 33;
const MEAN: i32 = 49;
const VARIANCE: i32 = 50;
const SCALE: i32 = 51;
const SHIFT: i32 = 52;
const DIFF_SRC: i32 = 129;
const DIFF_DST: i32 = 145;
const DIFF_SCALE: i32 = 255;
const DIFF_SHIFT: i32 = 256;

/// A library object, destroyed on drop.
struct Object {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> Status,
}

impl Object {
    fn new(
        call: &'static str,
        destroy: unsafe extern "C" fn(Handle) -> Status,
        create: impl FnOnce(*mut Handle) -> Status,
    ) -> Result<Self, Error> {
        let mut handle = null_mut();
        check(call, create(&mut handle))?;
        Ok(Self { handle, destroy })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: made by the matching create function, destroyed once.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

/// A compiled primitive.
pub struct Primitive {
    library: &'static Library,
    /// Place and layout of every argument, in the order of [`Operation`].
    arguments: Vec<(i32, Object)>,
    primitive: Object,
    implementation: String,
}

/// A primitive with its tensors.
pub struct Call {
    primitive: Primitive,
    memories: Vec<Object>,
    arguments: Vec<Argument>,
    threads: usize,
}

impl Primitive {
    /// Compiles the kernel.
    pub fn new(operation: &Operation) -> Result<Self, Error> {
        let library = Library::get()?;
        let builder = Builder { library };
        let (arguments, description) = builder.description(operation).map_err(|error| {
            let unsupported = matches!(error, Error::Status { status: 2 | 3, .. });
            match unsupported {
                true => Error::Missing {
                    version: library.version().to_owned(),
                    operation: operation.to_string(),
                },
                false => error,
            }
        })?;
        let primitive = Object::new("dnnl_primitive_create", library.primitive_destroy, |to| {
            // SAFETY: `to` is valid for the call, and the description is alive.
            unsafe { (library.primitive_create)(to, description.handle) }
        })?;
        Ok(Self {
            library,
            arguments,
            primitive,
            implementation: library.implementation(description.handle),
        })
    }

    /// The library's name of the kernel, like `brg:avx512_core_amx`.
    pub fn implementation(&self) -> &str {
        &self.implementation
    }

    /// Ready to run with `threads` threads on these tensors, in the order of [`Operation`].
    ///
    /// # Safety
    /// The addresses are those of tensors with the operation's shapes and types; while the call exists,
    /// they stay valid, and while it runs nobody else touches them.
    pub unsafe fn bind(self, addresses: &[usize], threads: usize) -> Result<Call, Error> {
        let (given, expected) = (addresses.len(), self.arguments.len());
        if given != expected {
            return Err(Error::Arguments { given, expected });
        }
        let library = self.library;
        let mut memories = Vec::new();
        let mut arguments = Vec::new();
        for ((place, layout), &address) in self.arguments.iter().zip(addresses) {
            let memory = Object::new("dnnl_memory_create", library.memory_destroy, |to| {
                // SAFETY: `to` is valid for the call; the caller vouches for the address.
                unsafe {
                    let address = address as *mut c_void;
                    (library.memory_create)(to, layout.handle, library.engine, address)
                }
            })?;
            arguments.push(Argument {
                place: *place,
                memory: memory.handle,
            });
            memories.push(memory);
        }
        Ok(Call {
            primitive: self,
            memories,
            arguments,
            threads,
        })
    }
}

impl Call {
    pub fn run(&self) -> Result<(), Error> {
        let library = self.primitive.library;
        debug_assert_eq!(self.memories.len(), self.arguments.len());
        library.use_threads(self.threads);
        // SAFETY: primitive and memories are alive; `bind` was promised the tensors.
        unsafe {
            let executed = (library.execute)(
                self.primitive.primitive.handle,
                library.stream,
                self.arguments.len() as i32,
                self.arguments.as_ptr(),
            );
            check("dnnl_primitive_execute", executed)?;
            check("dnnl_stream_wait", (library.stream_wait)(library.stream))
        }
    }
}

type Described = Result<(Vec<(i32, Object)>, Object), Error>;

struct Builder {
    library: &'static Library,
}

impl Builder {
    fn layout(&self, sizes: &[usize], strides: &[usize], dtype: Type) -> Result<Object, Error> {
        let wide = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<_>>();
        let (sizes, strides) = (wide(sizes), wide(strides));
        let destroy = self.library.layout_destroy;
        Object::new("dnnl_memory_desc_create_with_strides", destroy, |to| {
            // SAFETY: both lists have as many entries as stated, and are copied in the call.
            unsafe {
                let (first, steps) = (sizes.as_ptr(), strides.as_ptr());
                (self.library.layout_create)(to, sizes.len() as i32, first, dtype.code(), steps)
            }
        })
    }

    fn matrix(&self, of: Rows) -> Result<Object, Error> {
        self.layout(&[of.rows, of.columns], &[of.columns, 1], of.dtype)
    }

    fn vector(&self, length: usize) -> Result<Object, Error> {
        self.layout(&[length], &[1], Type::F32)
    }

    fn described(
        &self,
        call: &'static str,
        create: impl FnOnce(*mut Handle) -> Status,
    ) -> Result<Object, Error> {
        Object::new(call, self.library.description_destroy, create)
    }

    fn description(&self, operation: &Operation) -> Described {
        match *operation {
            Operation::LayerNorm(of, epsilon) => {
                let arguments = vec![
                    (SRC, self.matrix(of)?),
                    (SCALE, self.vector(of.columns)?),
                    (SHIFT, self.vector(of.columns)?),
                    (DST, self.matrix(of)?),
                ];
                Ok((arguments, self.norm(of, epsilon, INFERENCE)?))
            }
            Operation::LayerNormBackward(of, epsilon) => self.norm_backward(of, epsilon),
            Operation::Softmax(of) => {
                Ok((self.matrices([SRC, DST], of)?, self.softmax(of, INFERENCE)?))
            }
            Operation::SoftmaxBackward(of) => {
                let (matrix, hint) = (self.matrix(of)?, self.softmax(of, TRAINING)?);
                let call = "dnnl_softmax_backward_primitive_desc_create";
                let backward = self.described(call, |to| {
                    let (m, hint, no) = (matrix.handle, hint.handle, null_mut());
                    let engine = self.library.engine;
                    let create = self.library.softmax_backward;
                    // SAFETY: all handles are alive.
                    unsafe { create(to, engine, SOFTMAX_ACCURATE, m, m, m, 1, hint, no) }
                })?;
                Ok((self.matrices([DST, DIFF_DST, DIFF_SRC], of)?, backward))
            }
            Operation::Elementwise(curve, of) => {
                let eltwise = self.eltwise(curve.code(), of, INFERENCE)?;
                Ok((self.matrices([SRC, DST], of)?, eltwise))
            }
            Operation::ElementwiseBackward(curve, of) => {
                let matrix = self.matrix(of)?;
                let hint = self.eltwise(curve.code(), of, TRAINING)?;
                let call = "dnnl_eltwise_backward_primitive_desc_create";
                let backward = self.described(call, |to| {
                    let (m, hint, no) = (matrix.handle, hint.handle, null_mut());
                    let (engine, curve) = (self.library.engine, curve.code());
                    let create = self.library.eltwise_backward;
                    // SAFETY: all handles are alive.
                    unsafe { create(to, engine, curve, m, m, m, 0.0, 0.0, hint, no) }
                })?;
                Ok((self.matrices([SRC, DIFF_DST, DIFF_SRC], of)?, backward))
            }
            Operation::Matmul(product) => self.matmul(product),
        }
    }

    /// Arguments that are all matrices of one layout.
    fn matrices<const N: usize>(
        &self,
        places: [i32; N],
        of: Rows,
    ) -> Result<Vec<(i32, Object)>, Error> {
        let places = places.into_iter();
        places.map(|place| Ok((place, self.matrix(of)?))).collect()
    }

    fn norm(&self, of: Rows, epsilon: f32, kind: i32) -> Result<Object, Error> {
        let (matrix, statistics) = (self.matrix(of)?, self.vector(of.rows)?);
        let call = "dnnl_layer_normalization_forward_primitive_desc_create";
        self.described(call, |to| {
            let (m, s, no) = (matrix.handle, statistics.handle, null_mut());
            let (engine, create) = (self.library.engine, self.library.layer_norm);
            // SAFETY: all handles are alive.
            unsafe { create(to, engine, kind, m, m, s, epsilon, WITH_WEIGHTS, no) }
        })
    }

    fn norm_backward(&self, of: Rows, epsilon: f32) -> Described {
        let (matrix, statistics) = (self.matrix(of)?, self.vector(of.rows)?);
        let hint = self.norm(of, epsilon, TRAINING)?;
        let call = "dnnl_layer_normalization_backward_primitive_desc_create";
        let backward = self.described(call, |to| {
            let (m, s, hint, no) = (matrix.handle, statistics.handle, hint.handle, null_mut());
            let (engine, create) = (self.library.engine, self.library.layer_norm_backward);
            // SAFETY: all handles are alive.
            unsafe {
                create(
                    to,
                    engine,
                    BACKWARD,
                    m,
                    m,
                    m,
                    s,
                    epsilon,
                    WITH_WEIGHTS,
                    hint,
                    no,
                )
            }
        })?;
        let arguments = vec![
            (SRC, self.matrix(of)?),
            (SCALE, self.vector(of.columns)?),
            (SHIFT, self.vector(of.columns)?),
            (DIFF_DST, self.matrix(of)?),
            (MEAN, self.vector(of.rows)?),
            (VARIANCE, self.vector(of.rows)?),
            (DIFF_SRC, self.matrix(of)?),
            (DIFF_SCALE, self.vector(of.columns)?),
            (DIFF_SHIFT, self.vector(of.columns)?),
        ];
        Ok((arguments, backward))
    }

    fn softmax(&self, of: Rows, kind: i32) -> Result<Object, Error> {
        let matrix = self.matrix(of)?;
        let call = "dnnl_softmax_forward_primitive_desc_create";
        self.described(call, |to| {
            let (m, engine, create) = (matrix.handle, self.library.engine, self.library.softmax);
            // SAFETY: all handles are alive.
            unsafe { create(to, engine, kind, SOFTMAX_ACCURATE, m, m, 1, null_mut()) }
        })
    }

    fn eltwise(&self, curve: i32, of: Rows, kind: i32) -> Result<Object, Error> {
        let matrix = self.matrix(of)?;
        let call = "dnnl_eltwise_forward_primitive_desc_create";
        self.described(call, |to| {
            let (m, engine, create) = (matrix.handle, self.library.engine, self.library.eltwise);
            // SAFETY: all handles are alive.
            unsafe { create(to, engine, kind, curve, m, m, 0.0, 0.0, null_mut()) }
        })
    }

    fn matmul(&self, Product { m, n, k, dtype }: Product) -> Described {
        let a = self.layout(&[m, k], &[k, 1], dtype)?;
        // A [k, n] matrix to oneDNN, whose k is contiguous.
        let b = self.layout(&[k, n], &[1, k], dtype)?;
        let out = self.layout(&[m, n], &[n, 1], dtype)?;
        let description = self.described("dnnl_matmul_primitive_desc_create", |to| {
            let (a, b, out, no) = (a.handle, b.handle, out.handle, null_mut());
            let (engine, create) = (self.library.engine, self.library.matmul);
            // SAFETY: all handles are alive.
            unsafe { create(to, engine, a, b, no, out, no) }
        })?;
        Ok((vec![(SRC, a), (WEIGHTS, b), (DST, out)], description))
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::Curve;

    const ROW: Rows = Rows {
        rows: 1,
        columns: 4,
        dtype: Type::F32,
    };

    #[test]
    fn one_and_two_threads_give_the_softmax_of_a_row() {
        for threads in [1, 2] {
            let (x, mut out) = ([0f32, 0.0, 3f32.ln(), 0.0], [f32::NAN; 4]);
            let softmax = Primitive::new(&Operation::Softmax(ROW)).unwrap();
            assert!(!softmax.implementation().is_empty());
            let addresses = [x.as_ptr() as usize, out.as_mut_ptr() as usize];
            // SAFETY: two rows of four numbers, which outlive the call.
            let call = unsafe { softmax.bind(&addresses, threads) }.unwrap();
            call.run().unwrap();
            let right = [1.0 / 6.0, 1.0 / 6.0, 0.5, 1.0 / 6.0];
            let near = |(out, right): (&f32, &f32)| (out - right).abs() < 1e-6;
            assert!(out.iter().zip(&right).all(near), "{out:?}");
        }
    }

    #[test]
    fn a_missing_tensor_is_refused() {
        let gelu = Operation::ElementwiseBackward(Curve::GeluErf, ROW);
        // SAFETY: no tensor is given.
        let refused = unsafe { Primitive::new(&gelu).unwrap().bind(&[], 1) };
        let error = refused.err().unwrap().to_string();
        assert_eq!(error, "0 tensors were given to a primitive that takes 3");
    }
}

//! Shared by oneDNN's contenders: what it supports, and operations with their tensors.

use contender::{
    bound, Binding, Contender, ContenderError, DeviceKind, Facts, Identity, Problem, Tensors,
};
use host::Element;
use numeric::DType;
use onednn::{Library, Operation, Primitive, Type};
use shared::memory::{In, Out};

/// A contender of problems that are one primitive each. Whether there is one, only oneDNN knows: it is
/// compiled to find out.
pub fn contender<P: Problem>(
    timed_region: &str,
    operation: fn(&P) -> Result<Operation, String>,
    bind: fn(&P, &Tensors) -> Binding,
) -> Box<dyn Contender<P>> {
    contender::contender(
        identity(timed_region),
        DeviceKind::Cpu,
        move |problem: &P, _device| obstacle(operation(problem)),
        move |problem, tensors, _device| bind(problem, tensors),
    )
}

pub fn identity(timed_region: &str) -> Identity {
    let libraries = Library::get().map_or(Vec::new(), |library| library.records().to_vec());
    Identity::loaded("onednn", libraries, timed_region)
}

/// Why an operation cannot run, if so.
pub fn obstacle(operation: Result<Operation, String>) -> Option<String> {
    let library = Library::get().map_err(|error| error.to_string());
    let operation = library.and(operation);
    let compiled = operation
        .and_then(|operation| Primitive::new(&operation).map_err(|error| error.to_string()));
    compiled.err()
}

pub fn data_type(dtype: DType) -> Result<Type, String> {
    match dtype {
        DType::F32 => Ok(Type::F32),
        DType::F16 => Ok(Type::F16),
        DType::Bf16 => Ok(Type::Bf16),
        other => Err(format!("{other} is not supported; use f32, f16 or bf16")),
    }
}

/// Work around the primitive, for vectors that oneDNN wants in another form.
type Conversion = Box<dyn FnMut()>;

/// The arguments of a primitive, in its order.
pub struct Operands<'a> {
    tensors: &'a Tensors<'a>,
    addresses: Vec<usize>,
    before: Vec<Conversion>,
    after: Vec<Conversion>,
    zeros: Vec<Vec<f32>>,
}

impl<'a> Operands<'a> {
    pub fn new(tensors: &'a Tensors<'a>) -> Self {
        Self {
            tensors,
            addresses: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            zeros: Vec::new(),
        }
    }

    /// A tensor as it is.
    pub fn tensor(&mut self, name: &str) -> Result<(), ContenderError> {
        self.addresses.push(self.tensors.address(name)?);
        Ok(())
    }

    pub fn tensors<const N: usize>(&mut self, names: [&str; N]) -> Result<(), ContenderError> {
        names.into_iter().try_for_each(|name| self.tensor(name))
    }

    /// A vector that the primitive asks for and does not use.
    pub fn zeros(&mut self, length: usize) {
        let mut zeros = vec![0.0; length];
        self.addresses.push(zeros.as_mut_ptr() as usize);
        self.zeros.push(zeros);
    }

    /// A vector that is read, in f32.
    pub fn widened<T: Element>(&mut self, values: In<T>) {
        self.computed(values, |from, to| T::widen_all(from, to));
    }

    /// A vector in f32 that is computed from another.
    pub fn computed<T: Element>(&mut self, values: In<T>, compute: fn(&[T], &mut [f32])) {
        let mut wide = vec![0.0; values.len()];
        self.addresses.push(wide.as_mut_ptr() as usize);
        self.before
            .push(Box::new(move || compute(&values, &mut wide)));
    }

    /// A vector that is written, from f32.
    pub fn narrowed<T: Element>(&mut self, mut values: Out<T>) {
        let mut wide = vec![0.0; values.len()];
        self.addresses.push(wide.as_mut_ptr() as usize);
        self.after
            .push(Box::new(move || T::narrow_all(&wide, &mut values)));
    }

    /// The operation on these operands.
    ///
    /// # Safety
    /// They have its shapes and types, stay valid for as long as what is bound, and nobody else touches
    /// them while it runs.
    pub unsafe fn bind(self, operation: &Operation) -> Binding {
        let primitive = Primitive::new(operation).map_err(ContenderError::new)?;
        libraries::only_recorded().map_err(ContenderError::new)?;
        let threads = host::threads();
        let facts = facts(&primitive, threads);
        // SAFETY: the caller's promise; converted vectors live in the closures below.
        let call = unsafe { primitive.bind(&self.addresses, threads) };
        let call = call.map_err(ContenderError::new)?;
        let (mut before, mut after, zeros) = (self.before, self.after, self.zeros);
        Ok(bound(facts, move |_stream| {
            let _alive = &zeros;
            before.iter_mut().for_each(|convert| convert());
            call.run()?;
            after.iter_mut().for_each(|convert| convert());
            Ok::<_, onednn::Error>(())
        }))
    }
}

pub fn facts(primitive: &Primitive, threads: usize) -> Facts {
    Facts::from([
        ("kernel".to_owned(), primitive.implementation().into()),
        ("threads".to_owned(), threads.into()),
    ])
}

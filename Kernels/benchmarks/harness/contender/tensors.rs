//! A problem's buffers, by the names of its tensors.

use tensor::TensorSpec;

use crate::{Buffer, ContenderError, Problem};

#[derive(Clone, Copy, Debug)]
pub struct Tensors<'a> {
    specs: &'a [TensorSpec],
    /// None where nothing is bound yet: every tensor is then at 0.
    buffers: Option<&'a [Buffer]>,
}

impl<'a> Tensors<'a> {
    pub fn new<P: Problem + ?Sized>(
        problem: &'a P,
        buffers: &'a [Buffer],
    ) -> Result<Self, ContenderError> {
        let specs = problem.tensors();
        let fits = |(spec, buffer): (&TensorSpec, &Buffer)| spec.bytes() == buffer.bytes;
        if specs.len() != buffers.len() || !specs.iter().zip(buffers).all(fits) {
            return Err(ContenderError::new("buffers of another problem"));
        }
        Ok(Self {
            specs,
            buffers: Some(buffers),
        })
    }

    /// For asking a library what it would do; every address is 0.
    pub fn unbound<P: Problem + ?Sized>(problem: &'a P) -> Self {
        Self {
            specs: problem.tensors(),
            buffers: None,
        }
    }

    pub fn specs(&self) -> &'a [TensorSpec] {
        self.specs
    }

    pub fn has(&self, name: &str) -> bool {
        self.specs.iter().any(|spec| spec.name == name)
    }

    /// Its place in the problem's list.
    pub fn place(&self, name: &str) -> Result<usize, ContenderError> {
        let place = self.specs.iter().position(|spec| spec.name == name);
        place.ok_or_else(|| {
            let names: Vec<&str> = self.specs.iter().map(|spec| spec.name).collect();
            let known = names.join(", ");
            ContenderError::new(format!("no tensor '{name}'; the problem has {known}"))
        })
    }

    pub fn address(&self, name: &str) -> Result<usize, ContenderError> {
        let place = self.place(name)?;
        Ok(self.buffers.map_or(0, |buffers| buffers[place].address))
    }

    /// 0 where the problem has no such tensor.
    pub fn address_or_null(&self, name: &str) -> usize {
        self.address(name).unwrap_or(0)
    }

    /// Several at once, in the order of their names.
    pub fn addresses<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[usize; N], ContenderError> {
        let mut addresses = [0; N];
        for (address, name) in addresses.iter_mut().zip(names) {
            *address = self.address(name)?;
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use numeric::DType;
    use tensor::Inputs;

    use super::*;
    use crate::{Cost, Math, Slice, Statement, Workload};

    struct Copying(Statement);

    impl Problem for Copying {
        fn statement(&self) -> &Statement {
            &self.0
        }

        fn cost(&self) -> Cost {
            Cost::of_whole_tensors(self.tensors(), 0.0, Math::Fp32)
        }

        fn units(&self) -> usize {
            1
        }

        fn oracle(&self, _inputs: &Inputs, _unit: usize) -> Vec<Slice> {
            Vec::new()
        }

        fn honest(&self, _inputs: &Inputs, _unit: usize) -> Vec<Slice> {
            Vec::new()
        }
    }

    fn copying() -> Copying {
        Copying(Statement {
            op: "copy",
            dtype: DType::F32,
            workload: Workload {
                name: "4".to_owned(),
                suite: "test".to_owned(),
                ..Workload::default()
            },
            tensors: vec![
                TensorSpec::input("x", DType::F32, &[4]),
                TensorSpec::output("y", DType::F32, &[4]),
            ],
        })
    }

    #[test]
    fn names_give_addresses_and_unknown_ones_an_error_with_those_that_exist() {
        let (problem, bytes) = (copying(), 16);
        let buffers = [256, 512].map(|address| Buffer { address, bytes });
        let tensors = Tensors::new(&problem, &buffers).unwrap();
        assert_eq!(tensors.addresses(["y", "x"]), Ok([512, 256]));
        assert_eq!(tensors.address_or_null("bias"), 0);
        let error = tensors.address("bias").unwrap_err().to_string();
        assert_eq!(error, "no tensor 'bias'; the problem has x, y");
        assert_eq!(Tensors::unbound(&problem).address("y"), Ok(0));
    }

    #[test]
    fn buffers_of_another_problem_are_refused() {
        let buffer = |bytes| Buffer {
            address: 256,
            bytes,
        };
        for buffers in [vec![buffer(16)], vec![buffer(16), buffer(12)]] {
            assert!(Tensors::new(&copying(), &buffers).is_err());
        }
    }
}

//! A problem's tensors in host memory, as slices.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use contender::{ContenderError, Tensors};
use host::Plain;

/// Hands out each tensor once, so that nothing it hands out overlaps.
pub struct Memory<'a> {
    tensors: &'a Tensors<'a>,
    /// One bit per tensor.
    taken: Cell<u64>,
}

/// A tensor that is read.
pub struct In<T> {
    first: *const T,
    length: usize,
}

/// A tensor that is written, and perhaps read.
pub struct Out<T> {
    first: *mut T,
    length: usize,
}

impl<'a> Memory<'a> {
    /// # Safety
    /// The buffers are host memory, aligned for every element type, and outlive what is taken from
    /// here. While a slice of one is in use, nobody else touches it.
    pub unsafe fn new(tensors: &'a Tensors<'a>) -> Self {
        let taken = Cell::new(0);
        Self { tensors, taken }
    }

    pub fn read<T: Plain>(&self, name: &str) -> Result<In<T>, ContenderError> {
        let (address, length) = self.take::<T>(name, false)?;
        let first = address as *const T;
        Ok(In { first, length })
    }

    pub fn write<T: Plain>(&self, name: &str) -> Result<Out<T>, ContenderError> {
        let (address, length) = self.take::<T>(name, true)?;
        let first = address as *mut T;
        Ok(Out { first, length })
    }

    /// Address and elements of a tensor of `T`.
    fn take<T>(&self, name: &str, written: bool) -> Result<(usize, usize), ContenderError> {
        let place = self.tensors.place(name)?;
        let spec = &self.tensors.specs()[place];
        let refuse = |why| Err(ContenderError::new(format!("tensor '{name}' {why}")));
        if spec.role.is_written() != written {
            return refuse("was taken for writing but is read-only, or the reverse");
        }
        if spec.dtype.size_bytes() != size_of::<T>() {
            return refuse("has elements of a different size");
        }
        let bit = 1 << place;
        if self.taken.get() & bit != 0 {
            return refuse("is already taken");
        }
        self.taken.set(self.taken.get() | bit);
        Ok((self.tensors.address(name)?, spec.elements()))
    }
}

impl<T: Plain> Deref for In<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `Memory::new` was promised that the buffer lives and is aligned; `take` has
        // checked its number of elements, and lends it once; any bits are a value of a plain type.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

impl<T: Plain> Deref for Out<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as for `In`.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

impl<T: Plain> DerefMut for Out<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `In`; this is the tensor's only owner.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.length) }
    }
}

#[cfg(test)]
mod tests {
    use contender::Buffer;
    use faults::Scaled;

    use super::*;

    #[test]
    fn a_tensor_is_lent_once_as_what_it_is() {
        let problem = Scaled::new(2, 2);
        let (mut x, mut w, mut y) = ([1f32, 2.0, 3.0, 4.0], [5f32, 6.0], [0f32; 4]);
        let buffers = [&mut x[..], &mut w, &mut y].map(|values| Buffer {
            address: values.as_mut_ptr() as usize,
            bytes: size_of_val(values),
        });
        let tensors = Tensors::new(&problem, &buffers).unwrap();
        // SAFETY: the arrays outlive what is taken, and are not touched while it is in use.
        let memory = unsafe { Memory::new(&tensors) };
        let refused = |result: Result<In<f32>, ContenderError>, words: &str| {
            let error = result.err().expect("refused").to_string();
            assert!(error.contains(words), "{error}");
        };
        refused(memory.read("z"), "no tensor 'z'; the problem has x, w, y");
        refused(memory.read("y"), "or the reverse");
        assert!(memory.write::<f32>("x").is_err(), "only read");
        assert!(memory.read::<u8>("x").is_err(), "of a different size");
        let from = memory.read::<f32>("x").unwrap();
        memory.write("y").unwrap().copy_from_slice(&from);
        refused(memory.read("x"), "is already taken");
        assert!(memory.write::<f32>("y").is_err(), "already taken");
        assert_eq!(y, x);
    }
}

//! Descriptors of the backend API.

use std::ffi::c_void;
use std::ptr;

use crate::enums::{Attribute, Kind, Type};
use crate::library::{Handle, Library, RawDescriptor};
use crate::Error;

/// Values of attributes, each with its type in cuDNN.
pub(crate) trait Value: Copy {
    const TYPE: Type;
}

macro_rules! values {
    ($($rust:ty => $type:ident,)*) => {
        $(impl Value for $rust { const TYPE: Type = Type::$type; })*
    };
}

values! {
    bool => Boolean,
    u8 => Char,
    i64 => Int64,
    f64 => Double,
    crate::DataType => Element,
    crate::enums::Heuristics => Heuristics,
    crate::enums::Pointwise => PointwiseMode,
    crate::enums::Reduce => ReductionOperator,
    crate::enums::NormMode => NormMode,
    crate::enums::NormPhase => NormPhase,
}

/// Destroyed on drop.
pub(crate) struct Descriptor {
    library: &'static Library,
    raw: RawDescriptor,
}

impl Descriptor {
    pub(crate) fn new(library: &'static Library, kind: Kind) -> Result<Self, Error> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer.
        let status = unsafe { (library.functions.create_descriptor)(kind as i32, &mut raw) };
        library.check("cudnnBackendCreateDescriptor", status)?;
        Ok(Self { library, raw })
    }

    pub(crate) fn raw(&self) -> RawDescriptor {
        self.raw
    }

    pub(crate) fn set<V: Value>(&self, attribute: Attribute, values: &[V]) -> Result<(), Error> {
        self.set_raw(attribute, V::TYPE, values)
    }

    pub(crate) fn set_one<V: Value>(&self, attribute: Attribute, value: V) -> Result<(), Error> {
        self.set(attribute, &[value])
    }

    pub(crate) fn set_descriptors(
        &self,
        attribute: Attribute,
        descriptors: &[&Descriptor],
    ) -> Result<(), Error> {
        let raw: Vec<RawDescriptor> = descriptors.iter().map(|each| each.raw).collect();
        self.set_raw(attribute, Type::Descriptor, &raw)
    }

    pub(crate) fn set_handle(&self, attribute: Attribute, handle: Handle) -> Result<(), Error> {
        self.set_raw(attribute, Type::Handle, &[handle])
    }

    pub(crate) fn set_pointers(
        &self,
        attribute: Attribute,
        pointers: &[*mut c_void],
    ) -> Result<(), Error> {
        self.set_raw(attribute, Type::Pointer, pointers)
    }

    fn set_raw<V>(&self, attribute: Attribute, kind: Type, values: &[V]) -> Result<(), Error> {
        // SAFETY: the given number of values, of the type that `kind` names.
        let status = unsafe {
            (self.library.functions.set_attribute)(
                self.raw,
                attribute as i32,
                kind as i32,
                values.len() as i64,
                values.as_ptr().cast(),
            )
        };
        self.library.check("cudnnBackendSetAttribute", status)
    }

    pub(crate) fn get_i64(&self, attribute: Attribute) -> Result<i64, Error> {
        let (mut count, mut value) = (0, 0i64);
        // SAFETY: writes at most one value and their number.
        let status = unsafe {
            (self.library.functions.get_attribute)(
                self.raw,
                attribute as i32,
                Type::Int64 as i32,
                1,
                &mut count,
                ptr::from_mut(&mut value).cast(),
            )
        };
        self.library.check("cudnnBackendGetAttribute", status)?;
        Ok(value)
    }

    pub(crate) fn get_text(&self, attribute: Attribute) -> Result<Vec<u8>, Error> {
        let mut count = 0;
        let mut text = Vec::new();
        // First the length, then the text.
        for _ in 0..2 {
            text.resize(usize::try_from(count).unwrap_or(0), 0u8);
            // SAFETY: writes at most as many bytes as there is room for, and their number.
            let status = unsafe {
                (self.library.functions.get_attribute)(
                    self.raw,
                    attribute as i32,
                    Type::Char as i32,
                    count,
                    &mut count,
                    if text.is_empty() {
                        ptr::null_mut()
                    } else {
                        text.as_mut_ptr().cast()
                    },
                )
            };
            self.library.check("cudnnBackendGetAttribute", status)?;
        }
        Ok(text)
    }

    /// Descriptors in an attribute, best first; at most `most`.
    pub(crate) fn get_descriptors(
        &self,
        attribute: Attribute,
        kind: Kind,
        most: usize,
    ) -> Result<Vec<Descriptor>, Error> {
        let mut found = (0..most)
            .map(|_| Descriptor::new(self.library, kind))
            .collect::<Result<Vec<_>, _>>()?;
        let mut raw: Vec<RawDescriptor> = found.iter().map(Descriptor::raw).collect();
        let mut count = 0;
        // SAFETY: fills descriptors that exist, `most` at most, and writes their number.
        let status = unsafe {
            (self.library.functions.get_attribute)(
                self.raw,
                attribute as i32,
                Type::Descriptor as i32,
                most as i64,
                &mut count,
                raw.as_mut_ptr().cast(),
            )
        };
        self.library.check("cudnnBackendGetAttribute", status)?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        Ok(found)
    }

    pub(crate) fn finalize(&self, what: &'static str) -> Result<(), Error> {
        // SAFETY: the descriptor exists.
        self.library
            .check(what, unsafe { (self.library.functions.finalize)(self.raw) })
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: created by this value, and used nowhere after it.
        unsafe { (self.library.functions.destroy_descriptor)(self.raw) };
    }
}

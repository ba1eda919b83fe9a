//! The bindings of Rust are those of the header, field by field.

use std::mem::offset_of;

use contender_abi::{Axis, Description, OracleDescription, Problem, Tensor};

#[test]
fn every_field_is_where_the_header_has_it() {
    let rust = [
        size_of::<Tensor>(),
        offset_of!(Tensor, role),
        offset_of!(Tensor, dtype),
        offset_of!(Tensor, rank),
        offset_of!(Tensor, shape),
        offset_of!(Tensor, strides),
        offset_of!(Tensor, bytes),
        offset_of!(Tensor, address),
        size_of::<Axis>(),
        offset_of!(Axis, text),
        offset_of!(Axis, number),
        size_of::<Problem>(),
        offset_of!(Problem, abi_version),
        offset_of!(Problem, op),
        offset_of!(Problem, dtype),
        offset_of!(Problem, axes),
        offset_of!(Problem, axis_count),
        offset_of!(Problem, tensors),
        offset_of!(Problem, tensor_count),
        offset_of!(Problem, device),
        offset_of!(Problem, multiprocessors),
        offset_of!(Problem, arch),
        offset_of!(Problem, options),
        offset_of!(Problem, json),
        size_of::<Description>(),
        offset_of!(Description, struct_bytes),
        offset_of!(Description, name),
        offset_of!(Description, version),
        offset_of!(Description, ops),
        offset_of!(Description, supports),
        offset_of!(Description, bind),
        offset_of!(Description, enqueue),
        offset_of!(Description, facts),
        offset_of!(Description, destroy),
        size_of::<OracleDescription>(),
        offset_of!(OracleDescription, struct_bytes),
        offset_of!(OracleDescription, name),
        offset_of!(OracleDescription, version),
        offset_of!(OracleDescription, ops),
        offset_of!(OracleDescription, answer),
    ];
    let zoo = std::fs::canonicalize(std::env::var("ZOO").unwrap()).unwrap();
    // SAFETY: has no code that runs when it is loaded, and a table of as many sizes.
    let header = unsafe {
        let library = libloading::Library::new(zoo.with_file_name("liblayout.so")).unwrap();
        let table = library
            .get::<*const [usize; 40]>(b"contender_layout\0")
            .unwrap();
        **table
    };
    assert_eq!(rust, header);
}

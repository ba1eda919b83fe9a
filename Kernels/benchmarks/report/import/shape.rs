//! One shape of a bench.

use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// For people; several shapes may have the same.
    pub label: String,
    /// As the bench's `--configs` takes it, if it can say everything.
    pub config: Option<String>,
    /// As a workload file gives it.
    pub members: Map<String, Value>,
    /// What the bench does not repeat.
    pub note: String,
}

impl Shape {
    pub fn new(label: String, members: Value) -> Shape {
        let Value::Object(members) = members else {
            unreachable!("a shape is an object");
        };
        Shape {
            label,
            config: None,
            members,
            note: String::new(),
        }
    }
}

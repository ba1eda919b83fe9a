//! The operations of native sparse attention: its three branches and their sum.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NsaOp {
    /// Attention over the key blocks selected for each query.
    Selected,
    /// Attention over one key and value per complete block that ends at or before the query.
    Compressed,
    /// Attention over the last keys up to the query.
    Sliding,
    /// The three outputs, each times a gate per token and head.
    Gated,
}

/// The tensors that the gated sum adds, and their gates.
pub const GATED: [(&str, &str); 3] = [
    ("compressed", "gate_compressed"),
    ("selected", "gate_selected"),
    ("sliding", "gate_sliding"),
];

impl NsaOp {
    pub const ALL: [NsaOp; 4] = [
        NsaOp::Selected,
        NsaOp::Compressed,
        NsaOp::Sliding,
        NsaOp::Gated,
    ];

    pub fn name(self) -> &'static str {
        match self {
            NsaOp::Selected => "nsa_selected_fwd",
            NsaOp::Compressed => "nsa_compressed_fwd",
            NsaOp::Sliding => "nsa_sliding_fwd",
            NsaOp::Gated => "nsa_gated_fwd",
        }
    }
}

impl fmt::Display for NsaOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

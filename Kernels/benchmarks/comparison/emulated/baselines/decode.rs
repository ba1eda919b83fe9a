//! FlashInfer's XQA, compiled from its sources.

use contender::DeviceKind;
use numeric::DType;
use support::Table;
use workloads::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType};

const NAME: &str = "flashinfer_xqa";

/// Four query heads per KV head of 128, pages of 16.
fn shape(lengths: &[usize], q_len: usize, kv_heads: usize) -> DecodeShape {
    DecodeShape {
        lengths: lengths.to_vec(),
        q_len,
        heads: 4 * kv_heads,
        kv_heads,
        head_dim: 128,
        page_size: 16,
        layout: KvLayout::Nhd,
        kv_type: KvType::Same,
    }
}

fn over_fp8(shape: DecodeShape) -> DecodeShape {
    DecodeShape {
        layout: KvLayout::Hnd,
        kv_type: KvType::Fp8,
        ..shape
    }
}

fn seeded(shape: DecodeShape) -> DecodeProblem {
    let workload = DecodeSuite::custom(&shape);
    DecodeProblem::seeded(shape, DType::Bf16, workload, 9)
}

/// A block per sequence and KV head, because sequences have one tile, or because there are many of them.
#[test]
fn right_where_nothing_is_split() {
    let mut table = Table::default();
    let contenders = decode_contenders::contenders(DeviceKind::Ptx);
    let many = [600, 37, 1, 16, 257, 3, 48, 130, 5];
    for shape in [
        shape(&[250, 37, 1], 1, 2),
        shape(&[250, 37, 3], 3, 2),
        over_fp8(shape(&[250, 37, 1], 1, 2)),
        shape(&many, 1, 8),
        over_fp8(shape(&many, 1, 8)),
    ] {
        table.assert_right(&contenders, NAME, &seeded(shape));
    }
}

/// Every block of a split sequence writes its part to the output, and the last one writes what it has merged over it.
/// Nothing keeps the others from writing later: on several threads the interpreter leaves parts in the output.
#[test]
fn right_but_for_the_order_of_outputs() {
    let table = Table::default();
    let contenders = decode_contenders::contenders(DeviceKind::Ptx);
    for shape in [
        shape(&[600, 37, 1], 1, 2),
        shape(&[4000, 600, 16], 1, 2),
        shape(&[600, 37, 3], 3, 2),
        over_fp8(shape(&[600, 37, 1], 1, 2)),
    ] {
        table.assert_right_block_by_block(&contenders, NAME, &seeded(shape));
    }
}

use super::*;
use crate::gemm::suites::GemmSuite;
use crate::testing::{
    assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
};

fn problem(layout: RowLayout, n: usize, k: usize, dtype: DType) -> GemmProblem {
    let workload = GemmSuite::custom(layout.rows, n, k).2;
    GemmProblem::new(GemmShape { n, k }, layout, dtype, workload).unwrap()
}

const DTYPES: [DType; 7] = [
    DType::Bf16,
    DType::F16,
    DType::F8E4M3,
    DType::Fp8Ue8m0,
    DType::Mxfp8,
    DType::Nvfp4,
    DType::Mxfp4,
];

fn layouts() -> [RowLayout; 3] {
    [
        RowLayout::dense(5),
        RowLayout::contiguous(vec![3, 0, 128, 1]),
        RowLayout::masked(vec![0, 2, 4], 4),
    ]
}

#[test]
fn cost_leaves_padding_and_empty_groups_out() {
    let layout = RowLayout::contiguous(vec![3, 0, 1]);
    let cost = problem(layout, 8, 128, DType::F8E4M3).cost();
    assert_eq!(cost.flops, 2.0 * 4.0 * 8.0 * 128.0);
    assert_eq!(cost.written_bytes, 4.0 * 8.0 * 2.0);
    let (operands, scales, index) = ((4 + 2 * 8) * 128, (4 + 2) * 4, 256 * 4);
    assert_eq!(cost.read_bytes, (operands + scales + index) as f64);
}

#[test]
fn blocks_of_b_have_one_power_of_two() {
    let layout = RowLayout::masked(vec![0, 2, 4], 4);
    let problem = problem(layout, 200, 384, DType::Fp8Ue8m0);
    let inputs = Inputs::new(problem.tensors(), 1);
    let (scales, tiles) = (inputs.tensor("b_scales"), problem.layout.tiles_of_b(200));
    let scale =
        |group: usize, row: usize, block| scales.get(tiles.place(group * 200 + row, block, 3));
    for (group, block) in [1, 2]
        .into_iter()
        .flat_map(|group| [0, 1, 2].map(|block| (group, block)))
    {
        for row in 0..200 {
            let first = scale(group, row / 128 * 128, block);
            assert_eq!(scale(group, row, block), first, "{group} {row} {block}");
        }
    }
    // Neighbours differ somewhere, those of an empty group are NaN.
    let all = (0..3).map(|block| [scale(1, 0, block), scale(1, 128, block)]);
    assert!(all.clone().any(|[above, below]| above != below));
    assert!(scale(0, 0, 0).is_nan());
    // 6 rows, and two blocks of rows in each of two matrices.
    let cost = problem.cost();
    let (operands, scales) = ((6 + 2 * 200) * 384, (6 + 2 * 2) * 3);
    assert_eq!(cost.read_bytes, (operands + scales + 3 * 4) as f64);
    assert_eq!(cost.math, Math::TensorCore(DType::F8E4M3));
}

#[test]
fn units_cover_every_written_element_once() {
    for layout in layouts() {
        for dtype in DTYPES {
            assert_units_cover_outputs_once(&problem(layout.clone(), 40, 128, dtype));
        }
    }
}

#[test]
fn honest_values_are_near_the_oracle_and_representable() {
    for layout in layouts() {
        for dtype in DTYPES {
            let problem = problem(layout.clone(), 24, 1024, dtype);
            assert_honest_is_near(&problem, &[0, problem.units() - 1], 2.0);
            assert_honest_on_families(&problem, &[0, problem.units() - 1], 2.0);
        }
    }
}

/// Where a matrix of its own has the scale of a block, as cuBLASLt documents it: tiles of 128 rows by 4, those of
/// the same rows first; in a tile 16 bytes for each of 32 rows, 4 of them for each of its 4 blocks of rows.
fn documented_place(row: usize, block: usize, tiles_across: usize) -> usize {
    let (tile_row, tile_block) = (row / 128, block / 4);
    let (inner_row, inner_block) = (row % 128, block % 4);
    (tile_row * tiles_across + tile_block) * 512
        + (inner_row % 32) * 16
        + (inner_row / 32) * 4
        + inner_block
}

#[test]
fn scales_of_a_group_are_tiles_of_a_product_of_its_own() {
    const N: usize = 200;
    let layouts = [
        RowLayout::dense(300),
        RowLayout::contiguous(vec![3, 0, 140, 1]),
        RowLayout::masked(vec![0, 130, 4], 136),
    ];
    for (layout, (dtype, block_size)) in layouts
        .iter()
        .flat_map(|layout| [(DType::Mxfp8, 32), (DType::Nvfp4, 16)].map(|dtype| (layout, dtype)))
    {
        let problem = problem(layout.clone(), N, 384, dtype);
        let blocks = 384 / block_size;
        let [a_bytes, b_bytes] =
            ["a_scales", "b_scales"].map(|name| problem.statement().tensor(name).bytes());
        for (group, rows) in layout.used_ranges() {
            let [a_before, b_before] = problem.scale_tiles_before(group);
            // The library reads whole tiles.
            let read = |rows: usize| rows.div_ceil(128) * blocks / 4 * 512;
            assert!(a_before + read(rows.len()) <= a_bytes, "{dtype} {layout:?}");
            assert!(b_before + read(N) <= b_bytes, "{dtype} {layout:?}");
            for block in 0..blocks {
                for row in 0..rows.len() {
                    let place = layout.tiles_of_a().place(rows.start + row, block, blocks);
                    let documented = documented_place(row, block, blocks / 4);
                    assert_eq!(place, a_before + documented, "{dtype} {layout:?}");
                }
                for row in 0..N {
                    let place = layout.tiles_of_b(N).place(group * N + row, block, blocks);
                    let documented = documented_place(row, block, blocks / 4);
                    assert_eq!(place, b_before + documented, "{dtype} {layout:?}");
                }
            }
        }
    }
    let without = problem(RowLayout::contiguous(vec![3, 1]), 8, 128, DType::F8E4M3);
    assert_eq!(without.scale_tiles_before(1), [0, 0]);
}

#[test]
fn scales_are_powers_of_two_and_applied() {
    let problem = problem(RowLayout::dense(2), 130, 256, DType::F8E4M3);
    let inputs = Inputs::new(problem.tensors(), 1);
    let b_scales = inputs.tensor("b_scales").range(0, 4);
    assert!(b_scales
        .iter()
        .all(|scale| [0.25, 0.5, 1.0, 2.0].contains(scale)));
    // Column 129 is in the second block of columns.
    let (row, column) = (1, 129);
    let a = inputs.tensor("a").range(row * 256, 256);
    let b = inputs.tensor("b").range(column * 256, 256);
    // Lines of two rows are four scales long.
    let a_scales = [1, 5].map(|index| inputs.tensor("a_scales").get(index));
    let expected: f64 = (0..256)
        .map(|i| a[i] * b[i] * a_scales[i / 128] * b_scales[2 + i / 128])
        .sum();
    let unit = problem.units() - 1;
    let slice = problem.oracle(&inputs, unit).remove(0);
    assert_eq!(slice.start + slice.values.len(), 2 * 130);
    assert!((slice.values.last().unwrap() - expected).abs() < 1e-9);
}

#[test]
fn block_scales_are_in_tiles_and_applied() {
    for (dtype, block) in [
        (DType::Fp8Ue8m0, 128),
        (DType::Mxfp8, 32),
        (DType::Nvfp4, 16),
        (DType::Mxfp4, 32),
    ] {
        let problem = problem(RowLayout::dense(40), 130, 256, dtype);
        assert_units_cover_outputs_once(&problem);
        assert_honest_is_near(&problem, &[0, problem.units() - 1], 2.0);
        assert_honest_on_families(&problem, &[0, problem.units() - 1], 2.0);
        let inputs = Inputs::new(problem.tensors(), 1);
        let (row, column) = (37, 129);
        let value = |name: &str, row: usize, i: usize| {
            let tensor = inputs.tensor(name);
            match dtype {
                DType::Nvfp4 | DType::Mxfp4 => {
                    let pair = tensor.get(row * 128 + i / 2) as u8;
                    f64::from(reference::quantize::e2m1_value(pair >> (i % 2 * 4)))
                }
                _ => tensor.get(row * 256 + i),
            }
        };
        let scale = |name: &str, row: usize, i: usize| {
            let place = reference::quantize::scale_place(row, i / block, 256 / block);
            inputs.tensor(name).get(place)
        };
        let sum: f64 = (0..256)
            .map(|i| {
                value("a", row, i)
                    * scale("a_scales", row, i)
                    * value("b", column, i)
                    * scale("b_scales", column, i)
            })
            .sum();
        let of_tensor = match dtype {
            DType::Nvfp4 => inputs.tensor("tensor_scale").get(0),
            _ => 1.0,
        };
        // 9 units per row; the last has two columns.
        let slice = problem.oracle(&inputs, row * 9 + 8).remove(0);
        let found = slice.values[1];
        let expected = sum * of_tensor;
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
            "{dtype}"
        );
        let piece = problem.piece(30..40);
        let of_piece = Inputs::new(piece.problem.tensors(), 1);
        let place = reference::quantize::scale_place(7, 1, 256 / block);
        assert_eq!(
            of_piece.tensor("a_scales").get(place),
            scale("a_scales", 37, block)
        );
    }
}

#[test]
fn groups_have_whole_tiles_of_scales() {
    // Rooms of 4 rows, three matrices of 130 columns.
    let layout = RowLayout::masked(vec![0, 2, 4], 4);
    let problem = problem(layout, 130, 256, DType::Mxfp8);
    let tensor = |name| problem.statement().tensor(name).elements();
    assert_eq!(
        (tensor("a_scales"), tensor("b_scales")),
        (3 * 1024, 3 * 2048)
    );
    let inputs = Inputs::new(problem.tensors(), 1);
    let scale = |name: &str, place| inputs.tensor(name).get(place);
    // An empty group has none; the first row of the next has, and its third is no row.
    assert!(scale("a_scales", 0).is_nan() && scale("b_scales", 0).is_nan());
    assert!(scale("a_scales", 1024) > 0.0 && scale("b_scales", 2048) > 0.0);
    assert!(scale("a_scales", 1024 + 2 * 16).is_nan());
    // Row 1 of the second group, column 129 of its matrix: 9 units per row.
    let slice = problem.oracle(&inputs, 9 + 8).remove(0);
    let sum: f64 = (0..256)
        .map(|i| {
            let (row, column) = (4 + 1, 130 + 129);
            let (tile, byte) = (i / 128 * 512, i % 128 / 32);
            inputs.tensor("a").get(row * 256 + i)
                * inputs.tensor("b").get(column * 256 + i)
                * scale("a_scales", 1024 + tile + 16 + byte)
                * scale("b_scales", 2048 + 1024 + tile + 16 + byte)
        })
        .sum();
    assert!((slice.values[1] - sum).abs() < 1e-9 * sum.abs().max(1.0));
}

#[test]
fn a_piece_has_the_scales_and_the_places_of_its_rows() {
    let whole = problem(RowLayout::dense(9), 130, 256, DType::F8E4M3);
    let piece = whole.piece(6..9);
    let [whole_scales, scales] = [&whole as &dyn Problem, &*piece.problem].map(|problem| {
        Inputs::new(problem.tensors(), 1)
            .tensor("a_scales")
            .range(0, 8)
    });
    // Lines of twelve and of four rows.
    assert_eq!(scales[..2], whole_scales[6..8]);
    let places = [Some((0, 6 * 256)), Some((1, 0)), Some((2, 6 * 130)), None];
    assert_eq!(piece.places[..4], places);
    assert_eq!(piece.problem.units(), 3 * 9);
}

#[test]
fn refuses_what_no_contender_could_do() {
    let (shape, layout) = (GemmShape { n: 8, k: 100 }, RowLayout::dense(4));
    let workload = GemmSuite::custom(4, 8, 100).2;
    let new = |dtype| GemmProblem::new(shape, layout.clone(), dtype, workload.clone());
    assert_eq!(new(DType::F8E4M3).unwrap_err(), BadGemm::Depth(100));
    assert_eq!(new(DType::Nvfp4).unwrap_err(), BadGemm::Depth(100));
    assert_eq!(new(DType::F32).unwrap_err(), BadGemm::DType(DType::F32));
}

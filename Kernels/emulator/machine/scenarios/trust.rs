//! Which instruction forms a test with known results executes: the table in `proven.rs` is what this finds.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::{
    asynchronous, control, products, proofs, proofs_of_groups, proofs_of_memory, races,
    tensor_cores, tensor_forms, tensor_pairs, tensor_shift,
};
use crate::proven::PROVEN;
use crate::Report;

thread_local! {
    static EXECUTED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// Called after every kernel of a scenario that ran to its end.
pub fn note(report: &Report) {
    EXECUTED.with_borrow_mut(|forms| forms.extend(report.counters.forms.keys().cloned()));
}

#[test]
fn the_table_of_proofs_is_up_to_date() {
    let proofs: [(&str, fn()); 25] = [
        ("proofs::arithmetic", proofs::arithmetic),
        ("proofs::comparisons", proofs::comparisons),
        ("proofs_of_memory::loads", proofs_of_memory::loads),
        ("proofs_of_memory::stores", proofs_of_memory::stores),
        ("proofs_of_groups::warps", proofs_of_groups::warps),
        ("proofs_of_groups::blocks", proofs_of_groups::blocks),
        ("proofs_of_groups::boxes", proofs_of_groups::boxes),
        (
            "proofs_of_groups::boxes_for_several_blocks",
            proofs_of_groups::boxes_for_several_blocks,
        ),
        ("proofs_of_groups::fragments", proofs_of_groups::fragments),
        ("proofs_of_groups::warpgroups", proofs_of_groups::warpgroups),
        ("products", products::a_product_of_a_warp_from_ldmatrix),
        (
            "products::a_transposed_operand",
            products::a_transposed_operand,
        ),
        (
            "asynchronous",
            asynchronous::a_missing_wait_for_copies_of_threads_shows,
        ),
        (
            "asynchronous",
            asynchronous::a_missing_wait_for_a_bulk_copy_shows,
        ),
        (
            "asynchronous",
            asynchronous::a_box_is_cut_at_the_tensor_and_swizzled,
        ),
        (
            "asynchronous",
            asynchronous::blocks_of_a_cluster_write_into_each_other,
        ),
        ("control", control::votes_elections_and_reductions),
        ("control", control::a_barrier_orders_the_warps_of_a_block),
        ("control", control::functions_and_tables_of_branches),
        ("races::blocks_of_a_grid", races::blocks_of_a_grid),
        ("tensor_cores::all", tensor_cores::all),
        ("tensor_pairs", tensor_pairs::products_of_two_blocks),
        ("tensor_forms::all", tensor_forms::all),
        ("tensor_shift::all", tensor_shift::all),
        ("races", races::a_launch_that_overlaps_the_one_before),
    ];
    let mut found: BTreeMap<String, &str> = BTreeMap::new();
    for (name, proof) in proofs {
        EXECUTED.with_borrow_mut(BTreeSet::clear);
        proof();
        for form in EXECUTED.take() {
            found.entry(form).or_insert(name);
        }
    }
    // It ends the kernel, as another test shows.
    found.entry("trap".to_owned()).or_insert("control");
    let table: String = found
        .iter()
        .map(|(form, name)| format!("    (\"{form}\", \"{name}\"),\n"))
        .collect();
    if let Some(folder) = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR") {
        std::fs::write(std::path::Path::new(&folder).join("proven.txt"), &table).unwrap();
    }
    let listed: BTreeMap<String, &str> = PROVEN
        .iter()
        .map(|(form, name)| ((*form).to_owned(), *name))
        .collect();
    assert!(listed == found, "proven.rs should be\n{table}");
}

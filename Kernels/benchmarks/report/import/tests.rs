//! Made-up definitions of every op_type, and the suites that come of them.

use super::*;
use serde_json::{json, Value};
use std::path::Path;

/// A definition with constant axes, variable axes and `(input, shape, type)`.
fn definition(
    name: &str,
    op_type: &str,
    constant: &[(&str, usize)],
    variable: &[&str],
    inputs: &[(&str, &[&str], &str)],
) -> String {
    let constant = constant
        .iter()
        .map(|(name, value)| (name.to_string(), json!({"type": "const", "value": value})));
    let variable = variable
        .iter()
        .map(|name| (name.to_string(), json!({"type": "var"})));
    let axes: Map = constant.chain(variable).collect();
    let input = |(name, shape, dtype): &(&str, &[&str], &str)| {
        (name.to_string(), json!({"shape": shape, "dtype": dtype}))
    };
    let inputs: Map = inputs.iter().map(input).collect();
    json!({"name": name, "op_type": op_type, "axes": axes, "inputs": inputs, "outputs": {},
        "reference": "def run(): pass"})
    .to_string()
}

type Map = serde_json::Map<String, Value>;

/// A line whose inputs are lists in `blob.safetensors`, or random.
fn line(
    name: &str,
    uuid: &str,
    axes: &[(&str, usize)],
    stored: &[&str],
    random: &[&str],
) -> String {
    let axes: BTreeMap<&str, usize> = axes.iter().copied().collect();
    let path = format!("./{uuid}.safetensors");
    let stored = stored.iter().map(|input| {
        let stored = json!({"type": "safetensors", "path": path, "tensor_key": input});
        (input.to_string(), stored)
    });
    let random = random
        .iter()
        .map(|input| (input.to_string(), json!({"type": "random"})));
    let inputs: Map = stored.chain(random).collect();
    json!({"definition": name, "solution": null,
        "workload": {"uuid": uuid, "axes": axes, "inputs": inputs}})
    .to_string()
}

fn store(folder: &Path, uuid: &str, lists: &[(&str, &[i32])]) {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, list) in lists {
        let begin = data.len();
        data.extend(list.iter().flat_map(|value| value.to_le_bytes()));
        header.insert(
            name.to_string(),
            json!({"dtype": "I32", "shape": [list.len()], "data_offsets": [begin, data.len()]}),
        );
    }
    let file = safetensors::tests::file(&Value::from(header).to_string(), &data);
    std::fs::write(folder.join(format!("{uuid}.safetensors")), file).unwrap();
}

fn imported(folder: &Path, texts: &[&str]) -> Result<Imported, ReportingError> {
    let file = |(index, text): (usize, &&str)| (folder.join(format!("{index}")), text.to_string());
    import(&texts.iter().enumerate().map(file).collect::<Vec<_>>())
}

/// Of a folder without blobs.
fn plain(texts: &[&str]) -> Imported {
    imported(Path::new("."), texts).unwrap()
}

fn norm(name: &str, inputs: &[&str]) -> String {
    let inputs: Vec<(&str, &[&str], &str)> = inputs
        .iter()
        .map(|input| (*input, &["batch_size", "hidden_size"][..], "bfloat16"))
        .collect();
    definition(
        name,
        "rmsnorm",
        &[("hidden_size", 4096)],
        &["batch_size"],
        &inputs,
    )
}

#[test]
fn repeated_shapes_weigh_more() {
    let definition = norm("rmsnorm_h4096", &["hidden_states", "weight"]);
    let lines: Vec<String> = [(1, "u1"), (128, "u2"), (128, "u3")]
        .iter()
        .map(|(rows, uuid)| line("rmsnorm_h4096", uuid, &[("batch_size", *rows)], &[], &[]))
        .collect();
    let imported = plain(&[&definition, &lines.join("\n")]);
    assert!(imported.left_out.is_empty());
    let [suite] = &imported.suites[..] else {
        panic!("{imported:?}");
    };
    assert_eq!(suite.command, "bench_norms --op rmsnorm_fwd --dtype bf16");
    assert_eq!(suite.configs.as_deref().unwrap(), ["1x4096", "128x4096"]);
    assert_eq!(suite.file_name(), "bench_norms-rmsnorm_h4096.json");
    let second = &suite.workloads.workloads[1];
    assert_eq!((&*second.name, second.weight), ("128x4096", Some(2.0)));
    assert_eq!(second.op.as_deref(), Some("rmsnorm_fwd"));
    assert_eq!(
        Value::from(second.shape.clone()),
        json!({"rows": 128, "columns": 4096})
    );
    assert_eq!(
        second.provenance,
        "FlashInfer-Bench definition rmsnorm_h4096, workload u2 and 1 more"
    );
    suite.workloads.to_json().unwrap();
    // A residual makes it the fused operation, whatever the op_type is called.
    let fused = norm(
        "fused_add_rmsnorm_h4096",
        &["hidden_states", "residual", "weight"],
    );
    let lines = line(
        "fused_add_rmsnorm_h4096",
        "u",
        &[("batch_size", 2)],
        &[],
        &[],
    );
    let imported = plain(&[&fused, &lines]);
    assert_eq!(
        imported.suites[0].command,
        "bench_norms --op fused_add_rmsnorm --dtype bf16"
    );
}

#[test]
fn what_no_bench_takes_is_told() {
    let definition = norm("n", &["hidden_states"]);
    let line = line("n", "u", &[("batch_size", 2)], &[], &[]);
    let empty = line.replace(":2", ":0");
    let told = |definition: &str, lines: &str| {
        let imported = plain(&[definition, lines]);
        imported.left_out.join("; ")
    };
    let sampling = definition.replace("\"rmsnorm\"", "\"sampling\"");
    assert_eq!(
        told(&sampling, &line),
        "n: no bench supports op_type 'sampling'"
    );
    assert!(told(&definition.replace("\"rmsnorm\"", "\"moe\""), &line).contains("routing"));
    assert!(told(&definition.replace("\"rmsnorm\"", "\"rope\""), &line).contains("'neox'"));
    assert!(told(&definition.replace("bfloat16", "int4"), &line).contains("'int4'"));
    assert!(plain(&[&definition]).left_out[0].contains("'batch_size' is variable"));
    let some = told(&definition, &format!("{line}\n{empty}"));
    assert_eq!(some, "n, 1 of 2 workloads: axis 'batch_size' is 0");
}

const HEADS: [(&str, usize); 3] = [("num_qo_heads", 32), ("num_kv_heads", 8), ("head_dim", 128)];
const CACHE: &[&str] = &["num_pages", "page_size", "num_kv_heads", "head_dim"];

fn gqa_decode(page_size: usize, cache: &[&str], dtype: &str, last: bool) -> String {
    let constant = [&HEADS[..], &[("page_size", page_size)]].concat();
    let mut inputs: Vec<(&str, &[&str], &str)> = vec![
        ("q", &["batch_size", "num_qo_heads", "head_dim"], "bfloat16"),
        ("k_cache", cache, dtype),
        ("kv_indptr", &["len_indptr"], "int32"),
    ];
    if last {
        inputs.push(("kv_last_page_len", &["batch_size"], "int32"));
    }
    let variable = ["batch_size", "num_pages", "len_indptr"];
    definition("d", "gqa_paged", &constant, &variable, &inputs)
}

const TWO: &[(&str, usize)] = &[("batch_size", 2), ("num_pages", 99), ("len_indptr", 3)];

/// The shape that one definition and line become with these lists, or why not.
fn shape(definition: &str, line: &str, lists: &[(&str, &[i32])]) -> Result<Value, String> {
    let folder = tempfile::TempDir::new().unwrap();
    store(folder.path(), "u", lists);
    let mut imported = imported(folder.path(), &[definition, line]).map_err(|e| e.to_string())?;
    match imported.suites.pop() {
        Some(suite) => {
            assert!(suite.configs.is_none());
            suite.workloads.to_json().unwrap();
            Ok(suite.workloads.workloads[0].shape.clone().into())
        }
        None => Err(imported.left_out.join("; ")),
    }
}

#[test]
fn decode_takes_its_lengths_from_pages() {
    let stored = line("d", "u", TWO, &["kv_indptr"], &[]);
    let one = gqa_decode(1, CACHE, "bfloat16", false);
    let expected = json!({"lengths": [5, 4], "heads": 32, "kv_heads": 8, "head_dim": 128,
        "page_size": 1, "layout": "nhd", "kv_dtype": "same"});
    let offsets: &[(&str, &[i32])] = &[("kv_indptr", &[0, 5, 9])];
    assert_eq!(shape(&one, &stored, offsets).unwrap(), expected);
    let empty: &[(&str, &[i32])] = &[("kv_indptr", &[0, 5, 5])];
    assert!(shape(&one, &stored, empty)
        .unwrap_err()
        .contains("sequence 1 has no cached"));
    let three = line(
        "d",
        "u",
        &[("batch_size", 3), ("len_indptr", 3)],
        &["kv_indptr"],
        &[],
    );
    assert!(shape(&one, &three, offsets)
        .unwrap_err()
        .contains("3 queries of 2 sequences"));
    let random = line("d", "u", TWO, &[], &["kv_indptr"]);
    assert!(shape(&one, &random, offsets)
        .unwrap_err()
        .contains("'kv_indptr' is random"));
    let nothing = line("d", "u", TWO, &[], &[]);
    assert!(shape(&one, &nothing, offsets)
        .unwrap_err()
        .contains("has no values"));
    // Pages of several tokens, the last of each sequence part full; FP8, heads before tokens.
    let heads_first = &["num_pages", "num_kv_heads", "page_size", "head_dim"];
    let pages = gqa_decode(16, heads_first, "float8_e4m3fn", true);
    let both = line("d", "u", TWO, &["kv_indptr", "kv_last_page_len"], &[]);
    let lists = |last: &'static [i32]| [("kv_indptr", &[0, 5, 9][..]), ("kv_last_page_len", last)];
    let expected = json!({"lengths": [67, 64], "heads": 32, "kv_heads": 8, "head_dim": 128,
        "page_size": 16, "layout": "hnd", "kv_dtype": "fp8_e4m3"});
    assert_eq!(shape(&pages, &both, &lists(&[3, 16])).unwrap(), expected);
    let told = shape(&pages, &both, &lists(&[3, 17])).unwrap_err();
    assert!(
        told.contains("last page of 17 tokens; pages have 16"),
        "{told}"
    );
    let unknown = gqa_decode(16, CACHE, "bfloat16", false);
    let told = shape(&unknown, &stored, offsets).unwrap_err();
    assert!(told.contains("no 'kv_last_page_len'"), "{told}");
    let odd = gqa_decode(1, CACHE, "float32", false);
    assert!(shape(&odd, &stored, offsets)
        .unwrap_err()
        .contains("keys of type f32"));
    // A damaged blob ends the import.
    let told = shape(&one, &stored, &[("kv_indptr", &[0, 9, 5])]).unwrap_err();
    assert!(
        told.ends_with("'kv_indptr' decreases from 9 to 5"),
        "{told}"
    );
}

#[test]
fn mla_has_one_width() {
    let mla = |latent: usize, extra: &[(&str, &[&str], &str)]| {
        let constant = [
            ("num_qo_heads", 16),
            ("head_dim_ckv", latent),
            ("head_dim_kpe", 64),
            ("page_size", 1),
        ];
        let inputs: &[(&str, &[&str], &str)] = &[
            (
                "q_nope",
                &["batch_size", "num_qo_heads", "head_dim_ckv"],
                "bfloat16",
            ),
            ("kv_indptr", &["len_indptr"], "int32"),
        ];
        let variable = ["batch_size", "len_indptr"];
        definition(
            "m",
            "mla_paged",
            &constant,
            &variable,
            &[inputs, extra].concat(),
        )
    };
    let stored = line("m", "u", TWO, &["kv_indptr"], &[]);
    let offsets: &[(&str, &[i32])] = &[("kv_indptr", &[0, 5, 9])];
    let cache = |dtype| mla(512, &[("ckv_cache", &["num_pages", "head_dim_ckv"], dtype)]);
    for (definition, kv_dtype) in [
        (mla(512, &[]), "same"),
        (cache("bfloat16"), "same"),
        (cache("float8_e4m3fn"), "fp8_e4m3"),
    ] {
        let expected =
            json!({"lengths": [5, 4], "heads": 16, "page_size": 1, "kv_dtype": kv_dtype});
        assert_eq!(shape(&definition, &stored, offsets).unwrap(), expected);
    }
    assert!(shape(&cache("float32"), &stored, offsets)
        .unwrap_err()
        .contains("keys of type f32"));
    assert!(shape(&mla(256, &[]), &stored, offsets)
        .unwrap_err()
        .contains("256 latent"));
    let prefill = mla(512, &[("qo_indptr", &["len_indptr"], "int32")]);
    assert!(shape(&prefill, &stored, offsets)
        .unwrap_err()
        .contains("no bench has MLA prefill"));
}

#[test]
fn prefill_has_queries_and_keys() {
    let prefill = |name: &str, op_type: &str, constant: &[(&str, usize)]| {
        let inputs: &[(&str, &[&str], &str)] = &[
            ("q", &["total_q", "num_qo_heads", "head_dim"], "float16"),
            ("qo_indptr", &["len_indptr"], "int32"),
            ("kv_indptr", &["len_indptr"], "int32"),
        ];
        let constant = [&HEADS[..], constant].concat();
        definition(name, op_type, &constant, &["total_q", "len_indptr"], inputs)
    };
    let axes = &[("total_q", 5), ("len_indptr", 3)];
    let stored = |name: &str| line(name, "u", axes, &["qo_indptr", "kv_indptr"], &[]);
    let lists = |kv: &'static [i32]| [("qo_indptr", &[0, 2, 5][..]), ("kv_indptr", kv)];
    let name = "gqa_ragged_prefill_causal_h32_kv8_d128";
    let expected = json!({"q_lens": [2, 3], "kv_lens": [7, 3], "heads": 32, "kv_heads": 8,
        "head_dim": 128, "causal": true});
    let ragged = prefill(name, "gqa_ragged", &[]);
    assert_eq!(
        shape(&ragged, &stored(name), &lists(&[0, 7, 10])).unwrap(),
        expected
    );
    let told = shape(&ragged, &stored(name), &lists(&[0, 7, 9])).unwrap_err();
    assert!(
        told.contains("sequence 1 has 3 queries and 2 keys"),
        "{told}"
    );
    let paged = prefill(name, "gqa_paged", &[("page_size", 1)]);
    assert_eq!(
        shape(&paged, &stored(name), &lists(&[0, 7, 10])).unwrap(),
        expected
    );
    let silent = prefill("silent", "gqa_ragged", &[]);
    let told = shape(&silent, &stored("silent"), &lists(&[0, 7, 10])).unwrap_err();
    assert!(told.contains("neither 'causal' nor 'noncausal'"), "{told}");
}

#[test]
fn groups_and_rotations() {
    let sizes = [("N", 64), ("K", 32)];
    let inputs: &[(&str, &[&str], &str)] = &[("A", &["G", "M", "K"], "bfloat16")];
    let equal = definition("g", "grouped_gemm", &sizes, &["G", "M"], inputs);
    let given = line("g", "u", &[("G", 3), ("M", 8)], &[], &[]);
    let expected = json!({"tokens": [8, 8, 8], "n": 64, "k": 32, "layout": "masked",
        "rows_per_group": 8});
    assert_eq!(shape(&equal, &given, &[]).unwrap(), expected);
    let many = line("g", "u", &[("G", 1 << 40), ("M", 8)], &[], &[]);
    assert!(shape(&equal, &many, &[])
        .unwrap_err()
        .contains("at most 65536"));
    let inputs: &[(&str, &[&str], &str)] = &[
        ("A", &["M", "K"], "bfloat16"),
        ("m_indptr", &["len"], "int32"),
    ];
    let ragged = definition("g", "grouped_gemm", &sizes, &["M", "len"], inputs);
    let given = line("g", "u", &[("M", 9), ("len", 3)], &["m_indptr"], &[]);
    let expected = json!({"tokens": [9, 0], "n": 64, "k": 32, "layout": "contiguous"});
    assert_eq!(
        shape(&ragged, &given, &[("m_indptr", &[0, 9, 9])]).unwrap(),
        expected
    );
    let told = shape(&ragged, &given, &[("m_indptr", &[0, 0, 0])]).unwrap_err();
    assert!(told.contains("all its groups are empty"), "{told}");
    let unknown = definition("g", "grouped_gemm", &sizes, &["M"], &[]);
    assert!(shape(&unknown, &given, &[])
        .unwrap_err()
        .contains("in neither"));

    let rope = |rotary: usize| {
        let constant = [("head_size", 128), ("rotary_dim", rotary)];
        let variable = ["num_tokens", "num_qo_heads", "num_kv_heads"];
        let inputs: &[(&str, &[&str], &str)] = &[("q", &["num_tokens"], "bfloat16")];
        definition("rope_neox_style", "rope", &constant, &variable, inputs)
    };
    let axes = [
        ("num_tokens", 77),
        ("num_qo_heads", 32),
        ("num_kv_heads", 8),
    ];
    let given = line("rope_neox_style", "u", &axes, &[], &["positions"]);
    let expected =
        json!({"batch": 1, "sequence": 77, "query_heads": 32, "key_heads": 8, "dim": 128});
    assert_eq!(shape(&rope(128), &given, &[]).unwrap(), expected);
    assert!(shape(&rope(64), &given, &[])
        .unwrap_err()
        .contains("rotates 64 of 128"));
}

#[test]
fn different_shapes_of_one_size_have_two_names() {
    let folder = tempfile::TempDir::new().unwrap();
    store(folder.path(), "u1", &[("kv_indptr", &[0, 5, 9])]);
    store(folder.path(), "u2", &[("kv_indptr", &[0, 4, 9])]);
    let lines = ["u1", "u2", "u1"].map(|uuid| line("d", uuid, TWO, &["kv_indptr"], &[]));
    let definition = gqa_decode(1, CACHE, "bfloat16", false);
    let imported = imported(folder.path(), &[&definition, &lines.join("\n")]).unwrap();
    let given = &imported.suites[0].workloads.workloads;
    let names: Vec<(&str, Option<f64>)> =
        given.iter().map(|one| (&*one.name, one.weight)).collect();
    assert_eq!(names, [("b2_kv9", Some(2.0)), ("b2_kv9_2", Some(1.0))]);
}

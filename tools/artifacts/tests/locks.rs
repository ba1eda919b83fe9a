//! The lock: this repository's is in canonical form, and errors in others name line and field.

use std::path::Path;

use artifacts_lib::lock::Lock;

const GOOD: &str = r#"{
  "schema": 1,
  "artifacts": [
    {
      "name": "alpha",
      "version": "1.0",
      "source": {
        "kind": "registry",
        "registry": "pypi",
        "package": "alpha",
        "file": "alpha-1.0-py3-none-any.whl"
      },
      "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      "size": 3,
      "licence": "MIT",
      "redistributable": true,
      "upstream": "https://example.com"
    },
    {
      "name": "beta-sm_90a",
      "version": "1.0+r1",
      "source": {
        "kind": "recipe",
        "recipe": "beta",
        "arch": "sm_90a",
        "inputs": [
          "alpha"
        ]
      },
      "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      "size": 4,
      "licence": "MIT",
      "redistributable": false,
      "upstream": "https://example.com"
    }
  ]
}
"#;

fn parse(text: &str) -> Result<Lock, String> {
    Lock::parse(text, Path::new("lock.json")).map_err(|error| error.to_string())
}

#[test]
fn canonical_form_survives() {
    assert_eq!(parse(GOOD).unwrap().text(), GOOD);
}

#[test]
fn this_repository_has_a_canonical_lock() {
    let path = std::env::var_os("ARTIFACTS_LOCK").expect("the BUILD file names the lock");
    let text = std::fs::read_to_string(&path).unwrap();
    let lock = Lock::parse(&text, Path::new(&path)).unwrap();
    assert!(
        lock.text() == text,
        "format it as `artifacts pin` does: two spaces, sorted by name"
    );
}

#[test]
fn plus_is_not_in_keys() {
    let lock = parse(GOOD).unwrap();
    assert_eq!(lock.artifacts[1].file(), "beta-sm_90a-1.0+r1.zip");
    assert_eq!(lock.artifacts[1].key(), "beta-sm_90a-1.0_r1.zip");
}

/// (what to replace, with what, line of the complaint, what it says)
const MALFORMED: [(&str, &str, usize, &[&str]); 14] = [
    (
        "\"size\": 3,",
        "\"size\": \"3\",",
        14,
        &["`size` of `alpha`", "u64"],
    ),
    ("\"size\": 3,", "\"size\": -3,", 14, &["`size` of `alpha`"]),
    (
        "\"size\": 3,",
        "\"size\": 0,",
        14,
        &["size `alpha`", "is 0"],
    ),
    (
        "\"ba7816bf",
        "\"xa7816bf",
        13,
        &["`sha256` of `alpha`", "64 lower-case"],
    ),
    (
        "\"licence\": \"MIT\",\n",
        "",
        17,
        &["alpha", "missing field `licence`"],
    ),
    (
        "\"licence\": \"MIT\",",
        "\"licence\": \"\",",
        15,
        &["licence `alpha`", "SPDX"],
    ),
    (
        "\"licence\"",
        "\"license\"",
        15,
        &["unknown field `license`", "alpha"],
    ),
    (
        "\"registry\": \"pypi\"",
        "\"registry\": \"gems\"",
        9,
        &["registry `alpha`", "`pypi`"],
    ),
    (
        "\"kind\": \"recipe\"",
        "\"kind\": \"magic\"",
        23,
        &["`kind` of `beta-sm_90a`", "magic"],
    ),
    (
        "\"alpha\"\n",
        "\"gamma\"\n",
        26,
        &["inputs `beta-sm_90a`", "not in the lock"],
    ),
    (
        "\"name\": \"beta-sm_90a\"",
        "\"name\": \"alpha\"",
        5,
        &["name `alpha`", "sort by name"],
    ),
    (
        "\"name\": \"alpha\"",
        "\"name\": \"Al/pha\"",
        5,
        &["name `Al/pha`", "lower-case"],
    ),
    (
        "\"schema\": 1",
        "\"schema\": 2",
        1,
        &["schema `2`", "reads schema 1"],
    ),
    ("    }\n  ]", "    }\n", 37, &["lock.json"]),
];

#[test]
fn complaints_name_line_and_field() {
    for (old, new, line, parts) in MALFORMED {
        let text = GOOD.replacen(old, new, 1);
        assert_ne!(text, GOOD, "{old}");
        let message = parse(&text).unwrap_err();
        let place = format!("lock.json:{line}: ");
        assert!(
            message.starts_with(&place),
            "{new:?}: {message:?} is not at {place:?}"
        );
        for part in parts {
            assert!(
                message.contains(part),
                "{new:?}: {message:?} does not say {part:?}"
            );
        }
    }
}

#[test]
fn names_that_leave_a_folder_are_refused() {
    for file in ["../alpha.whl", "/alpha.whl", ".alpha", ""] {
        let text = GOOD.replace("alpha-1.0-py3-none-any.whl", file);
        assert!(
            parse(&text).unwrap_err().contains("plain file name"),
            "{file}"
        );
    }
}

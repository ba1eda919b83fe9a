//! What is found in the store, and everything that must not be used.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use on_demand::{digest, CuteLibrary, Missing, Recipe, Record, Store, Variant, Wanted, RECORD};
use tempfile::TempDir;

struct Fixture {
    root: TempDir,
    wanted: Wanted,
    record: Record,
}

impl Fixture {
    /// A sound variant of Liger's with four bytes of machine code.
    fn new() -> Self {
        let wanted = Wanted::new(Recipe::Liger, "sm_90a", Variant::Width(5120));
        let root = tempfile::tempdir().unwrap();
        let files = BTreeMap::from([("kernels.bin".to_owned(), digest(b"code"))]);
        let record = Record {
            schema: 1,
            name: wanted.to_string(),
            version: Recipe::Liger.version("sm_90a").unwrap().to_owned(),
            cpu: std::env::consts::ARCH.to_owned(),
            archive_sha256: digest(b"archive"),
            files,
        };
        let fixture = Self {
            root,
            wanted,
            record,
        };
        fs::create_dir(fixture.folder()).unwrap();
        fs::write(fixture.folder().join("kernels.bin"), b"code").unwrap();
        fixture.write();
        fixture
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join(self.wanted.to_string())
    }

    fn write(&self) {
        let text = serde_json::to_string(&self.record).unwrap();
        fs::write(self.folder().join(RECORD), text).unwrap();
    }

    fn read(&self) -> Result<Vec<u8>, Missing> {
        let store = Store::at(self.root.path().to_owned());
        store.find(&self.wanted)?.read("kernels.bin")
    }

    /// The message, which must end in the command that helps.
    fn refusal(&self) -> String {
        let message = self.read().unwrap_err().to_string();
        let command = "build liger --arch sm_90a --width 5120`";
        assert!(message.contains(command), "{message}");
        message
    }
}

#[test]
fn a_sound_variant_is_read() {
    assert_eq!(Fixture::new().read().unwrap(), b"code");
}

#[test]
fn what_was_never_built_says_the_command() {
    let fixture = Fixture::new();
    fs::remove_dir_all(fixture.folder()).unwrap();
    let message = fixture.refusal();
    assert!(message.contains("--build-missing"), "{message}");
}

#[test]
fn other_bytes_are_refused() {
    let fixture = Fixture::new();
    fs::write(fixture.folder().join("kernels.bin"), b"cods").unwrap();
    assert!(fixture.refusal().contains("has sha256"));
}

#[test]
fn half_a_variant_is_refused() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.folder().join("kernels.bin")).unwrap();
    assert!(fixture.refusal().contains("cannot read"));
    fs::write(fixture.folder().join(RECORD), "{\"schema\": 1,").unwrap();
    assert!(fixture.refusal().contains("record.json"));
    fs::remove_file(fixture.folder().join(RECORD)).unwrap();
    assert!(fixture.refusal().contains("cannot read"));
}

#[test]
fn what_another_recipe_or_machine_built_is_refused() {
    type Change = fn(&mut Record);
    let changes: [(Change, &str); 4] = [
        (
            |record| record.version = "0.0.1+r1".into(),
            "recipe 0.0.1+r1 built it",
        ),
        (|record| record.cpu = "m68k".into(), "it is for m68k"),
        (|record| record.schema = 2, "its schema is 2"),
        (
            |record| record.name = "liger-sm_90a-n1".into(),
            "it is liger-sm_90a-n1",
        ),
    ];
    for (change, reason) in changes {
        let mut fixture = Fixture::new();
        change(&mut fixture.record);
        fixture.write();
        let message = fixture.refusal();
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_file_that_the_record_does_not_name_is_refused() {
    let mut fixture = Fixture::new();
    fixture.record.files.clear();
    fixture.write();
    assert!(fixture.refusal().contains("has no kernels.bin"));
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let fixture = Fixture::new();
    fs::set_permissions(fixture.folder(), Permissions::from_mode(0o777)).unwrap();
    assert!(fixture.refusal().contains("others can write"));
}

#[test]
fn code_that_is_not_a_library_is_refused() {
    let mut fixture = Fixture::new();
    for (file, bytes) in [
        ("kernels.json", &b"{\"kernels\": []}"[..]),
        ("kernels.so", b"no ELF"),
    ] {
        fs::write(fixture.folder().join(file), bytes).unwrap();
        fixture.record.files.insert(file.to_owned(), digest(bytes));
    }
    fixture.write();
    let store = Store::at(fixture.root.path().to_owned());
    let refused = CuteLibrary::of(store.find(&fixture.wanted).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("kernels.so"), "{refused}");
}

#[test]
fn commands_name_every_size() {
    let command = |recipe, variant| Wanted::new(recipe, "sm_100a", variant).command();
    let heads = Variant::Heads {
        query: 40,
        key: 8,
        dim: 128,
    };
    let group = Variant::Group {
        head_dim: 128,
        group: 5,
    };
    let start = "./bazelw run //tools/artifacts -- build";
    assert_eq!(
        command(Recipe::Liger, heads),
        format!("{start} liger --arch sm_100a --heads 40x8x128")
    );
    assert_eq!(
        command(Recipe::FlashAttention4, group),
        format!("{start} flash-attention-4 --arch sm_100a --head-dim 128 --group 5")
    );
}

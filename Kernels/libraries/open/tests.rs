use std::fs;
use std::sync::LazyLock;

use super::*;
use crate::*;

/// Stands in for a library: a copy of the machine's libm, which has no state.
static FAKE: Wanted = Wanted {
    name: "fake",
    artifact: "fake-wheel",
    variable: "FAKE_LIBRARY",
    runs_on: Processor::Gpu,
    files: &["libfake_part.so.1", "libfake.so.1"],
    needs: &[],
    links: &[],
    version: |symbols| {
        // SAFETY: the type is that of math.h.
        let cosine: unsafe extern "C" fn(f64) -> f64 = unsafe { symbols.get(b"cos\0") }?;
        // SAFETY: takes any number.
        Ok(format!("{}.0", unsafe { cosine(0.0) }))
    },
};

/// The machine's libm. It stays open from before the first copy is made: a copy has the same soname, so if one were
/// loaded, the loader would take it for the original.
static LIBM: LazyLock<PathBuf> = LazyLock::new(|| {
    // SAFETY: its initialisers have no requirements.
    std::mem::forget(unsafe { Handle::new("libm.so.6") }.unwrap());
    let is_libm = |file: &PathBuf| file.file_name().is_some_and(|name| name == "libm.so.6");
    crate::mapped::loaded().into_iter().find(is_libm).unwrap()
});

struct Scene {
    folder: tempfile::TempDir,
    entry: Entry,
    surroundings: Surroundings,
}

impl Scene {
    /// A folder with the library's files, and a lock with their digests.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in FAKE.files {
            fs::copy(&*LIBM, folder.path().join(file)).unwrap();
        }
        let paths: Vec<_> = FAKE.files.iter().map(|f| folder.path().join(f)).collect();
        let files = hash(&paths, &mut Digests::at(None)).unwrap();
        let artifact = Artifact {
            name: FAKE.artifact.to_owned(),
            version: "1.2.3".to_owned(),
            sha256: "0".repeat(64),
        };
        Self {
            surroundings: Surroundings {
                variable: Some(folder.path().into()),
                programs: Vec::new(),
                working: PathBuf::from("/"),
            },
            entry: Entry { artifact, files },
            folder,
        }
    }

    fn check(&self, variable: Option<&Path>) -> Result<Checked, Error> {
        let variable = variable.map(|path| path.as_os_str().to_owned());
        let digests = &mut Digests::at(None);
        check(
            &FAKE,
            variable,
            Some(&self.entry),
            &self.surroundings,
            digests,
        )
    }

    fn main(&self) -> PathBuf {
        self.folder.path().join("libfake.so.1")
    }

    fn record(&self, checked: Checked) -> Library {
        let symbols = load(&checked.files).unwrap();
        let version = (FAKE.version)(symbols.last().unwrap()).unwrap();
        checked.record(&FAKE, version, Some(&self.entry))
    }
}

#[test]
fn the_locks_bytes_are_loaded_and_named() {
    let scene = Scene::new();
    let checked = scene.check(None).unwrap();
    assert_eq!(checked.files.last(), Some(&scene.main()));
    let record = scene.record(checked);
    assert_eq!((&*record.version, record.source), ("1.0", Source::Lock));
    assert_eq!(record.artifact.as_ref(), Some(&scene.entry.artifact));
    assert_eq!(record.files, scene.entry.files);
    let text = record.to_string();
    assert!(
        text.contains("fake 1.0 from lock: fake-wheel 1.2.3"),
        "{text}"
    );
}

#[test]
fn other_bytes_are_refused_and_both_digests_said() {
    let scene = Scene::new();
    let mut bytes = fs::read(scene.main()).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(scene.main(), bytes).unwrap();
    let error = scene.check(None).unwrap_err();
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    let expected = &scene.entry.files["libfake.so.1"];
    let text = error.to_string();
    assert!(
        text.contains(expected) && text.contains("FAKE_LIBRARY"),
        "{text}"
    );
}

#[test]
fn a_missing_part_and_a_missing_library_are_told_apart() {
    let scene = Scene::new();
    fs::remove_file(scene.folder.path().join("libfake_part.so.1")).unwrap();
    let text = scene.check(None).unwrap_err().to_string();
    assert!(text.contains("has no libfake_part.so.1"), "{text}");
    fs::remove_file(scene.main()).unwrap();
    let text = scene.check(None).unwrap_err().to_string();
    for remedy in ["libraries=lock", "HEAD_TO_HEAD_LIBRARIES", "FAKE_LIBRARY"] {
        assert!(text.contains(remedy), "{text}");
    }
    assert!(Processor::Cpu.remedy().contains("libraries=none"));
}

#[test]
fn an_override_is_recorded_with_the_digests_of_its_files() {
    let scene = Scene::new();
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("libfake.so.1");
    let mut bytes = fs::read(scene.main()).unwrap();
    // Past the end of the loaded part.
    bytes.push(0);
    fs::write(&file, bytes).unwrap();
    for place in [own.path(), &file] {
        let record = scene.record(scene.check(Some(place)).unwrap());
        assert_eq!((record.source, &record.artifact), (Source::Override, &None));
        assert_ne!(
            record.files["libfake.so.1"],
            scene.entry.files["libfake.so.1"]
        );
        assert_eq!(
            record.files.len(),
            1,
            "parts that are not there are left out"
        );
    }
    fs::copy(scene.main(), own.path().join("libfake_part.so.2")).unwrap();
    let checked = scene.check(Some(own.path())).unwrap();
    assert!(checked.sha256.contains_key("libfake_part.so.2"));
    let text = scene
        .check(Some(Path::new("/nowhere")))
        .unwrap_err()
        .to_string();
    assert!(text.contains("FAKE_LIBRARY is /nowhere"), "{text}");
}

#[test]
fn an_override_with_the_locks_bytes_names_the_artifact() {
    let scene = Scene::new();
    let record = scene.record(scene.check(Some(scene.folder.path())).unwrap());
    assert_eq!(record.source, Source::Override);
    assert_eq!(record.artifact.as_ref(), Some(&scene.entry.artifact));
}

#[test]
fn what_is_no_library_is_not_loaded() {
    let scene = Scene::new();
    fs::write(scene.main(), "text").unwrap();
    let checked = scene.check(Some(&scene.main())).unwrap();
    let text = load(&checked.files).err().unwrap().to_string();
    assert!(text.contains("libfake.so.1 cannot be loaded"), "{text}");
}

#[test]
fn a_library_without_the_function_says_which() {
    let scene = Scene::new();
    let symbols = load(&[scene.main()]).unwrap();
    // SAFETY: it is not there.
    let absent = unsafe { symbols[0].get::<extern "C" fn()>(b"no_such_function\0") };
    let text = absent.unwrap_err().to_string();
    assert!(text.contains("no_such_function"), "{text}");
}

#[test]
fn a_library_that_reports_no_version_has_the_locks() {
    let scene = Scene::new();
    let version = |checked: Checked| checked.record(&FAKE, String::new(), Some(&scene.entry));
    assert_eq!(version(scene.check(None).unwrap()).version, "1.2.3");
    fs::write(scene.main(), "another one").unwrap();
    let own = scene.check(Some(&scene.main())).unwrap();
    assert_eq!(version(own).version, "unknown");
}

#[test]
fn the_lock_records_every_file_that_is_loaded() {
    let all = [
        &CUBLAS,
        &CUBLASLT,
        &CUDART,
        &CUDA_HEADERS,
        &CUDNN,
        &CUDNN_LEGACY,
        &CUPTI,
        &NCCL,
        &NVRTC,
        &ONEDNN,
        &OPENBLAS,
        &TRANSFORMER_ENGINE,
    ];
    for wanted in all {
        let entry = lock::entry(wanted.artifact).expect(wanted.artifact);
        let same = all.iter().filter(|each| each.artifact == wanted.artifact);
        let mut files: Vec<_> = same.flat_map(|each| each.files.to_vec()).collect();
        files.sort();
        assert!(entry.files.keys().eq(files), "{}", wanted.artifact);
    }
}

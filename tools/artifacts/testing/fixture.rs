//! A lock and a cache in a temporary folder.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use artifacts_lib::cache::{Access, Cache};
use artifacts_lib::cancel::Cancel;
use artifacts_lib::context::Context;
use artifacts_lib::digest::Digest;
use artifacts_lib::http::{Http, Policy};
use artifacts_lib::lock::{Artifact, Lock, Source};
use artifacts_lib::progress::Progress;
use tempfile::TempDir;

/// Retries and time-outs short enough for a test.
pub const QUICK: Policy = Policy {
    attempts: 3,
    backoff: Duration::from_millis(10),
    longest_backoff: Duration::from_millis(50),
    stall: Duration::from_millis(400),
    stall_bytes: 1000,
    redirects: 4,
};

pub struct Fixture {
    pub folder: TempDir,
    pub artifact: Artifact,
}

impl Fixture {
    /// A lock with one artifact, `thing`, of this content, at these addresses.
    pub fn new(content: &[u8], urls: &[String]) -> Self {
        let artifact = Artifact {
            name: "thing".into(),
            version: "1.0+r1".into(),
            source: Source::Http {
                urls: urls.to_vec(),
            },
            sha256: Digest::of(content),
            size: content.len() as u64,
            licence: "MIT".into(),
            redistributable: true,
            upstream: "https://example.com/thing".into(),
            urls: Vec::new(),
            files: Default::default(),
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fixture = Self { folder, artifact };
        fixture.write_lock();
        fixture
    }

    /// After a change of `artifact`.
    pub fn write_lock(&self) {
        let lock = Lock {
            schema: 1,
            artifacts: vec![self.artifact.clone()],
        };
        lock.write(&self.lock_path()).expect("a lock");
    }

    pub fn lock_path(&self) -> PathBuf {
        self.folder.path().join("lock.json")
    }

    pub fn cache_path(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub fn context(&self) -> Context {
        let cancel = Cancel::default();
        Context {
            lock_path: self.lock_path(),
            lock: Lock::read(&self.lock_path()).expect("a lock"),
            cache: Cache::open(&self.cache_path(), Access::Shared).expect("a cache"),
            http: Http::new(QUICK, cancel.clone()).expect("a client"),
            mirrors: Vec::new(),
            s3: None,
            python: None,
            recipes: PathBuf::new(),
            progress: Progress::none(),
            cancel,
            building: Mutex::new(()),
        }
    }

    /// What a failed command must leave unchanged: the cached files and the lock.
    pub fn state(&self) -> (Vec<String>, String) {
        let blobs = fs::read_dir(self.cache_path().join("blobs"));
        let names = blobs.into_iter().flatten().flatten();
        let mut names: Vec<_> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        (
            names,
            fs::read_to_string(self.lock_path()).expect("the lock"),
        )
    }

    /// Fetches, expects a failure that changes nothing, and returns its message.
    pub fn refusal(&self) -> String {
        let context = self.context();
        let before = self.state();
        let error = context
            .fetch(&context.lock.artifacts[0])
            .expect_err("should fail");
        assert_eq!(
            self.state(),
            before,
            "a failed fetch changed the cache or the lock"
        );
        error.to_string()
    }

    /// Fetches, and checks what arrived.
    pub fn success(&self) {
        let context = self.context();
        let fetched = context.fetch(&context.lock.artifacts[0]);
        fetched.expect("should succeed");
        let blob = fs::read(context.cache.blob(self.artifact.sha256)).expect("the blob");
        assert_eq!(Digest::of(&blob), self.artifact.sha256);
    }
}

//! Uploads: to a folder, to a web server, and to a real S3-compatible server.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use artifacts_lib::credentials::{Credentials, Settings};
use artifacts_lib::digest::Digest;
use artifacts_lib::fetch::Origin;
use artifacts_lib::lock::{Lock, Source};
use artifacts_lib::s3::{Action, Bucket};
use artifacts_lib::store::Store;
use artifacts_lib::upload::{upload, Licence};
use artifacts_testing::{Fixture, Response, Server};

const CONTENT: &[u8] = b"kernels";

/// A fixture whose artifact is a recipe's result, present in the cache.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new(CONTENT, &[]);
    let (recipe, arch) = ("thing".to_owned(), "sm_90a".to_owned());
    fixture.artifact.source = Source::Recipe {
        recipe,
        arch,
        cpu: None,
        inputs: Vec::new(),
    };
    fixture.write_lock();
    put_in_cache(&fixture);
    fixture
}

fn put_in_cache(fixture: &Fixture) {
    let context = fixture.context();
    let file = fixture.folder.path().join("made");
    fs::write(&file, CONTENT).unwrap();
    context
        .cache
        .admit(&file, &fixture.artifact, &context.cancel)
        .unwrap();
}

fn urls(fixture: &Fixture) -> Vec<String> {
    Lock::read(&fixture.lock_path()).unwrap().artifacts[0]
        .urls
        .clone()
}

/// Uploads twice, fetches into an empty cache, then finds the key taken by other content.
fn round_trip(store: &Store, overwrite: impl FnOnce(&str)) {
    let fixture = fixture();
    let context = fixture.context();
    let url = upload(&context, &fixture.artifact, store, Licence::Respected).unwrap();
    assert!(url.ends_with("/thing-1.0_r1.zip"), "{url}");
    let again = upload(&context, &fixture.artifact, store, Licence::Respected).unwrap();
    assert_eq!((&again, urls(&fixture)), (&url, vec![url.clone()]));

    fs::remove_dir_all(fixture.cache_path()).unwrap();
    let context = fixture.context();
    let origin = context.fetch(&context.lock.artifacts[0]).unwrap();
    assert_eq!(origin, Origin::Store);

    overwrite(&url);
    let before = fixture.state();
    let error = upload(&context, &fixture.artifact, store, Licence::Respected).unwrap_err();
    assert!(error.to_string().contains("other content"), "{error}");
    assert_eq!(fixture.state(), before);
    let held = store.digest(&context.http, "thing-1.0_r1.zip").unwrap();
    assert_eq!(
        held,
        Some(Digest::of(b"other")),
        "the other content was replaced"
    );
}

#[test]
fn folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let store = Store::parse(&format!("file://{path}")).unwrap();
    round_trip(&store, |url| {
        // What a store holds is read-only.
        let path = url.strip_prefix("file://").unwrap();
        fs::remove_file(path).unwrap();
        fs::write(path, "other").unwrap()
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "leftovers");
}

#[test]
fn web() {
    let server = Server::store();
    let store = Store::parse(&server.url("/a/b")).unwrap();
    round_trip(&store, |url| {
        let client = reqwest::blocking::Client::new();
        let answer = client.put(url).body("other").send().unwrap();
        assert_eq!(answer.status(), 201);
    });
    let put = server
        .requests()
        .into_iter()
        .find(|request| request.method == "PUT")
        .unwrap();
    assert_eq!(put.header("if-none-match"), Some("*"));
}

#[test]
fn a_race_that_was_lost_is_a_conflict() {
    // Reported missing when queried, but taken when written.
    let server = Server::start(|request, before| match (&request.method[..], before) {
        ("GET", 0) => Response::status(404),
        ("GET", _) => Response::ok(b"other"),
        _ => Response::status(412),
    });
    let fixture = fixture();
    let store = Store::parse(&server.url("/a")).unwrap();
    let before = fixture.state();
    let context = fixture.context();
    let error = upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap_err();
    assert!(error.to_string().contains("other content"), "{error}");
    assert_eq!(fixture.state(), before);
}

#[test]
fn a_store_that_loses_bytes_gets_no_address() {
    let server = Server::start(|request, before| match (&request.method[..], before) {
        ("GET", 0) => Response::status(404),
        ("GET", _) => Response::ok(b"kern"),
        _ => Response::status(200),
    });
    let fixture = fixture();
    let store = Store::parse(&server.url("/a")).unwrap();
    let context = fixture.context();
    let error = upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap_err();
    assert!(error.to_string().contains("read back"), "{error}");
    assert_eq!(urls(&fixture), Vec::<String>::new());
}

#[test]
fn licences_are_respected() {
    let mut fixture = fixture();
    fixture.artifact.redistributable = false;
    fixture.artifact.licence = "LicenseRef-Owner".into();
    fixture.write_lock();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::Folder(folder.path().to_path_buf());
    let context = fixture.context();
    let error = upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("LicenseRef-Owner") && message.contains("--accept-licence"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    upload(&context, &fixture.artifact, &store, Licence::Accepted).unwrap();
}

#[test]
fn unknown_schemes_are_refused() {
    let error = Store::parse("ftp://host/x").err().unwrap().to_string();
    assert!(error.contains("s3://bucket/prefix"), "{error}");
}

/// SeaweedFS, an S3 server that checks signatures, named by S3_SERVER.
struct S3Server {
    child: Child,
    endpoint: String,
    _folder: tempfile::TempDir,
}

impl S3Server {
    /// Somebody may take a port between the choice and the server's start: then it exits, and others are chosen.
    fn start() -> Self {
        let mut log = String::new();
        for _ in 0..5 {
            match Self::try_start() {
                Ok(server) => return server,
                Err(said) => log = said,
            }
        }
        panic!("the S3 server did not start: {log}");
    }

    fn try_start() -> Result<Self, String> {
        let program = std::env::var("S3_SERVER").expect("S3_SERVER names SeaweedFS's program");
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        let identities = r#"{"identities": [{"name": "test", "actions": ["Admin"],
            "credentials": [{"accessKey": "id", "secretKey": "secret"}]}]}"#;
        fs::write(place("identities.json"), identities).unwrap();
        let port = free_port();
        let log = fs::File::create(place("log")).unwrap();
        let child = Command::new(program)
            .args([
                "server",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-master.telemetry=false",
            ])
            .args(["-volume.max=5", "-filer", "-s3", "-s3.autoCreateBucket"])
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0"])
            .arg(format!("-dir={}", folder.path().display()))
            .arg(format!("-master.port={}", free_port()))
            .arg(format!("-volume.port={}", free_port()))
            .arg(format!("-filer.port={}", free_port()))
            .arg(format!("-filer.localSocket={}", place("filer")))
            .arg(format!("-s3.port={port}"))
            .arg(format!("-s3.localSocket={}", place("s3")))
            .arg(format!("-s3.config={}", place("identities.json")))
            .stderr(log)
            .spawn()
            .expect("S3_SERVER starts");
        let mut server = Self {
            child,
            endpoint: format!("http://127.0.0.1:{port}"),
            _folder: folder,
        };
        // It answers 503 until its services have found each other.
        for _ in 0..600 {
            if reqwest::blocking::get(&server.endpoint).is_ok_and(|a| a.status() != 503) {
                return Ok(server);
            }
            if server.child.try_wait().unwrap().is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err(fs::read_to_string(server._folder.path().join("log")).unwrap())
    }

    fn settings(&self, secret: &str) -> Settings {
        let credentials = Credentials {
            key_id: "id".into(),
            secret: secret.into(),
            session: None,
        };
        Settings {
            credentials,
            region: "us-east-1".into(),
            endpoint: Some(self.endpoint.clone()),
        }
    }

    fn bucket(&self, secret: &str) -> Store {
        let settings = self.settings(secret);
        Store::S3(Bucket::with("s3://bucket/some/prefix", &settings).unwrap())
    }
}

/// Each service uses a second port, 10000 above its own.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let second = port.checked_add(10_000);
        if second.is_some_and(|second| TcpListener::bind(("127.0.0.1", second)).is_ok()) {
            return port;
        }
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn s3() {
    let server = S3Server::start();
    let store = server.bucket("secret");
    let fixture = fixture();
    let context = fixture.context();

    let wrong = server.bucket("wrong");
    let error = upload(&context, &fixture.artifact, &wrong, Licence::Respected).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("HTTP 403") && !message.contains("Signature"),
        "{message}"
    );

    let url = upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap();
    let expected = format!("{}/bucket/some/prefix/thing-1.0_r1.zip", server.endpoint);
    assert_eq!((&url, urls(&fixture)), (&expected, vec![expected.clone()]));
    let held = || store.digest(&context.http, "thing-1.0_r1.zip").unwrap();
    assert_eq!(held(), Some(Digest::of(CONTENT)));
    let lock = fs::read_to_string(fixture.lock_path()).unwrap();
    assert!(
        !lock.contains("X-Amz") && !lock.contains("secret"),
        "{lock}"
    );

    upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap();

    fs::remove_dir_all(fixture.cache_path()).unwrap();
    let mut context = fixture.context();
    let thing = context.lock.artifacts[0].clone();
    context
        .fetch(&thing)
        .expect_err("not readable without a signature");
    context.s3 = Some(server.settings("secret"));
    assert_eq!(context.fetch(&thing).unwrap(), Origin::Store);

    let Store::S3(bucket) = &store else {
        unreachable!("bucket() gives this kind")
    };
    let address = bucket.signed_url("thing-1.0_r1.zip", Action::Put).unwrap();
    let client = reqwest::blocking::Client::new();
    let answer = client.put(address).body("other").send().unwrap();
    assert_eq!(answer.status(), 200);
    let error = upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap_err();
    assert!(error.to_string().contains("other content"), "{error}");
    assert_eq!(held(), Some(Digest::of(b"other")));
}

//! Downloads from a server that does everything wrong: each failure says why, and leaves the cache
//! and the lock unchanged.

use std::os::unix::fs::symlink;
use std::thread;
use std::time::{Duration, Instant};

use artifacts_lib::mirror::Place;
use artifacts_testing::{Fixture, Response, Server};

const SIZE: usize = 200_000;

fn content() -> Vec<u8> {
    (0..SIZE).map(|i| (i * 31 % 251) as u8).collect()
}

fn fixture(server: &Server) -> Fixture {
    Fixture::new(&content(), &[server.url("/thing.bin")])
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

#[test]
fn a_good_download_is_kept_and_not_repeated() {
    let server = Server::start(|request, _| Response::ranged(request, &content()));
    let fixture = fixture(&server);
    fixture.success();
    fixture.success();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn wrong_content() {
    let server = Server::start(|_, _| Response::ok(&vec![7; SIZE]));
    says(&fixture(&server).refusal(), &["sha256 is", "the lock says"]);
    assert_eq!(
        server.requests().len(),
        1,
        "the same address does not get better"
    );
}

#[test]
fn truncated_body() {
    let server = Server::start(|_, _| Response {
        announced: Some(None),
        ..Response::ok(&[1; 50])
    });
    says(
        &fixture(&server).refusal(),
        &["ended after 50 of 200000 bytes"],
    );
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_dropped_connection_is_resumed() {
    let server = Server::start(|request, before| {
        let response = Response::ranged(request, &content());
        if before == 0 {
            response.dropped_after(70_000)
        } else {
            response
        }
    });
    fixture(&server).success();
    let second = &server.requests()[1];
    let start = second.range_start().expect("a Range");
    assert!((1..=70_000).contains(&start), "{start}");
}

#[test]
fn a_server_that_cannot_resume_starts_again() {
    let server = Server::start(|_, before| {
        let response = Response::ok(&content());
        if before == 0 {
            response.dropped_after(70_000)
        } else {
            response
        }
    });
    fixture(&server).success();
}

#[test]
fn a_lying_range_is_not_believed() {
    let server = Server::start(|request, before| {
        let response = Response::ranged(request, &content());
        match before {
            0 => response.dropped_after(70_000),
            1 => Response {
                status: 206,
                body: content(),
                ..Response::default()
            }
            .header("Content-Range", "bytes 0-9/10"),
            _ => response,
        }
    });
    fixture(&server).success();
    assert_eq!(server.requests()[2].range_start(), None);
}

#[test]
fn a_beginning_of_another_file_is_given_up() {
    let server = Server::start(|request, _| Response::ranged(request, &content()));
    let fixture = fixture(&server);
    let partial = fixture.context().cache.partial(fixture.artifact.sha256);
    std::fs::write(partial, [9; 1000]).unwrap();
    fixture.success();
    let starts: Vec<_> = server.requests().iter().map(|r| r.range_start()).collect();
    assert_eq!(starts, [Some(1000), None]);
}

#[test]
fn refusals_are_final() {
    for status in [401, 403, 404, 410] {
        let server = Server::start(move |_, _| Response::status(status));
        says(&fixture(&server).refusal(), &[&format!("HTTP {status}")]);
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[test]
fn passing_failures_are_tried_again() {
    for status in [408, 429, 500, 502, 503] {
        let server = Server::start(move |request, before| match before {
            0 => Response::status(status).header("Retry-After", "0"),
            _ => Response::ranged(request, &content()),
        });
        fixture(&server).success();
        assert_eq!(server.requests().len(), 2, "{status}");
    }
}

#[test]
fn lasting_failures_end() {
    let server = Server::start(|_, _| Response::status(500));
    says(&fixture(&server).refusal(), &["HTTP 500"]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn redirect_loop() {
    let server = Server::start(|_, _| Response::status(302).header("Location", "/thing.bin"));
    says(&fixture(&server).refusal(), &["redirected in a loop"]);
    assert!(server.requests().len() <= 6, "{}", server.requests().len());
}

#[test]
fn slow_loris() {
    let byte_delay = Some(Duration::from_millis(20));
    let server = Server::start(move |_, _| Response {
        byte_delay,
        ..Response::ok(&content())
    });
    let start = Instant::now();
    says(&fixture(&server).refusal(), &["stalled"]);
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn silent_server() {
    let delay = Some(Duration::from_secs(5));
    let server = Server::start(move |_, _| Response {
        delay,
        ..Response::ok(&content())
    });
    says(&fixture(&server).refusal(), &["timed out"]);
}

#[test]
fn nobody_listens() {
    // Port 9 (discard) is not served on loopback.
    let fixture = Fixture::new(&content(), &["http://127.0.0.1:9/thing.bin".into()]);
    says(&fixture.refusal(), &["127.0.0.1:9", "no answer"]);
}

#[test]
fn an_announced_bomb_is_not_read() {
    let announced = Some(Some(1 << 40));
    let server = Server::start(move |_, _| Response {
        announced,
        ..Response::ok(&content())
    });
    says(
        &fixture(&server).refusal(),
        &["1099511627776 bytes", "the lock says 200000"],
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_unannounced_bomb_is_cut() {
    let body = vec![0; 50 * SIZE];
    let server = Server::start(move |_, _| Response {
        announced: Some(None),
        ..Response::ok(&body)
    });
    let fixture = fixture(&server);
    says(&fixture.refusal(), &["the lock says 200000"]);
    assert!(!fixture
        .context()
        .cache
        .partial(fixture.artifact.sha256)
        .exists());
}

#[test]
fn disk_full() {
    let server = Server::start(|request, _| Response::ranged(request, &content()));
    let fixture = fixture(&server);
    let partial = fixture.context().cache.partial(fixture.artifact.sha256);
    symlink("/dev/full", partial).unwrap();
    says(
        &fixture.refusal(),
        &["No space left", "artifacts gc", "HEAD_TO_HEAD_CACHE"],
    );
}

#[test]
fn two_fetches_at_once_make_one_download() {
    let delay = Some(Duration::from_millis(100));
    let server = Server::start(move |_, _| Response {
        delay,
        ..Response::ok(&content())
    });
    let fixture = fixture(&server);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fixture.success());
        }
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_next_place_helps() {
    let bad = Server::start(|_, _| Response::status(404));
    let good = Server::start(|request, _| Response::ranged(request, &content()));
    let urls = [bad.url("/thing.bin"), good.url("/thing.bin")];
    Fixture::new(&content(), &urls).success();
}

#[test]
fn every_place_is_named_when_none_helps() {
    let server = Server::start(|_, _| Response::status(404));
    let fixture = fixture(&server);
    let mut context = fixture.context();
    context.mirrors = vec![
        Place::parse("/nowhere"),
        Place::parse(&server.url("/mirror")),
    ];
    let error = context.fetch(&fixture.artifact).unwrap_err().to_string();
    says(
        &error,
        &[
            "thing: no source worked",
            "/nowhere/thing.bin",
            "/mirror/thing.bin",
        ],
    );
}

#[test]
fn a_mirror_folder_serves_without_a_network() {
    let fixture = Fixture::new(&content(), &["http://127.0.0.1:9/thing.bin".into()]);
    let mirror = fixture.folder.path().join("mirror");
    std::fs::create_dir(&mirror).unwrap();
    std::fs::write(mirror.join("thing.bin"), content()).unwrap();
    let mut context = fixture.context();
    context.mirrors = vec![Place::parse(&mirror.display().to_string())];
    context.fetch(&fixture.artifact).unwrap();
    assert!(context.cache.has(&fixture.artifact));
}

#[test]
fn a_damaged_mirror_is_not_believed() {
    let fixture = Fixture::new(&content(), &["http://127.0.0.1:9/thing.bin".into()]);
    std::fs::write(fixture.folder.path().join("thing.bin"), vec![0; SIZE]).unwrap();
    let mut context = fixture.context();
    context.mirrors = vec![Place::parse(&fixture.folder.path().display().to_string())];
    let error = context.fetch(&fixture.artifact).unwrap_err().to_string();
    says(&error, &["thing: sha256 is", "127.0.0.1:9"]);
    assert!(!context.cache.has(&fixture.artifact));
}

#[test]
fn signatures_in_addresses_are_not_shown() {
    let server = Server::start(|_, _| Response::status(403));
    let fixture = Fixture::new(&content(), &[server.url("/thing.bin?X-Amz-Signature=hush")]);
    let message = fixture.refusal();
    assert!(!message.contains("hush"), "{message}");
}

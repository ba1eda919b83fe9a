//! Lost rows, profiled by a stand-in for ncu.

use report_lib::{why, why_text, Which, WhyOptions};
use report_testing::{collection, sample};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Prints a kernel each, of twice the duration for ours, and notes how it was called.
const NCU: &str = r#"#!/bin/sh
echo "$@" >> calls
echo '"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"'
echo '"0","op 64 ours/a","GPU Speed Of Light Throughput","Duration","ns","2,000"'
echo '"0","op 64 ours/a","GPU Speed Of Light Throughput","DRAM Throughput","%","50"'
echo '"1","op 64 quack/b(int, void*)","GPU Speed Of Light Throughput","Duration","ns","1,000"'
echo '"1","op 64 quack/b(int, void*)","GPU Speed Of Light Throughput","DRAM Throughput","%","50"'
"#;

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn options(folder: &Path) -> WhyOptions {
    WhyOptions {
        programs: folder.to_owned(),
        which: Which::Worst(2),
        ncu: folder.join("ncu"),
        limit: Duration::from_secs(60),
    }
}

#[test]
fn both_sides_of_the_worst_losses_stand_side_by_side() {
    let folder = TempDir::new().unwrap();
    let calls = folder.path().join("calls");
    script(&folder.path().join("bench_norms"), "#!/bin/sh\n");
    let ncu = NCU.replace(">> calls", &format!(">> '{}'", calls.display()));
    script(&folder.path().join("ncu"), &ncu);
    let runs = collection(vec![sample().runs.remove(0).file]);
    let mut told = Vec::new();
    let losses = why(&runs, &options(folder.path()), &mut |title| {
        told.push(title.to_owned())
    })
    .unwrap();
    assert_eq!(losses.len(), 2);
    assert!(
        told[0].contains("bf16 quack/65536x4096: ours 0.9"),
        "{told:?}"
    );
    let text = why_text(&losses);
    assert!(text.contains("| metric | unit | ours | quack |"), "{text}");
    assert!(
        text.contains("| latency: nothing busier than memory, 50 % | quack |"),
        "{text}"
    );
    assert!(text.contains("| Duration | ns | 2000 | 1000 |"), "{text}");
    let calls = fs::read_to_string(calls).unwrap();
    assert_eq!(calls.lines().count(), 2);
    for call in calls.lines() {
        assert!(
            call.contains("--profile-from-start off") && call.ends_with("--profile"),
            "{call}"
        );
        assert!(
            call.contains("--device=cuda") && call.contains("--configs=65536x4096"),
            "{call}"
        );
        assert!(call.contains("--contenders=ours,quack "), "{call}");
    }
}

#[test]
fn what_cannot_be_profiled_is_said() {
    let folder = TempDir::new().unwrap();
    let runs = collection(vec![sample().runs.remove(0).file]);
    let refused = || {
        why(&runs, &options(folder.path()), &mut |_| {})
            .unwrap_err()
            .to_string()
    };
    assert!(refused().contains("no bench_norms in"), "{}", refused());
    script(&folder.path().join("bench_norms"), "#!/bin/sh\n");
    assert!(
        refused().contains("install Nsight Compute"),
        "{}",
        refused()
    );
    script(
        &folder.path().join("ncu"),
        "#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM' >&2\nexit 1\n",
    );
    let told = refused();
    assert!(
        told.contains("no table") && told.contains("ERR_NVGPUCTRPERM"),
        "{told}"
    );
    // A row that cannot be profiled does not take the others' profiles away.
    let file = |name: &str| format!("'{}'", folder.path().join(name).display());
    let ncu = NCU.replace(">> calls", &format!(">> {}", file("calls")));
    let first = format!(
        "#!/bin/sh\n[ -e {0} ] || {{ touch {0}; echo no counters; exit 1; }}\n",
        file("asked")
    );
    script(
        &folder.path().join("ncu"),
        &ncu.replacen("#!/bin/sh\n", &first, 1),
    );
    let losses = why(&runs, &options(folder.path()), &mut |_| {}).unwrap();
    assert!(losses[0].profiles.is_err() && losses[1].profiles.is_ok());
    assert!(why_text(&losses).contains("it said: no counters"));
    let below = WhyOptions {
        which: Which::Below(0.5),
        ..options(folder.path())
    };
    assert!(why(&runs, &below, &mut |_| {}).is_err());
    let mut won = sample().runs.remove(0).file;
    won.rows.retain(|row| row.workload.name == "1024x4096");
    let nothing = why(&collection(vec![won]), &options(folder.path()), &mut |_| {});
    assert!(nothing
        .unwrap_err()
        .to_string()
        .contains("no such row is lost"));
}

//! The script that fetches libraries which the archive does not have, each from its own source.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::at;
use crate::lock::Lock;

/// Writes fetch.sh.
pub fn write(lock: &Lock, cuda: bool, folder: &Path) -> Result<(), String> {
    let path = folder.join("fetch.sh");
    fs::write(&path, script(lock, cuda)?).map_err(|error| at(&path, &error))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(|error| at(&path, &error))
}

fn script(lock: &Lock, cuda: bool) -> Result<String, String> {
    let mut text = String::from(
        "#!/bin/sh\n\
         # Fetches the libraries that some contenders load, from where their authors publish them, into lib/. Needs\n\
         # Python 3.11 to 3.13 with pip, or --mirror DIR. Without them those contenders are absent, and say so.\n\
         #\n",
    );
    for artifact in lock.loaded(cuda) {
        let (name, version, licence) = (&artifact.name, &artifact.version, &artifact.licence);
        text += &format!("#   {name} {version}: {licence}; {}\n", artifact.upstream);
    }
    text += "set -eu\ncd \"$(dirname \"$0\")\"\nfolder=$(mktemp -d ./fetched.XXXXXX)\n\
             trap 'rm -rf \"$folder\"' EXIT\n./artifacts --lock artifacts.lock.json \"$@\" fetch \\\n";
    for artifact in lock.loaded(cuda) {
        text += &format!("    {} \\\n", artifact.name);
    }
    text += "    --unpack \"$folder\"\nmkdir -p lib\n";
    let mut sums = String::new();
    for artifact in lock.loaded(cuda) {
        for (file, sha256) in &artifact.files {
            let name = file.rsplit('/').next().unwrap_or(file);
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
            let hexadecimal = sha256.len() == 64 && sha256.chars().all(|c| c.is_ascii_hexdigit());
            if ![&artifact.name, file]
                .iter()
                .all(|word| word.chars().all(plain))
                || !hexadecimal
            {
                return Err(format!(
                    "the lock has a file '{file}' of {} that no script can name",
                    artifact.name
                ));
            }
            text += &format!("cp \"$folder/{}/{file}\" lib/\n", artifact.name);
            sums += &format!("{sha256}  lib/{name}\n");
        }
    }
    text += &format!("sha256sum --check --quiet <<'END'\n{sums}END\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_fetched_by_name_and_checked_by_digest() {
        let text = script(&crate::lock::tests::lock(), true).unwrap();
        for line in [
            "    nvidia-cublas \\",
            "cp \"$folder/onednn-cpu/a/lib/libdnnl.so.3\" lib/",
            &format!("{}  lib/libcublas.so.13", "ab".repeat(32)),
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "no '{line}' in\n{text}"
            );
        }
        let cpu = script(&crate::lock::tests::lock(), false).unwrap();
        assert!(!cpu.contains("nvidia"), "{cpu}");
    }
}

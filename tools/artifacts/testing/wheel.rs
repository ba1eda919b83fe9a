//! A minimal wheel.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;
use zip::ZipWriter;

/// Writes `<package>-<version>-py3-none-any.whl` with one module, named like the package.
pub fn write_wheel(folder: &Path, package: &str, version: &str, module: &str) -> PathBuf {
    write_wheel_for("any", folder, package, version, module)
}

/// The same for one platform.
pub fn write_wheel_for(
    platform: &str,
    folder: &Path,
    package: &str,
    version: &str,
    module: &str,
) -> PathBuf {
    let path = folder.join(format!("{package}-{version}-py3-none-{platform}.whl"));
    let info = format!("{package}-{version}.dist-info");
    let metadata = format!("Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n");
    let tag = format!("Root-Is-Purelib: true\nTag: py3-none-{platform}\n");
    let wheel = format!("Wheel-Version: 1.0\nGenerator: test\n{tag}");
    let mut zip = ZipWriter::new(File::create(&path).expect("a wheel"));
    for (name, text) in [
        (format!("{package}.py"), module),
        (format!("{info}/METADATA"), &metadata),
        (format!("{info}/WHEEL"), &wheel),
        (format!("{info}/RECORD"), ""),
    ] {
        let options = SimpleFileOptions::default();
        zip.start_file(name, options).expect("an entry");
        zip.write_all(text.as_bytes()).expect("its text");
    }
    zip.finish().expect("a complete wheel");
    path
}

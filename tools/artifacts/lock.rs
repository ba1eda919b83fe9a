//! The lock file: the exact list of artifacts.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{At, Error, Result};
use crate::http::without_credentials;
use crate::publish::publish;

const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    pub schema: u32,
    pub artifacts: Vec<Artifact>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    pub name: String,
    pub version: String,
    pub source: Source,
    pub sha256: Digest,
    pub size: u64,
    /// SPDX expression, or a `LicenseRef-` name.
    pub licence: String,
    pub redistributable: bool,
    /// Project home page.
    pub upstream: String,
    /// Copies in stores, written by `upload`; tried before `source`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Digests of members that programs load one by one and verify first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A file from a package registry, fetched by that registry's client.
    Registry {
        registry: String,
        package: String,
        file: String,
        /// A single file of the package, to which digest and size refer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
    },
    Http {
        urls: Vec<String>,
    },
    /// Built from other artifacts by `recipes/<recipe>.py`.
    Recipe {
        recipe: String,
        arch: String,
        /// The CPU of the objects' host code, if not x86-64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu: Option<String>,
        inputs: Vec<String>,
    },
}

impl Artifact {
    pub fn file(&self) -> String {
        match &self.source {
            Source::Registry { file, member, .. } => {
                member.as_deref().map_or(file.clone(), last_segment)
            }
            Source::Http { urls } => urls
                .first()
                .map(|url| last_segment(url))
                .unwrap_or_default(),
            Source::Recipe { .. } => format!("{}-{}.zip", self.name, self.version),
        }
    }

    /// The file name in a store: S3 and Bazel disagree on how to encode `+` in a URL.
    pub fn key(&self) -> String {
        self.file().replace('+', "_")
    }
}

impl Lock {
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).at("read", path)?;
        Self::parse(&text, path)
    }

    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let at = |line, message| Error::Lock {
            path: path.to_path_buf(),
            line,
            message,
        };
        let lock: Self = serde_json::from_str(text).map_err(|error| {
            at(
                error.line(),
                format!("{}{error}", named(text, error.line())),
            )
        })?;
        lock.check().map_err(|fault| {
            let line = line_of(text, &fault.artifact, fault.field);
            at(
                line,
                format!("{} `{}`: {}", fault.field, fault.artifact, fault.message),
            )
        })?;
        Ok(lock)
    }

    /// Writes atomically: a reader sees the old lock or the new one.
    pub fn write(&self, path: &Path) -> Result<()> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        publish(folder.unwrap_or(Path::new(".")), path, |file| {
            file.write_all(self.text().as_bytes())
        })
    }

    pub fn text(&self) -> String {
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{json}\n")
    }

    pub fn get(&self, name: &str) -> Result<&Artifact> {
        self.artifacts
            .iter()
            .find(|artifact| artifact.name == name)
            .ok_or_else(|| {
                Error::Refused(format!(
                    "no artifact `{name}` in the lock; see `artifacts list`"
                ))
            })
    }

    /// Adds or replaces the artifact of that name, and keeps the order.
    pub fn put(&mut self, artifact: Artifact) {
        self.artifacts.retain(|other| other.name != artifact.name);
        let place = self
            .artifacts
            .partition_point(|other| other.name < artifact.name);
        self.artifacts.insert(place, artifact);
    }

    fn check(&self) -> Result<(), Fault> {
        if self.schema != SCHEMA {
            let message =
                format!("this tool reads schema {SCHEMA}; use the tool from the same checkout");
            return Err(fault("schema", &self.schema.to_string(), message));
        }
        let names: HashSet<_> = self.artifacts.iter().map(|a| a.name.as_str()).collect();
        let mut files = HashSet::new();
        for pair in self.artifacts.windows(2) {
            if pair[0].name >= pair[1].name {
                let message = format!(
                    "comes after `{}`; sort by name, without duplicates",
                    pair[0].name
                );
                return Err(fault("name", &pair[1].name, message));
            }
        }
        for artifact in &self.artifacts {
            artifact.check(&names)?;
            if !files.insert(artifact.key()) {
                return Err(fault(
                    "name",
                    &artifact.name,
                    "has the same file name as another".into(),
                ));
            }
        }
        Ok(())
    }
}

impl Artifact {
    fn check(&self, names: &HashSet<&str>) -> Result<(), Fault> {
        let wrong = |field, message: &str| Err(fault(field, &self.name, message.to_owned()));
        if !is_word(&self.name, "-_.") || self.name.chars().any(|c| c.is_ascii_uppercase()) {
            return wrong(
                "name",
                "use lower-case letters, digits and `-_.`, a letter or digit first",
            );
        }
        if !is_version(&self.version) {
            return wrong(
                "version",
                "use letters, digits and `._+!-`, a letter or digit first",
            );
        }
        let texts = [&self.licence, &self.upstream];
        if texts
            .iter()
            .any(|text| text.chars().any(char::is_control) || text.len() > 512)
        {
            return wrong("licence", "or upstream is not one short line");
        }
        let mut urls: Vec<&String> = self.urls.iter().collect();
        if let Source::Http { urls: more } = &self.source {
            urls.extend(more);
        }
        if let Some(fault) = urls.into_iter().find_map(|url| fault_of_url(url)) {
            return wrong("urls", fault);
        }
        if !self.files.keys().all(|member| is_below(member)) {
            return wrong("files", "names a path outside the archive");
        }
        if self.size == 0 {
            return wrong("size", "is 0");
        }
        if self.licence.is_empty() {
            return wrong(
                "licence",
                "is empty; give an SPDX expression or LicenseRef-...",
            );
        }
        let file = self.file();
        if !is_word(&file, "-_.+!%") {
            return wrong("source", "does not give a plain file name");
        }
        match &self.source {
            Source::Registry { registry, .. } if !["npm", "pypi"].contains(&&registry[..]) => {
                wrong("registry", "is unknown; use `npm` or `pypi`")
            }
            Source::Registry {
                registry,
                member: Some(member),
                ..
            } if registry != "npm" || !is_below(member) => {
                wrong("member", "is not a path inside an npm package")
            }
            Source::Registry {
                registry, package, ..
            } if !is_package(registry, package) => wrong(
                "package",
                "is not the name of a package: neither a URL nor a path nor an option",
            ),
            Source::Registry { registry, .. }
                if registry == "npm" && !self.version.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                wrong(
                    "version",
                    "is a tag that may move; use the number of a version",
                )
            }
            Source::Recipe {
                recipe, arch, cpu, ..
            } if [Some(recipe), Some(arch), cpu.as_ref()]
                .iter()
                .flatten()
                .any(|word| !is_word(word, "_")) =>
            {
                wrong("recipe", "or its arch or cpu is not a plain word")
            }
            Source::Recipe { inputs, .. } if inputs.iter().any(|i| !names.contains(&i[..])) => {
                wrong("inputs", "names an artifact that is not in the lock")
            }
            _ => Ok(()),
        }
    }
}

/// Whether a text is letters, digits and these, with a letter or digit first: neither a path, nor an
/// option, nor anything that a program would take for code.
fn is_word(text: &str, others: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let first = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(first) && text.chars().all(plain) && text.len() <= 200 && !text.contains("..")
}

pub fn is_version(text: &str) -> bool {
    is_word(text, "._+!-")
}

/// Whether a registry's client would take this for a package of the registry, and nothing else.
pub fn is_package(registry: &str, text: &str) -> bool {
    match text.strip_prefix('@') {
        Some(scoped) if registry == "npm" => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_word(scope, "._-") && is_word(name, "._-")),
        _ => is_word(text, "._-"),
    }
}

/// What is wrong with an address; the lock is public.
fn fault_of_url(url: &str) -> Option<&'static str> {
    if url.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Some("have a blank or a control character");
    }
    match url.split_once("://") {
        Some(("http" | "https" | "file", _)) => {}
        _ => return Some("are not http://, https:// or file:// addresses"),
    }
    (without_credentials(url) != url).then_some("have a user name or a password")
}

/// Whether a path stays inside the folder it is relative to.
fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, std::path::Component::Normal(_)))
}

struct Fault {
    field: &'static str,
    artifact: String,
    message: String,
}

fn fault(field: &'static str, artifact: &str, message: String) -> Fault {
    Fault {
        field,
        artifact: artifact.to_owned(),
        message,
    }
}

/// The field on a line of the lock, which has one field per line, and its artifact.
fn named(text: &str, line: usize) -> String {
    let lines: Vec<_> = text.lines().take(line).collect();
    let name = lines.iter().rev().find(|line| key(line) == Some("name"));
    let artifact = name.and_then(|line| line.split('"').nth(3)).unwrap_or("?");
    match lines.last().and_then(|line| key(line)) {
        Some(field) => format!("field `{field}` of `{artifact}`: "),
        None => format!("near `{artifact}`: "),
    }
}

fn key(line: &str) -> Option<&str> {
    line.trim_start()
        .strip_prefix('"')?
        .split_once("\":")
        .map(|(key, _)| key)
}

fn line_of(text: &str, artifact: &str, field: &str) -> usize {
    let is_name = |line: &str| key(line) == Some("name") && line.contains(&format!("{artifact:?}"));
    let mut lines = text
        .lines()
        .enumerate()
        .skip_while(|(_, line)| !is_name(line))
        .peekable();
    let first = lines.peek().map_or(0, |(index, _)| *index);
    let found = lines.find(|(_, line)| key(line) == Some(field));
    found.map_or(first, |(index, _)| index) + 1
}

fn last_segment(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The lock of this checkout: from `bazel run`, else in or above the current folder.
pub fn find() -> Result<PathBuf> {
    const PLACE: &str = "third_party/artifacts.lock.json";
    if let Some(root) = std::env::var_os("BUILD_WORKSPACE_DIRECTORY") {
        return Ok(Path::new(&root).join(PLACE));
    }
    let here = std::env::current_dir().at("read", Path::new("."))?;
    let found = here
        .ancestors()
        .map(|folder| folder.join(PLACE))
        .find(|path| path.is_file());
    found.ok_or_else(|| {
        Error::Refused(format!(
            "no {PLACE} in this folder or above; use --lock FILE"
        ))
    })
}

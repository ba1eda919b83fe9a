//! What can be built: a recipe, an architecture, and the sizes that are compiled in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::GemmKernel;

/// A recipe of tools/artifacts that builds variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipe {
    Quack,
    Liger,
    FlashAttention4,
    /// Compiled by nvcc from the library's headers, without a Python program.
    DeepGemm,
}

/// Versions by artifact (`quack-sm_90a`), from the lock.
static VERSIONS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    serde_json::from_str(env!("HEAD_TO_HEAD_RECIPES"))
        .expect("the build generated it from the lock")
});

/// By recipe, from the lock.
static RELEASES: LazyLock<BTreeMap<String, Releases>> = LazyLock::new(|| {
    serde_json::from_str(env!("HEAD_TO_HEAD_RELEASES"))
        .expect("the build generated it from the lock")
});

/// The releases of a recipe's library that the lock pins beside the current one.
#[derive(Debug, Deserialize)]
pub struct Releases {
    /// Its artifact, which has the name of its package: `quack-kernels`.
    pub library: String,
    pub others: Vec<String>,
}

impl Releases {
    /// The command that pins one more, from the root of a checkout.
    pub fn pin_command(&self) -> String {
        let library = &self.library;
        format!(
            "./bazelw run //tools/artifacts -- pin {library}-VERSION@VERSION --package {library}"
        )
    }
}

impl Recipe {
    pub const ALL: [Self; 4] = [
        Self::Quack,
        Self::Liger,
        Self::FlashAttention4,
        Self::DeepGemm,
    ];

    /// As in the names of its artifacts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quack => "quack",
            Self::Liger => "liger",
            Self::FlashAttention4 => "flash-attention-4",
            Self::DeepGemm => "deep-gemm",
        }
    }

    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|recipe| recipe.name() == name)
    }

    /// Its version for an arch in the lock of this build; none if it does not build for that.
    pub fn version(self, arch: &str) -> Option<&'static str> {
        let version = VERSIONS.get(&format!("{}-{arch}", self.name()));
        version.map(String::as_str)
    }

    /// Other releases of its library; none if it has no library of its own version.
    pub fn releases(self) -> Option<&'static Releases> {
        RELEASES.get(self.name())
    }

    /// What the same recipe makes of another release: `0.6.4+r2` where its own is `0.6.5+r2`.
    pub fn version_of(self, arch: &str, release: Option<&str>) -> Option<String> {
        let own = self.version(arch)?;
        Some(match (release, own.split_once('+')) {
            (None, _) => own.to_owned(),
            (Some(release), Some((_, revision))) => format!("{release}+{revision}"),
            (Some(release), None) => release.to_owned(),
        })
    }

    /// The options that its variants have, for a message.
    pub fn options(self) -> &'static str {
        match self {
            Self::Quack => "--width N",
            Self::Liger => "--width N, or --heads QUERYxKEYxDIM",
            Self::FlashAttention4 => "--head-dim N --group N",
            Self::DeepGemm => "--n N --k N --kernel KERNEL",
        }
    }

    pub fn takes(self, variant: &Variant) -> bool {
        matches!(
            (self, variant),
            (Self::Quack | Self::Liger, Variant::Width(_))
                | (Self::Liger, Variant::Heads { .. })
                | (Self::FlashAttention4, Variant::Group { .. })
                | (Self::DeepGemm, Variant::Gemm { .. })
        )
    }
}

/// The sizes of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Columns of a row.
    Width(usize),
    /// Heads of queries and of keys, and their dimension.
    Heads {
        query: usize,
        key: usize,
        dim: usize,
    },
    /// Query heads per key head.
    Group { head_dim: usize, group: usize },
    /// Columns and depth of a product, and the library's choice for it.
    Gemm {
        n: usize,
        k: usize,
        kernel: GemmKernel,
    },
}

impl Variant {
    /// The options of `artifacts build`, which are the recipe's too.
    pub fn arguments(&self) -> Vec<String> {
        let pairs = match self {
            Self::Width(width) => vec![("--width", width.to_string())],
            Self::Heads { query, key, dim } => vec![("--heads", format!("{query}x{key}x{dim}"))],
            Self::Group { head_dim, group } => vec![
                ("--head-dim", head_dim.to_string()),
                ("--group", group.to_string()),
            ],
            Self::Gemm { n, k, kernel } => vec![
                ("--n", n.to_string()),
                ("--k", k.to_string()),
                ("--kernel", kernel.to_string()),
            ],
        };
        let pairs = pairs.into_iter();
        pairs
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width(width) => write!(f, "n{width}"),
            Self::Heads { query, key, dim } => write!(f, "h{query}k{key}d{dim}"),
            Self::Group { head_dim, group } => write!(f, "d{head_dim}g{group}"),
            Self::Gemm { n, k, kernel } => write!(f, "n{n}k{k}-{kernel}"),
        }
    }
}

/// A variant of a recipe for an architecture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    pub recipe: Recipe,
    /// `sm_90a`.
    pub arch: String,
    pub variant: Variant,
    /// Of its library, if not the one of the archives.
    pub release: Option<String>,
}

impl Wanted {
    pub fn new(recipe: Recipe, arch: &str, variant: Variant) -> Self {
        let arch = arch.to_owned();
        Self {
            recipe,
            arch,
            variant,
            release: None,
        }
    }

    /// The same of another release; none: of the archives' own.
    pub fn of_release(self, release: Option<&str>) -> Self {
        let release = release.map(str::to_owned);
        Self { release, ..self }
    }

    /// Of the recipe that builds it, as its record has it; none if there is no recipe for the arch.
    pub fn version(&self) -> Option<String> {
        self.recipe.version_of(&self.arch, self.release.as_deref())
    }

    /// What `artifacts` is called with to build it.
    pub fn arguments(&self) -> Vec<String> {
        let start = ["build", self.recipe.name(), "--arch", &self.arch];
        let start = start.map(str::to_owned).into_iter();
        let release = self.release.iter();
        let release = release.flat_map(|release| ["--release".to_owned(), release.clone()]);
        start
            .chain(release)
            .chain(self.variant.arguments())
            .collect()
    }

    /// The command that builds it, from the root of a checkout.
    pub fn command(&self) -> String {
        format!(
            "./bazelw run //tools/artifacts -- {}",
            self.arguments().join(" ")
        )
    }
}

/// Its name: that of its folder.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (recipe, arch, variant) = (self.recipe.name(), &self.arch, &self.variant);
        match &self.release {
            None => write!(f, "{recipe}-{arch}-{variant}"),
            Some(release) => write!(f, "{recipe}-{release}-{arch}-{variant}"),
        }
    }
}

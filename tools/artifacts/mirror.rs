//! Places that serve files by name: a folder, or a URL that names are appended to.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Path(PathBuf),
    Url(String),
}

impl Place {
    /// `http://...`, `https://...`, `file://...` or a path.
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix("file://") {
            Some(path) => Self::Path(path.into()),
            None if text.starts_with("http://") || text.starts_with("https://") => {
                Self::Url(text.to_owned())
            }
            None => Self::Path(text.into()),
        }
    }

    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Path(folder) => Self::Path(Path::new(folder).join(name)),
            Self::Url(base) => Self::Url(format!("{}/{name}", base.trim_end_matches('/'))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_appended() {
        let file = |text: &str| Place::parse(text).join("a.whl");
        assert_eq!(file("file:///srv/m"), Place::Path("/srv/m/a.whl".into()));
        assert_eq!(file("m"), Place::Path("m/a.whl".into()));
        assert_eq!(
            file("https://store/m/"),
            Place::Url("https://store/m/a.whl".into())
        );
    }
}

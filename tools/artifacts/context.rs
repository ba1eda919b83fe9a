//! The settings of a run.

use std::path::PathBuf;
use std::sync::Mutex;

use crate::cache::Cache;
use crate::cancel::Cancel;
use crate::credentials::Settings;
use crate::http::Http;
use crate::lock::Lock;
use crate::mirror::Place;
use crate::progress::Progress;

pub struct Context {
    pub lock_path: PathBuf,
    pub lock: Lock,
    pub cache: Cache,
    pub http: Http,
    /// Tried first, in this order.
    pub mirrors: Vec<Place>,
    /// For private stores.
    pub s3: Option<Settings>,
    /// The interpreter to use, or the first suitable one if None.
    pub python: Option<PathBuf>,
    pub recipes: PathBuf,
    pub progress: Progress,
    pub cancel: Cancel,
    /// Recipes are heavy: one at a time.
    pub building: Mutex<()>,
}

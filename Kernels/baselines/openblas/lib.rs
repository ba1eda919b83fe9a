//! OpenBLAS, loaded at run time: one product in f32.
//!
//! The library comes from the artifact lock or from OPENBLAS_LIBRARY. Without it, [`Library::get`]
//! returns an error that says so; there is no fallback.

use std::sync::OnceLock;

use libraries::{Error, Opened, OPENBLAS};

const ROW_MAJOR: i32 = 101;
const AS_IS: i32 = 111;
const TRANSPOSED: i32 = 112;

type Sgemm = unsafe extern "C" fn(
    order: i32,
    transpose_a: i32,
    transpose_b: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: f32,
    a: *const f32,
    line_a: i64,
    b: *const f32,
    line_b: i64,
    beta: f32,
    out: *mut f32,
    line_out: i64,
);

pub struct Library {
    sgemm: Sgemm,
    set_threads: unsafe extern "C" fn(i32),
    threads: unsafe extern "C" fn() -> i32,
    opened: Opened,
}

/// Its threads would else wait actively for 2^26 cycles after every call, in the time of whoever comes
/// next; these are 2^16. It reads the exponent once, when it is loaded; a user's own setting stays.
fn sleep_between_calls() {
    const TIMEOUT: &str = "OPENBLAS_THREAD_TIMEOUT";
    if std::env::var_os(TIMEOUT).is_none() {
        std::env::set_var(TIMEOUT, "16");
    }
}

impl Library {
    /// The library, loaded once per process.
    pub fn get() -> Result<&'static Library, Error> {
        static LIBRARY: OnceLock<Result<Library, Error>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| {
                sleep_between_calls();
                libraries::open(&OPENBLAS).and_then(Self::resolve)
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    fn resolve(opened: Opened) -> Result<Self, Error> {
        // SAFETY: the symbols' types are those of cblas.h with 64-bit sizes, whose suffix they have;
        // the library stays mapped for as long as the struct exists.
        unsafe {
            let symbols = &opened.symbols;
            Ok(Self {
                sgemm: symbols.get(b"scipy_cblas_sgemm64_\0")?,
                set_threads: symbols.get(b"scipy_openblas_set_num_threads64_\0")?,
                threads: symbols.get(b"scipy_openblas_get_num_threads64_\0")?,
                opened,
            })
        }
    }

    /// What was loaded.
    pub fn records(&self) -> &[libraries::Library] {
        &self.opened.records
    }

    /// Makes all later products use this many threads, or as many as it was built for; returns how
    /// many.
    pub fn use_threads(&self, count: usize) -> usize {
        // SAFETY: takes any positive number.
        unsafe {
            (self.set_threads)(i32::try_from(count).unwrap_or(i32::MAX));
            (self.threads)() as usize
        }
    }

    /// out[r, c] = sum over i of a[r, i] * b[c, i].
    pub fn multiply(&self, [m, n, k]: [usize; 3], a: &[f32], b: &[f32], out: &mut [f32]) {
        assert_eq!(a.len(), m * k, "a is not m x k");
        assert_eq!(b.len(), n * k, "b is not n x k");
        assert_eq!(out.len(), m * n, "out is not m x n");
        // SAFETY: the lengths were checked above; lines are those of dense rows.
        unsafe {
            (self.sgemm)(
                ROW_MAJOR,
                AS_IS,
                TRANSPOSED,
                m as i64,
                n as i64,
                k as i64,
                1.0,
                a.as_ptr(),
                k as i64,
                b.as_ptr(),
                k as i64,
                0.0,
                out.as_mut_ptr(),
                n as i64,
            );
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_rows_of_a_and_of_b() {
        let library = Library::get().unwrap();
        for threads in [2, 1] {
            assert_eq!(library.use_threads(threads), threads);
            let (a, b, mut out) = ([1.0, 2.0], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [f32::NAN; 3]);
            library.multiply([1, 3, 2], &a, &b, &mut out);
            assert_eq!(out, [11.0, 17.0, 23.0]);
        }
        assert!(library.records()[0].version.starts_with("0.3."));
    }

    #[test]
    #[should_panic(expected = "b is not n x k")]
    fn wrong_sizes_are_refused() {
        let library = Library::get().unwrap();
        library.multiply([1, 3, 2], &[1.0; 2], &[1.0; 5], &mut [0.0; 3]);
    }
}

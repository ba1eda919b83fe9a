//! Shared by contenders of several families, without any library.

pub mod cpu;
pub mod memory;

/// Concatenates what these functions return; nothing if CUDA is not built.
#[macro_export]
macro_rules! on_cuda {
    ($($module:ident::$contenders:ident),+) => {{
        #[cfg(feature = "cuda")]
        {
            let all = [$($module::$contenders()),+];
            all.into_iter().flatten().collect()
        }
        #[cfg(not(feature = "cuda"))]
        Vec::new()
    }};
}

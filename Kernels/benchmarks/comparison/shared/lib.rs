//! What contenders of several families share and no library is needed for.

pub mod cpu;
pub mod memory;

/// What these functions give, one after the other; nothing where CUDA is not built.
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

//! Writes the C++ half of a `#[cxx::bridge]`: cxx_glue BRIDGE.rs OUT.h OUT.cc

use std::error::Error;
use std::process::ExitCode;
use std::{env, fs};

use proc_macro2::TokenStream;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cxx_glue: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [bridge, header, implementation] = arguments.as_slice() else {
        return Err("usage: cxx_glue BRIDGE.rs OUT.h OUT.cc".into());
    };
    let tokens: TokenStream = fs::read_to_string(bridge)?
        .parse()
        .map_err(|error| format!("{bridge} is not Rust: {error}"))?;
    let mut options = cxx_gen::Opt::default();
    options.include.push(cxx_gen::Include {
        path: header_path(header),
        kind: cxx_gen::IncludeKind::Quoted,
    });
    let code = cxx_gen::generate_header_and_cc(tokens, &options)
        .map_err(|error| format!("{bridge}: {error}"))?;
    fs::write(header, code.header)?;
    fs::write(implementation, code.implementation)?;
    Ok(())
}

/// The header as C++ includes it: relative to the repository, not to Bazel's output folder.
fn header_path(header: &str) -> String {
    header
        .split_once("/bin/")
        .map_or(header, |(_, path)| path)
        .to_owned()
}

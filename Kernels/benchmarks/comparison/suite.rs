//! Runs every bench and writes one folder with everything they found.

fn main() -> std::process::ExitCode {
    suite_lib::main()
}

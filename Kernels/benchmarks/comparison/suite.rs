//! Runs every bench and writes all results to one folder.

fn main() -> std::process::ExitCode {
    suite_lib::main()
}

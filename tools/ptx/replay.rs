//! Launches that programs recorded, again: on a GPU or in the interpreter.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use machine::Module;
use rewriter::Options;

use crate::card::Card;
use crate::files;
use crate::launch::{Description, How};

/// What repeats them.
pub enum On {
    Interpreter,
    Card(Card),
}

/// What became of a launch.
enum Verdict {
    Agrees(String),
    Differs(String),
    /// The device does nothing more for this process.
    Lost(String),
}

/// Repeats every launch in a folder, a line each, and returns how many did not agree.
///
/// # Errors
/// If there is none, or the device is lost, as a GPU is once a kernel has faulted: what would come after says nothing.
pub fn run(folder: &Path, on: &On, options: &Options) -> Result<usize, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(|error| failed(&error))?;
    let mut launches: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("launch.json").exists())
        .collect();
    if launches.is_empty() {
        return Err(failed(&"no launch.json in any folder of it"));
    }
    launches.sort();
    let back = env::current_dir().map_err(|error| failed(&error))?;
    each(&launches, |path| {
        // The files of a launch are named relative to it.
        env::set_current_dir(path).map_err(|error| failed(&error))?;
        let repeated = repeat(on, options);
        env::set_current_dir(&back).map_err(|error| failed(&error))?;
        Ok(repeated)
    })
}

fn each(
    launches: &[PathBuf],
    mut repeat: impl FnMut(&Path) -> Result<(String, Verdict), String>,
) -> Result<usize, String> {
    let mut differ = 0;
    for (number, path) in launches.iter().enumerate() {
        let (kernel, verdict) = repeat(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match verdict {
            Verdict::Agrees(words) => println!("{name}  {kernel}: {words}"),
            Verdict::Differs(words) => {
                differ += 1;
                println!("{name}  {kernel}: DIFFERS: {words}");
            }
            Verdict::Lost(words) => {
                return Err(format!(
                    "{name}, {kernel}: {words}: the GPU does nothing more for this process, so the {} launches \
                    after it were not repeated; move {name} elsewhere and replay the rest",
                    launches.len() - number - 1
                ))
            }
        }
    }
    println!("{} launches, {differ} differ", launches.len());
    Ok(differ)
}

fn repeat(on: &On, options: &Options) -> (String, Verdict) {
    let read = || {
        let launch = Description::read(Path::new("launch.json"))?;
        let text = files::text(Path::new("module.ptx"))?;
        let module = Module::load(&text).map_err(|error| error.to_string())?;
        let program = launch.program(&module)?;
        Ok((launch, text, module, program))
    };
    let (launch, text, module, program) = match read() {
        Ok(found) => found,
        Err(error) => return ("?".to_owned(), Verdict::Differs(error)),
    };
    let run = || match on {
        On::Interpreter => {
            let outcome = launch.run(&module, How::default())?;
            Ok(outcome.agreement.to_string())
        }
        On::Card(card) => {
            let image = match fs::read("module.cubin") {
                // Assembled beforehand.
                Ok(cubin) => cubin,
                Err(_) if module.target() == "sm_100a" && card.compute_capability == (9, 0) => {
                    let rewritten = rewriter::rewrite(&text, options);
                    rewritten.map_err(|error| error.to_string())?.into_bytes()
                }
                Err(_) => text.clone().into_bytes(),
            };
            let outcome = card.run(&launch, &program, image)?;
            let seconds = outcome.time.as_secs_f64();
            Ok(format!("{}, {seconds:.3} s", outcome.agreement))
        }
    };
    let verdict = match (run(), on) {
        (Ok(words), _) => Verdict::Agrees(words),
        (Err(words), On::Card(card)) if !card.answers() => Verdict::Lost(words),
        (Err(words), _) => Verdict::Differs(words),
    };
    (program.name.clone(), verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPLE: &str = "
        .version 9.0
        .target sm_90a
        .address_size 64
        .visible .entry triple(.param .u64 x)
        {
            .reg .b32 %r<3>; .reg .b64 %d<2>;
            ld.param.u64 %d1, [x]; ld.global.u32 %r1, [%d1]; mul.lo.u32 %r2, %r1, 3; st.global.u32 [%d1], %r2;
            ret;
        }";

    fn record(folder: &Path, name: &str, after: i32) {
        let place = folder.join(name);
        fs::create_dir_all(&place).unwrap();
        let launch = r#"{"kernel": "triple",
            "buffers": {"b0": {"dtype": "i32", "elements": 2, "file": "b0.before", "expect_file": "b0.after"}},
            "arguments": [{"raw": {"hex": "0000000000000000",
                "pointers": [{"at": 0, "buffer": "b0", "offset": 4}]}}]}"#;
        fs::write(place.join("launch.json"), launch).unwrap();
        fs::write(place.join("module.ptx"), TRIPLE).unwrap();
        let words = |second: i32| [7, second].map(i32::to_le_bytes).concat();
        fs::write(place.join("b0.before"), words(5)).unwrap();
        fs::write(place.join("b0.after"), words(after)).unwrap();
    }

    #[test]
    fn what_differs_is_counted() {
        let folder = PathBuf::from(env::var_os("TEST_TMPDIR").expect("Bazel sets it")).join("two");
        let replay = || run(&folder, &On::Interpreter, &Options::default());
        assert!(replay().is_err(), "no such folder");
        record(&folder, "right", 15);
        assert_eq!(replay(), Ok(0));
        record(&folder, "wrong", 16);
        assert_eq!(replay(), Ok(1));
        fs::write(folder.join("wrong/launch.json"), "{}").unwrap();
        assert_eq!(replay(), Ok(1));
    }

    #[test]
    fn after_a_lost_device_nothing_is_repeated() {
        let launches = ["a", "b", "c", "d"].map(PathBuf::from);
        let mut repeated = 0;
        let stopped = each(&launches, |_| {
            repeated += 1;
            let verdict = match repeated {
                1 => Verdict::Differs("other values".to_owned()),
                2 => {
                    Verdict::Lost("the kernel: an illegal memory access was encountered".to_owned())
                }
                _ => Verdict::Agrees(String::new()),
            };
            Ok(("triple".to_owned(), verdict))
        });
        let message = stopped.unwrap_err();
        assert_eq!(repeated, 2);
        assert!(
            message.starts_with("b, triple: the kernel: an illegal memory access")
                && message.contains("the 2 launches after it"),
            "{message}"
        );
    }
}

//! `report`: processes result files, without a GPU.

mod arguments;
mod commands;

use arguments::{
    Arguments, ClaimsArguments, Command, CompareArguments, ExportArguments, FailOn, Format,
    HtmlArguments, MergeArguments, PageArguments, PlotArguments, PlotFormat, SummarizeArguments,
};
use clap::Parser;
use report_lib::{
    claims_markdown, compare, has_tables, merge, packed_for, plots, read_claims, scoreboard_text,
    summarize, to_github_action_benchmark, to_html, to_nvbench, to_png, to_text, views, Collection,
    CompareOptions, Pages, ReportingError, View, KNOWN_CLAIMS,
};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let failed = |error: &dyn std::fmt::Display| {
        tell(&format!("report: {error}"));
        ExitCode::from(2)
    };
    let arguments = Arguments::parse();
    if let Err(error) = workspace::enter_user_folder() {
        return failed(&error);
    }
    run(&arguments.command).unwrap_or_else(|error| failed(&error))
}

fn run(command: &Command) -> Result<ExitCode, ReportingError> {
    match command {
        Command::Merge(arguments) => run_merge(arguments),
        Command::Summarize(arguments) => run_summarize(arguments),
        Command::Compare(arguments) => run_compare(arguments),
        Command::Plot(arguments) => run_plot(arguments),
        Command::Html(arguments) => run_html(arguments),
        Command::Verify(arguments) => commands::verify(arguments),
        Command::Why(arguments) => commands::why(arguments),
        Command::Choose(arguments) => commands::choose(arguments),
        Command::Model(arguments) => commands::model(arguments),
        Command::Seal(arguments) => commands::seal(arguments),
        Command::Claims(arguments) => run_claims(arguments),
        Command::Export(arguments) => run_export(arguments),
        Command::History(arguments) => commands::history(arguments),
        Command::Import(arguments) => commands::import(arguments),
        Command::Page(arguments) => run_page(arguments),
    }
}

/// The views of all files, every row once.
fn load(files: &[PathBuf]) -> Result<Vec<View>, ReportingError> {
    Ok(views(merge(Collection::read_all(files)?).collection))
}

/// Writes an output, which must not be one of the inputs; gzipped if its name ends in `.gz`.
fn write(path: &Path, text: &[u8], inputs: &[PathBuf]) -> Result<(), ReportingError> {
    let same = |input: &PathBuf| match (path.canonicalize(), input.canonicalize()) {
        (Ok(output), Ok(input)) => output == input,
        _ => false,
    };
    if inputs.iter().any(same) {
        return Err(ReportingError::Usage(format!(
            "{} is an input; write the output to another file",
            path.display()
        )));
    }
    let bytes =
        packed_for(path, text).map_err(|error| ReportingError::input(path.display(), error))?;
    Ok(record::write_atomic(path, &bytes)?)
}

/// Prints text from a file; a closed pipe is not an error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(record::printable(text).as_bytes());
}

/// The same on standard error, as a line.
fn tell(text: &str) {
    let _ = std::io::stderr().write_all((record::printable(text) + "\n").as_bytes());
}

fn run_merge(arguments: &MergeArguments) -> Result<ExitCode, ReportingError> {
    let merged = merge(Collection::read_all(&arguments.files)?);
    let text = merged.collection.to_json()?;
    write(&arguments.output, text.as_bytes(), &arguments.files)?;
    tell(&format!(
        "{} of {}, {} left out",
        record::count_text(merged.collection.row_count(), "row"),
        record::count_text(merged.collection.runs.len(), "run"),
        record::count_text(merged.duplicates, "duplicate"),
    ));
    Ok(ExitCode::SUCCESS)
}

fn run_summarize(arguments: &SummarizeArguments) -> Result<ExitCode, ReportingError> {
    let views = load(&arguments.files)?;
    if arguments.terminal {
        let coloured = std::io::stdout().is_terminal();
        for view in &views {
            // Already printable: its only control characters are colours.
            let _ =
                std::io::stdout().write_all((scoreboard_text(view, coloured) + "\n").as_bytes());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = summarize(&views);
    if arguments.github {
        append_to_step_summary(&text)?;
    }
    if arguments.rows {
        for view in &views {
            text += &format!("\n{}", record::to_markdown(&view.file));
        }
    }
    match &arguments.output {
        Some(path) => write(path, text.as_bytes(), &arguments.files)?,
        None => print(&text),
    }
    Ok(ExitCode::SUCCESS)
}

fn append_to_step_summary(text: &str) -> Result<(), ReportingError> {
    let path = std::env::var_os("GITHUB_STEP_SUMMARY").ok_or_else(|| {
        ReportingError::Usage(
            "--github works only inside a GitHub job: GITHUB_STEP_SUMMARY is not set".to_owned(),
        )
    })?;
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| ReportingError::input(Path::new(&path).display(), error))
}

fn run_compare(arguments: &CompareArguments) -> Result<ExitCode, ReportingError> {
    let base = Collection::read(&arguments.base)?;
    let new = Collection::read(&arguments.new)?;
    let options = CompareOptions {
        threshold: arguments.threshold,
        across_devices: arguments.across_devices,
    };
    let comparison = compare(&base, &new, &options)?;
    let text = to_text(&comparison);
    print(&text);
    if arguments.github {
        append_to_step_summary(&text)?;
    }
    let failed = arguments.fail_on.iter().any(|what| match what {
        FailOn::Slower => comparison.count(stats::Verdict::Slower) > 0,
        FailOn::Broken => !comparison.broken.is_empty(),
        FailOn::Missing => !comparison.missing.is_empty(),
        FailOn::Never => false,
    });
    Ok(ExitCode::from(u8::from(failed)))
}

fn run_plot(arguments: &PlotArguments) -> Result<ExitCode, ReportingError> {
    let folder = arguments.output.clone();
    let mut views = load(&arguments.files)?;
    std::fs::create_dir_all(&folder)
        .map_err(|error| ReportingError::input(folder.display(), error))?;
    let mut count = 0;
    for view in &mut views {
        let ops = &arguments.ops;
        view.file
            .rows
            .retain(|row| ops.is_empty() || ops.contains(&row.op));
        for plot in plots(view) {
            let path = |extension| folder.join(format!("{}.{extension}", plot.name));
            for format in &arguments.format {
                match format {
                    PlotFormat::Svg => record::write_atomic(&path("svg"), plot.svg.as_bytes())?,
                    PlotFormat::Png => record::write_atomic(&path("png"), &to_png(&plot.svg)?)?,
                }
            }
            count += 1;
        }
    }
    tell(&format!(
        "{} in {}",
        record::count_text(count, "plot"),
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn run_html(arguments: &HtmlArguments) -> Result<ExitCode, ReportingError> {
    let page = to_html(&load(&arguments.files)?);
    write(&arguments.output, page.as_bytes(), &arguments.files)?;
    Ok(ExitCode::SUCCESS)
}

fn run_claims(arguments: &ClaimsArguments) -> Result<ExitCode, ReportingError> {
    let claims = match &arguments.claims {
        None => read_claims(KNOWN_CLAIMS, "the known claims")?,
        Some(path) => read_claims(&read(path)?, &path.display().to_string())?,
    };
    print(&claims_markdown(&claims, &load(&arguments.files)?));
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String, ReportingError> {
    report_lib::read_text(path).map_err(|source| {
        record::RecordError::Read {
            path: path.to_owned(),
            source,
        }
        .into()
    })
}

fn run_export(arguments: &ExportArguments) -> Result<ExitCode, ReportingError> {
    let views = load(&arguments.files)?;
    let output = &arguments.output;
    match arguments.format {
        Format::GithubActionBenchmark => {
            let text = format!("{:#}\n", to_github_action_benchmark(&views));
            write(output, text.as_bytes(), &arguments.files)?;
        }
        Format::Nvbench => {
            for (index, view) in views.iter().enumerate() {
                let text = format!("{:#}\n", to_nvbench(view));
                write(&numbered(output, index), text.as_bytes(), &arguments.files)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn numbered(path: &Path, index: usize) -> PathBuf {
    if index == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{}.{extension}", index + 1))
}

fn run_page(arguments: &PageArguments) -> Result<ExitCode, ReportingError> {
    let files = match arguments.files.is_empty() {
        true => markdown_files().map_err(|error| ReportingError::Usage(error.to_string()))?,
        false => arguments.files.clone(),
    };
    let (mut pages, mut stale, mut seen) = (Pages::default(), 0, 0);
    for path in files {
        let text = read(&path)?;
        if !has_tables(&text) {
            continue;
        }
        seen += 1;
        let folder = path.parent().unwrap_or(Path::new(""));
        let written = pages.rewrite(&text, folder, &path.display().to_string())?;
        for (path, svg) in pages.pictures(&text, folder) {
            if std::fs::read_to_string(&path).is_ok_and(|old| old == svg) {
                continue;
            }
            stale += 1;
            if arguments.check {
                print(&format!(
                    "{}: differs from the result files\n",
                    path.display()
                ));
            } else {
                record::write_atomic(&path, svg.as_bytes())?;
                tell(&format!("{}: written", path.display()));
            }
        }
        if written == text {
            continue;
        }
        stale += 1;
        if arguments.check {
            let same = text
                .lines()
                .zip(written.lines())
                .take_while(|(old, new)| old == new);
            let line = same.count();
            print(&format!(
                "{}:{}: differs from the result files:\n  {}\n  {}\n",
                path.display(),
                line + 1,
                text.lines().nth(line).unwrap_or("(the file ends)"),
                written.lines().nth(line).unwrap_or("(the file ends)"),
            ));
        } else {
            record::write_atomic(&path, written.as_bytes())?;
            tell(&format!("{}: written", path.display()));
        }
    }
    if seen == 0 {
        return Err(ReportingError::Usage(
            "no file has a table; mark its place with '<!-- table NAME of PLAN.json -->' and \
            '<!-- end of table -->'"
                .to_owned(),
        ));
    }
    if arguments.check && stale > 0 {
        tell(
            "report: run './bazelw run //Kernels/benchmarks/report -- page' and commit the result",
        );
    }
    Ok(ExitCode::from(u8::from(arguments.check && stale > 0)))
}

/// Every Markdown file of the repository.
fn markdown_files() -> std::io::Result<Vec<PathBuf>> {
    let root = workspace::root()?;
    let files = workspace::files(&root)?.into_iter();
    let markdown = files.filter(|file| file.extension().is_some_and(|extension| extension == "md"));
    Ok(markdown.map(|file| root.join(file)).collect())
}

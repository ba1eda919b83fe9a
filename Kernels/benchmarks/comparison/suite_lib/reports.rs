//! Written once all benches are done: collection, summary, CSV, page, plots.

use crate::folder::Folder;
use crate::SuiteError;
use report_lib::{merge, plots, summarize, to_html, views, Collection, SUITE_RESULTS};
use std::path::PathBuf;

/// Writes the reports and returns the summary.
pub fn write(folder: &Folder, results: &[PathBuf]) -> Result<String, SuiteError> {
    let collection = merge(Collection::read_all(results)?).collection;
    let put = |name: &str, text: &str| record::write_atomic(&folder.file(name), text.as_bytes());
    put(SUITE_RESULTS, &collection.to_json()?)?;
    let views = views(collection);
    let summary = summarize(&views);
    put("summary.md", &summary)?;
    let mut rows = String::new();
    for view in &views {
        let table = record::to_csv(&view.file);
        // One header for all views.
        let skip = if rows.is_empty() { 0 } else { 1 };
        for line in table.split_inclusive("\r\n").skip(skip) {
            rows += line;
        }
    }
    put("rows.csv", &rows)?;
    put("report.html", &to_html(&views))?;
    let folder_of_plots = folder.file("plots");
    std::fs::create_dir_all(&folder_of_plots)
        .map_err(|error| SuiteError(format!("{}: {error}", folder_of_plots.display())))?;
    for plot in views.iter().flat_map(plots) {
        let path = folder_of_plots.join(format!("{}.svg", plot.name));
        record::write_atomic(&path, plot.svg.as_bytes())?;
    }
    Ok(summary)
}

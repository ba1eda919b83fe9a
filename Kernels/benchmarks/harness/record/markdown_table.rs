//! Tables in Markdown.

/// Text that cannot break out of its cell.
pub fn cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace(['\n', '\r'], " ")
}

/// A header and its rule; a title that ends with ` :` makes a right-aligned column.
pub fn header(titles: &[&str]) -> String {
    let names: Vec<String> = titles
        .iter()
        .map(|title| title.trim_end_matches(" :").to_owned())
        .collect();
    let rules: Vec<String> = titles
        .iter()
        .map(|title| if title.ends_with(" :") { "---:" } else { "---" }.to_owned())
        .collect();
    line(&names) + &line(&rules)
}

pub fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

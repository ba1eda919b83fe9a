//! One page with everything: trust, scores and losses first, then every operation, every row and the environment.
//!
//! The page fetches nothing. Rows are embedded as JSON and inserted as text, never as markup.

mod board;
mod details;
mod environment;
mod rows;

use crate::choose::panel;
use crate::plot::escaped;
use crate::policy::content_policy;
use crate::scoreboard::scoreboard;
use crate::View;
use serde_json::json;

const STYLE: &str = include_str!("page.css");
/// One script: each file uses what those before it define.
const SCRIPT: &str = concat!(
    include_str!("page.js"),
    include_str!("hover.js"),
    include_str!("scoreboard.js"),
    include_str!("table.js"),
    include_str!("choose.js"),
);

pub fn to_html(views: &[View]) -> String {
    let boards: Vec<_> = views.iter().map(scoreboard).collect();
    let rated = || views.iter().zip(&boards).enumerate();
    // The page from top to bottom.
    let sections: Vec<String> = [
        rated()
            .map(|(index, (view, board))| board::section(index, view, board))
            .collect(),
        panel(views),
        details::section(views, &boards),
        rows::section(),
        environment::section(views),
    ]
    .into();
    let data = json!({
        "views": views.iter().map(|view| &view.title).collect::<Vec<_>>(),
        "boards": boards.iter().map(board::data).collect::<Vec<_>>(),
        "rows": rows::data(views),
    });
    // Inside a script element only these could end it or open a comment.
    let data = data
        .to_string()
        .replace("</", "<\\/")
        .replace("<!--", "<\\u0021--");
    let titles: Vec<&str> = views.iter().map(|view| view.title.as_str()).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>Head-to-Head: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>Head-to-Head</h1><p>{title}</p>\
         <nav><a href=\"#choose\">what to use</a> <a href=\"#operations\">operations</a> \
         <a href=\"#rows\">all rows</a> \
         <a href=\"#environment\">environment</a></nav></header>\n<main>\n{sections}</main>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        policy = content_policy(&[SCRIPT], STYLE),
        title = escaped(&titles.join(", ")),
        sections = sections.concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_runs_its_own_script_and_nothing_else() {
        let page = to_html(&[]);
        let (head, _) = page.split_once("</head>").unwrap();
        let policy = content_policy(&[SCRIPT], STYLE);
        assert!(head.contains(&format!("content=\"{policy}\"")));
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        // The hashes are of what is between the tags.
        assert_eq!(
            page.matches(&format!("<style>\n{STYLE}</style>")).count(),
            1
        );
        assert_eq!(
            page.matches(&format!("<script>\n{SCRIPT}</script>"))
                .count(),
            1
        );
        // Attributes would need exceptions.
        assert!(!page.contains(" style=") && !page.contains(" onclick="));
    }
}

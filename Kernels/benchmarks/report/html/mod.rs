//! One page with everything: sortable and filterable tables, plots, environment, histograms, commands.
//!
//! The page fetches nothing. Rows are embedded as JSON and inserted as text, never as markup.

use crate::plot::plots;
use crate::View;
use record::{Meta, Row};
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

const BINS: usize = 24;

pub fn to_html(views: &[View]) -> String {
    let data = json!({
        "views": views.iter().map(|view| &view.title).collect::<Vec<_>>(),
        "rows": views
            .iter()
            .enumerate()
            .flat_map(|(index, view)| view.file.rows.iter().map(move |row| row_data(index, row)))
            .collect::<Vec<Value>>(),
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
         <header><h1>Head-to-Head</h1><p>{title}</p></header>\n<main>\n\
         <section id=\"overview\"><h2>Overview</h2>{overview}</section>\n\
         <section id=\"rows\"><h2>Rows</h2><div id=\"filters\"></div>\
         <p id=\"count\" aria-live=\"polite\"></p>\
         <div class=\"scroll\"><table id=\"table\"><thead></thead><tbody></tbody></table></div>\
         <button id=\"more\" type=\"button\">Show more</button></section>\n\
         <section id=\"plots\"><h2>Plots</h2>{plots}</section>\n\
         <section id=\"environment\"><h2>Environment</h2>{environment}</section>\n\
         </main>\n<script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        policy = policy(),
        title = escaped(&titles.join(", ")),
        overview = views.iter().map(overview).collect::<String>(),
        plots = views.iter().map(plot_section).collect::<String>(),
        environment = views.iter().map(environment).collect::<String>(),
    )
}

/// Nothing is fetched and nothing is run but the style and the script below, whatever a file smuggles in.
fn policy() -> String {
    let hash = |text: String| format!("'sha256-{}'", base64(&Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(format!("\n{SCRIPT}")),
        hash(format!("\n{STYLE}")),
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = (0..3).fold(0_u32, |bits, at| {
            bits << 8 | u32::from(*three.get(at).unwrap_or(&0))
        });
        let digit = move |at: usize| match at <= three.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn row_data(view: usize, row: &Row) -> Value {
    let time = row.time.as_ref();
    let speedup = row.headline();
    let verdict = speedup.map(|speedup| speedup.verdict.to_string());
    let mut notes: Vec<String> = row.reason.iter().cloned().collect();
    notes.extend(row.warnings.iter().cloned());
    let axes = row.workload.axes.iter();
    let axes: Vec<String> = axes
        .map(|(name, value)| format!("{name} {}", value.to_string().trim_matches('"')))
        .collect();
    let facts = serde_json::to_value(&row.facts).unwrap_or_default();
    let mut about = vec![
        format!("{} {}", row.contender.kind, row.contender.version),
        row.contender.timed_region.clone(),
        row.workload.provenance.clone(),
        axes.join(", "),
    ];
    about.extend(row.contender.libraries.iter().map(ToString::to_string));
    json!({
        "view": view,
        "op": row.op,
        "dtype": row.dtype,
        "suite": row.workload.suite,
        "workload": row.workload.name,
        "contender": row.contender.name,
        "status": row.status.to_string(),
        "median": time.map(|time| time.median_us),
        "low": time.map(|time| time.p5_us),
        "high": time.map(|time| time.p95_us),
        "samples": time.map(|time| time.count),
        "tflops": row.metrics.tflops,
        "tbps": row.metrics.tbps,
        "roof": row.metrics.roof_share,
        "speedup": speedup.map(|speedup| speedup.ratio),
        "speedup_low": speedup.map(|speedup| speedup.low),
        "speedup_high": speedup.map(|speedup| speedup.high),
        "baseline": speedup.map(|speedup| &speedup.baseline),
        "verdict": verdict.unwrap_or_default(),
        "about": about,
        "facts": facts,
        "notes": notes,
        "repro": row.repro,
        "histogram": histogram(row),
    })
}

/// Histogram of the kept samples between their 1 % and 99 % points: tails would squash the rest.
fn histogram(row: &Row) -> Value {
    let mut samples: Vec<f64> = row.samples_us.iter().flatten().copied().collect();
    if samples.len() < 2 || row.time.is_none() {
        return Value::Null;
    }
    samples.sort_by(f64::total_cmp);
    let low = stats::quantile(&samples, 0.01);
    let high = stats::quantile(&samples, 0.99).max(low * (1.0 + 1e-9));
    let mut counts = [0u32; BINS];
    let mut outside = 0;
    for sample in samples {
        match ((sample - low) / (high - low) * BINS as f64).floor() {
            bin if bin >= 0.0 && bin < BINS as f64 => counts[bin as usize] += 1,
            bin if bin == BINS as f64 => counts[BINS - 1] += 1,
            _ => outside += 1,
        }
    }
    json!({"low": low, "high": high, "counts": counts, "outside": outside})
}

fn overview(view: &View) -> String {
    let mut groups = record::best_groups(&view.file);
    groups.extend(record::groups(&view.file));
    let mut html = format!("<h3>{}</h3>", escaped(&view.title));
    if !view.file.meta.complete {
        html += "<p class=\"warning\">Partial: a run was interrupted; missing rows were not \
                 measured.</p>";
    }
    html += &format!("<p>{}</p>", status_counts(&view.file.rows));
    if groups.is_empty() {
        return html + "<p>No contender has a baseline here; see the shares of roof.</p>";
    }
    html +=
        "<div class=\"scroll\"><table><thead><tr><th>op<th>dtype<th>suite<th>contender<th>baseline\
             <th class=\"n\">geomean<th class=\"n\">95 % interval<th class=\"n\">workloads\
             <th class=\"n\">faster<th class=\"n\">same<th class=\"n\">slower\
             <th class=\"n\">ambiguous</tr></thead><tbody>";
    for group in groups {
        let Some(mean) = &group.geomean else { continue };
        let count = |verdict| group.verdict_count(verdict);
        html += &format!(
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}\
             <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escaped(&group.op),
            escaped(&group.dtype),
            escaped(&group.suite),
            escaped(&group.contender),
            escaped(&group.baseline),
            record::ratio_text(mean.ratio),
            record::interval_text(mean.low, mean.high),
            mean.count,
            count(stats::Verdict::Faster),
            count(stats::Verdict::Same),
            count(stats::Verdict::Slower),
            count(stats::Verdict::Ambiguous),
        );
    }
    html + "</tbody></table></div>"
}

fn status_counts(rows: &[Row]) -> String {
    let counts = record::Status::ALL.map(|status| {
        let count = rows.iter().filter(|row| row.status == status).count();
        (status, count)
    });
    let words = counts.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = words
        .map(|(status, count)| format!("<b>{count}</b> {status}"))
        .collect();
    words.join(", ")
}

/// One collapsible block per operation; the first is open.
fn plot_section(view: &View) -> String {
    let mut html = format!("<h3>{}</h3>", escaped(&view.title));
    let mut open_for: Option<String> = None;
    for plot in plots(view) {
        let subject = plot.title.split(": ").next().unwrap_or_default().to_owned();
        if open_for.as_ref() != Some(&subject) {
            html += if open_for.is_some() {
                "</div></details>"
            } else {
                ""
            };
            let open = if open_for.is_none() { " open" } else { "" };
            html += &format!(
                "<details{open}><summary>{}</summary><div class=\"plots\">",
                escaped(&subject)
            );
            open_for = Some(subject);
        }
        let title = escaped(&plot.title);
        html += &format!("<figure aria-label=\"{title}\">{}</figure>", plot.svg);
    }
    html + if open_for.is_some() {
        "</div></details>"
    } else {
        ""
    }
}

fn environment(view: &View) -> String {
    let mut html = format!("<h3>{}</h3>", escaped(&view.title));
    for (meta, origin) in view.metas.iter().zip(&view.origins) {
        let title = format!("{} ({origin})", meta.program);
        html += &format!(
            "<details><summary>{}</summary><div class=\"scroll\"><table><tbody>",
            escaped(&title)
        );
        for (name, value) in facts(meta) {
            html += &format!("<tr><th>{name}<td>{}</tr>", escaped(&value));
        }
        html += "</tbody></table></div></details>";
    }
    html
}

fn facts(meta: &Meta) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut facts = vec![
        ("device", meta.device.name.clone()),
        ("driver", text(&meta.driver)),
        ("CUDA", text(&meta.cuda)),
        ("host", format!("{}, {}", meta.host, meta.os)),
        (
            "commit",
            match &meta.git {
                Some(git) => git.commit.clone() + if git.dirty { " with changes" } else { "" },
                None => "unknown".to_owned(),
            },
        ),
        (
            "build",
            format!("{}, nvcc {}", meta.build.arch, text(&meta.build.nvcc)),
        ),
        ("artifacts", text(&meta.artifact_lock_sha256)),
        (
            "time",
            format!(
                "{} to {}",
                meta.started_at,
                meta.ended_at.as_deref().unwrap_or("interrupted")
            ),
        ),
        ("command", meta.argv.join(" ")),
    ];
    if let Some(gpu) = &meta.gpu {
        let locked = gpu
            .clocks_locked
            .map_or("unknown", |locked| if locked { "yes" } else { "no" });
        let watts = gpu
            .power_limit_w
            .map_or("unknown".to_owned(), |watts| format!("{watts} W"));
        facts.push(("clocks locked", locked.to_owned()));
        facts.push(("power limit", watts));
    }
    for roof in &meta.roofs {
        let value = record::significant(roof.value, 4);
        facts.push(("roof", format!("{} {value} {}", roof.name, roof.unit)));
    }
    let libraries = meta.libraries.iter();
    facts.extend(libraries.map(|library| ("library", library.to_string())));
    facts.extend(
        meta.warnings
            .iter()
            .map(|warning| ("warning", warning.clone())),
    );
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_runs_its_own_script_and_nothing_else() {
        assert_eq!(
            ["", "f", "fo", "foo"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v"]
        );
        let page = to_html(&[]);
        let (head, _) = page.split_once("</head>").unwrap();
        assert!(head.contains(&format!("content=\"{}\"", policy())));
        assert!(policy().starts_with("default-src 'none'") && !policy().contains("unsafe"));
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

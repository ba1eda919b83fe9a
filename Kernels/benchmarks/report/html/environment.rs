//! The machine, the build and the command of every run.

use crate::plot::escaped;
use crate::View;
use record::Meta;

pub fn section(views: &[View]) -> String {
    let runs: String = views.iter().map(environment).collect();
    format!("<section id=\"environment\"><h2>Environment</h2>{runs}</section>\n")
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

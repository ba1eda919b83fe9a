//! Plots: complete, well-formed, rendered.

use report_lib::{plots, to_png, views};
use report_testing::sample;

#[test]
fn every_operation_has_every_picture() {
    let views = views(sample());
    let mut names = Vec::new();
    for view in &views {
        for plot in plots(view) {
            assert!(plot.svg.starts_with("<svg ") && plot.svg.ends_with("</svg>\n"));
            assert!(
                !plot.svg.contains("NaN") && !plot.svg.contains("inf"),
                "{}",
                plot.name
            );
            names.push(plot.name);
        }
    }
    for device in ["h200", "b200"] {
        for op in ["rmsnorm_fwd", "softmax_fwd"] {
            for kind in ["throughput", "duels", "winmap", "roofline"] {
                let name = format!("{device}-{op}-bf16-{kind}");
                assert!(names.contains(&name), "no {name} in {names:?}");
            }
        }
    }
    assert_eq!(names.len(), 16);
}

#[test]
fn pictures_have_text_and_colour() {
    let views = views(sample());
    let plot = plots(&views[0])
        .into_iter()
        .find(|plot| plot.name.ends_with("duels"))
        .unwrap();
    let png = to_png(&plot.svg).unwrap();
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    let without_text = without_text_lines(&plot.svg);
    assert!(
        to_png(&without_text).unwrap().len() < png.len() * 9 / 10,
        "text draws nothing"
    );
    if let Some(folder) = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR") {
        for plot in plots(&views[0]) {
            let path = std::path::Path::new(&folder).join(format!("{}.png", plot.name));
            std::fs::write(path, to_png(&plot.svg).unwrap()).unwrap();
        }
    }
    assert!(to_png("<svg").is_err());
}

fn without_text_lines(svg: &str) -> String {
    let lines = svg.lines().filter(|line| !line.starts_with("<text"));
    lines.collect::<Vec<_>>().join("\n")
}

//! Rules for workflows, one per function: YAML in, findings out.

use yaml_rust2::{Yaml, YamlLoader};

/// A job of a workflow.
struct Job<'a> {
    name: &'a str,
    yaml: &'a Yaml,
}

impl Job<'_> {
    fn steps(&self) -> impl Iterator<Item = &Yaml> {
        self.yaml["steps"].as_vec().into_iter().flatten()
    }

    /// Runs on one of our own machines, of which there is one per card.
    fn is_self_hosted(&self) -> bool {
        strings(&self.yaml["runs-on"]).contains("self-hosted")
    }
}

/// Everything that is wrong with a workflow, one sentence each.
pub fn check(text: &str) -> Vec<String> {
    let workflow = match YamlLoader::load_from_str(text).as_deref() {
        Ok([workflow]) => workflow.clone(),
        Ok(_) => return vec!["is not one YAML document".to_owned()],
        Err(error) => return vec![error.to_string()],
    };
    let Some(jobs) = workflow["jobs"].as_hash() else {
        return vec!["has no jobs".to_owned()];
    };
    let jobs: Vec<Job> = jobs
        .iter()
        .map(|(name, yaml)| Job {
            name: name.as_str().unwrap_or("?"),
            yaml,
        })
        .collect();
    let mut findings = top_permissions(&workflow);
    findings.extend(queues(&workflow, "the workflow"));
    findings.extend(secrets_of_all(&workflow));
    for job in &jobs {
        let rules = [time_limit, cards, secrets, right_to_write, stored_base];
        findings.extend(rules.iter().flat_map(|rule| rule(job)));
        findings.extend(queues(job.yaml, job.name));
        findings.extend(measurement(job));
    }
    findings
}

/// All text below a node, without keys.
fn strings(yaml: &Yaml) -> String {
    match yaml {
        Yaml::String(text) => format!("{text}\n"),
        Yaml::Array(items) => items.iter().map(strings).collect(),
        Yaml::Hash(entries) => entries.values().map(strings).collect(),
        _ => String::new(),
    }
}

fn name_of(step: &Yaml) -> &str {
    ["name", "id", "uses", "run"]
        .iter()
        .find_map(|key| step[*key].as_str())
        .unwrap_or("a step")
}

/// Builds, fetches or runs third-party code.
fn builds(step: &Yaml) -> bool {
    let run = step["run"].as_str().unwrap_or_default();
    let tools = ["bazel", "cargo", "pip", "npm", "python"];
    run.split_whitespace()
        .map(|word| word.trim_start_matches("./"))
        .any(|word| tools.iter().any(|tool| word.starts_with(tool)))
}

fn top_permissions(workflow: &Yaml) -> Vec<String> {
    let permissions = &workflow["permissions"];
    if permissions.is_badvalue() || strings(permissions).contains("write") {
        vec!["permissions must be set for all jobs, and read-only".to_owned()]
    } else {
        Vec::new()
    }
}

/// GitHub keeps one waiting run per group and cancels the others that wait.
fn queues(owner: &Yaml, name: &str) -> Vec<String> {
    let concurrency = &owner["concurrency"];
    if concurrency.is_badvalue() || strings(concurrency).contains("github.sha") {
        return Vec::new();
    }
    vec![format!(
        "{name}: a third run cancels a waiting second one; put github.sha in the concurrency group, or have none"
    )]
}

fn time_limit(job: &Job) -> Vec<String> {
    let called = !job.yaml["uses"].is_badvalue();
    match called || !job.yaml["timeout-minutes"].is_badvalue() {
        true => Vec::new(),
        false => vec![format!("{}: has no timeout-minutes", job.name)],
    }
}

/// Cards must not depend on each other.
fn cards(job: &Job) -> Vec<String> {
    match job.is_self_hosted() && !job.yaml["strategy"].is_badvalue() {
        false => Vec::new(),
        true => vec![format!(
            "{}: a matrix over our own runners; a missing one holds up the others, so call a workflow per card",
            job.name
        )],
    }
}

fn secrets_of_all(workflow: &Yaml) -> Vec<String> {
    match strings(&workflow["env"]).contains("secrets.") {
        false => Vec::new(),
        true => vec!["every job gets the secrets in env".to_owned()],
    }
}

/// Only a job that builds nothing gets secrets, and there only the steps that need them.
fn secrets(job: &Job) -> Vec<String> {
    let mut findings = Vec::new();
    if strings(&job.yaml["env"]).contains("secrets.") {
        findings.push(format!("{}: every step gets the secrets in env", job.name));
    }
    let has_secrets = strings(job.yaml).contains("secrets.");
    for step in job.steps() {
        let has_token = strings(step).contains("github.token");
        if builds(step) && (has_secrets || has_token) {
            findings.push(format!(
                "{}: '{}' builds in a job with secrets; build in another job and run the finished program here",
                job.name,
                name_of(step)
            ));
        }
    }
    findings
}

fn right_to_write(job: &Job) -> Vec<String> {
    let writes = strings(&job.yaml["permissions"]).contains("write");
    match writes && (job.is_self_hosted() || job.steps().any(builds)) {
        false => Vec::new(),
        true => vec![format!(
            "{}: may write to the repository, yet builds or runs on our own machine",
            job.name
        )],
    }
}

/// Caches get evicted; the next run would then be its own base.
fn stored_base(job: &Job) -> Vec<String> {
    job.steps()
        .filter(|step| strings(&step["uses"]).contains("actions/cache"))
        .map(|step| {
            format!(
                "{}: '{}' relies on a cache that GitHub may evict",
                job.name,
                name_of(step)
            )
        })
        .collect()
}

/// A job that measures on a card measures everything, and compares everything whatever else went wrong.
fn measurement(job: &Job) -> Vec<String> {
    let all = strings(job.yaml);
    if !job.is_self_hosted() || !all.contains("comparison:suite") {
        return Vec::new();
    }
    let mut findings: Vec<String> = [
        ("fp8_e4m3", "no FP8 GEMMs"),
        (
            "--require cudnn,cublaslt",
            "rows without cuDNN or cuBLASLt pass",
        ),
        (
            "slower,broken,missing",
            "a row that is slower, broken or missing passes",
        ),
        (
            "tools/launch/measurements.sh base",
            "nothing to compare with",
        ),
    ]
    .iter()
    .filter(|(part, _)| !all.contains(part))
    .map(|(part, problem)| format!("{}: {problem}: '{part}' is missing", job.name))
    .collect();
    let mut measured = false;
    for step in job.steps() {
        let run = step["run"].as_str().unwrap_or_default();
        let goes_on = ["!cancelled()", "always()"]
            .iter()
            .any(|part| strings(&step["if"]).contains(part));
        if measured && !goes_on {
            findings.push(format!(
                "{}: '{}' is skipped after a bad row; add an if with !cancelled()",
                job.name,
                name_of(step)
            ));
        }
        if run.contains("comparison:suite") {
            measured = true;
            if !run.contains("one_at_a_time.sh") {
                let step = name_of(step);
                findings.push(format!(
                    "{}: '{step}' may run next to another run on the card",
                    job.name
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workflow with the given rest.
    fn found(rest: &str) -> Vec<String> {
        check(&format!("on: push\npermissions:\n  contents: read\n{rest}"))
    }

    fn finds(rest: &str, sentence: &str) {
        let findings = found(rest);
        assert!(
            findings.iter().any(|finding| finding.contains(sentence)),
            "no '{sentence}' in {findings:?}"
        );
    }

    const STEPS: &str = "    timeout-minutes: 5\n    steps:\n";

    #[test]
    fn a_plain_workflow_is_fine() {
        let rest =
            format!("jobs:\n  a:\n    runs-on: x\n{STEPS}      - run: ./bazelw test //...\n");
        assert_eq!(found(&rest), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_workflow_is_said() {
        assert_eq!(check("a: [\n").len(), 1);
        assert_eq!(check("on: push\n"), ["has no jobs"]);
        assert_eq!(check(""), ["is not one YAML document"]);
    }

    #[test]
    fn rights_limits_and_queues() {
        assert_eq!(
            check("jobs:\n  a:\n    uses: b\n").len(),
            1,
            "no permissions"
        );
        let writes = "permissions:\n  contents: write\njobs:\n  a:\n    uses: b\n";
        assert_eq!(check(writes).len(), 1, "all jobs may write");
        finds(
            "jobs:\n  a:\n    runs-on: x\n    steps: []\n",
            "no timeout-minutes",
        );
        let queue =
            |group: &str| format!("concurrency:\n  group: {group}\njobs:\n  a:\n    uses: b\n");
        finds(&queue("gpu"), "a third run cancels");
        assert_eq!(found(&queue("gpu-${{ github.sha }}")), Vec::<String>::new());
        finds(
            &format!("jobs:\n  a:\n    runs-on: x\n    concurrency: gpu\n{STEPS}      - run: a\n"),
            "a third run cancels",
        );
        finds(
            &format!(
                "jobs:\n  a:\n    runs-on: x\n    permissions:\n      contents: write\n{STEPS}      \
                 - run: ./bazelw\n"
            ),
            "may write to the repository",
        );
    }

    #[test]
    fn secrets_and_builds_stay_apart() {
        let job = |steps: &str| format!("jobs:\n  a:\n    runs-on: x\n{STEPS}{steps}");
        let uses = "      - run: ./program\n        env:\n          KEY: ${{ secrets.KEY }}\n";
        assert_eq!(found(&job(uses)), Vec::<String>::new());
        finds(
            &job(&format!("      - run: ./bazelw build //x\n{uses}")),
            "builds in a job with secrets",
        );
        let token =
            "      - run: ./bazelw build //x\n        env:\n          T: ${{ github.token }}\n";
        finds(&job(token), "builds in a job with secrets");
        finds(
            &format!(
                "env:\n  K: ${{{{ secrets.K }}}}\n{}",
                job("      - run: a\n")
            ),
            "every job gets the secrets",
        );
        finds(
            &format!("jobs:\n  a:\n    runs-on: x\n    env:\n      K: ${{{{ secrets.K }}}}\n{STEPS}      - run: a\n"),
            "every step gets the secrets",
        );
    }

    #[test]
    fn a_card_is_measured_alone_whole_and_to_the_end() {
        let job = |more: &str, steps: &str| {
            format!("jobs:\n  a:\n    runs-on: [self-hosted, gpu]\n{more}{STEPS}{steps}")
        };
        let suite = "      - run: tools/launch/one_at_a_time.sh ./bazelw run //x/comparison:suite fp8_e4m3\n";
        let rest = "      - run: |\n          --require cudnn,cublaslt; tools/launch/measurements.sh base\n          \
                    --fail-on slower,broken,missing\n        if: ${{ !cancelled() }}\n";
        assert_eq!(
            found(&job("", &format!("{suite}{rest}"))),
            Vec::<String>::new()
        );
        finds(
            &job("    strategy:\n      matrix: {}\n", suite),
            "a matrix over our own runners",
        );
        finds(&job("", &suite.replace(" fp8_e4m3", "")), "no FP8 GEMMs");
        finds(&job("", suite), "rows without cuDNN");
        finds(
            &job("", &format!("{suite}{}", rest.replace(",missing", ""))),
            "missing passes",
        );
        finds(
            &job(
                "",
                &format!("{suite}{}", rest.replace("!cancelled()", "true")),
            ),
            "skipped after a bad row",
        );
        finds(
            &job("", &suite.replace("one_at_a_time", "other")),
            "may run next to another",
        );
        finds(
            &job("", "      - uses: actions/cache/save@0\n"),
            "may evict",
        );
    }
}

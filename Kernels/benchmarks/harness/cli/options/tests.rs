use super::*;
use proptest::prelude::*;

fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
    Options::try_parse_from([&["bench"], arguments].concat())
}

#[test]
fn the_command_is_well_formed() {
    Options::command().debug_assert();
}

#[test]
fn defaults_are_the_protocol() {
    let options = parse(&[]).unwrap();
    let plan = options.plan(DeviceKind::Cuda).unwrap();
    assert_eq!(plan, Plan::new(42));
    assert_eq!(options.what.dtypes, [DType::Bf16]);
}

#[test]
fn every_process_draws_its_own_metadata() {
    let seed = |process| {
        let options = parse(&["--entropy", "7", "--process", process]).unwrap();
        options.metadata_seed()
    };
    assert_eq!(seed("0"), seed("0"));
    assert!(seed("0") != seed("1") && seed("1") != seed("2"));
    assert_ne!(seed("0"), 7, "what is drawn from it would tell the entropy");
}

#[test]
fn a_preset_sets_the_protocol() {
    let published = parse(&["--protocol", "published"]).unwrap();
    let plan = published.plan(DeviceKind::Cuda).unwrap();
    assert!(plan.rule.duration_min < plan.rule.budget);
    assert!(published.processes() >= 3);
    let quick = parse(&["--protocol", "quick"]).unwrap();
    assert!(quick.plan(DeviceKind::Cuda).unwrap().rule.budget < plan.rule.budget);
    assert_eq!(parse(&["--processes", "2"]).unwrap().processes(), 2);
}

#[test]
fn configs_are_shapes() {
    let options = parse(&["--configs", "4x8,16x32x64"]).unwrap();
    assert_eq!(
        options.what.configs,
        [Config(vec![4, 8]), Config(vec![16, 32, 64])]
    );
    for bad in ["4x", "x", "0x4", "4*8", "-1x2"] {
        assert_eq!(
            parse(&[&format!("--configs={bad}")])
                .unwrap_err()
                .exit_code(),
            2,
            "{bad}"
        );
    }
}

#[test]
fn contradictions_are_usage_errors() {
    for arguments in [
        &["--iters", "3", "--rep-ms", "5"][..],
        &["--steady", "--rep-ms", "5"],
        &["--configs", "1x1", "--suite", "smoke"],
        &["--iters", "0"],
        &["--processes", "0"],
        &["--protocol", "published", "--budget-ms", "15"],
        &["--protocol", "quick", "--processes", "2"],
        &["--dtype", "float"],
        &["--mode", "both"],
        &["--list", "--profile"],
        &["--watch", "--json", "a.json"],
        &["--watch", "--list"],
        &["--build", "make"],
        &["--shard", "3/2"],
        &["--max-minutes", "-1"],
        &["--unknown"],
    ] {
        assert_eq!(
            parse(arguments).unwrap_err().exit_code(),
            2,
            "{arguments:?}"
        );
    }
}

#[test]
fn timers_belong_to_devices() {
    let graph = parse(&["--timer", "graph"]).unwrap();
    assert_eq!(graph.plan(DeviceKind::Cuda).unwrap().launch, Launch::Graph);
    let error = graph.plan(DeviceKind::Cpu).unwrap_err();
    assert!(
        error.0.contains("'graph'") && error.0.contains("wall"),
        "{error}"
    );
    let wall = parse(&["--timer", "wall"]).unwrap();
    assert!(wall.plan(DeviceKind::Cuda).is_err());
    let steady = parse(&["--steady", "--timer", "cupti"]).unwrap();
    assert!(steady.plan(DeviceKind::Cuda).is_err());
    let steady = parse(&["--steady"]).unwrap().plan(DeviceKind::Cpu);
    assert_eq!(steady.unwrap().steady, Some(timing::BLOCK));
}

#[test]
fn the_interpreter_verifies_and_times_nothing() {
    assert_eq!(DeviceKind::built_for("compute_100a"), DeviceKind::Ptx);
    assert_eq!(DeviceKind::built_for("sm_100a_on_sm_90a"), DeviceKind::Cuda);
    for (device, arch) in [
        (DeviceKind::Ptx, "compute_100a"),
        (DeviceKind::Cuda, "sm_100a_on_sm_90a"),
    ] {
        assert!(is_emulation(device, arch));
        assert!(parse(&[]).unwrap().plan_for(device, arch).is_ok());
        for refused in ["--skip-verify", "--timer=events"] {
            let plan = parse(&[refused]).unwrap().plan_for(device, arch);
            let error = plan.unwrap_err().to_string();
            let words = format!("device {device} of a program for {arch} verifies");
            assert!(error.contains(&words), "{error}");
        }
    }
    assert!(!is_emulation(DeviceKind::Cpu, "sm_100a_on_sm_90a"));
    let measured = parse(&["--timer=events"]).unwrap();
    assert!(measured.plan_for(DeviceKind::Cuda, "sm_100a").is_ok());
}

proptest! {
    #[test]
    fn configs_print_as_they_parse(sizes in prop::collection::vec(1usize..100_000, 1..5)) {
        let config = Config(sizes);
        prop_assert_eq!(parse_config(&config.to_string()), Ok(config));
    }
}

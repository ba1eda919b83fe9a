//! Plants faults in a kernel and says which of them its launch notices.

use machine::{Module, Schedule, TensorLoads, Watch};

use crate::launch::{Description, How};

/// A fault and how it was noticed; none where it survived.
pub struct Row {
    pub mutant: mutation::Mutant,
    pub noticed: Option<String>,
}

/// Up to `per_kind` mutants of each kind, on lines that the launch executes.
///
/// # Errors
///
/// Where the kernel does not pass unchanged, or nothing is compared.
pub fn run(
    text: &str,
    launch: &Description,
    schedules: &[Schedule],
    tensor_loads: TensorLoads,
    per_kind: usize,
) -> Result<Vec<Row>, String> {
    let attempt = |text: &str, how: How| {
        let module = Module::load(text).map_err(|error| error.to_string())?;
        launch.run(&module, how)
    };
    let ways = |limit: u64| {
        schedules.iter().map(move |schedule| How {
            schedule: *schedule,
            tensor_loads,
            // It finds the same under each.
            races: if *schedule == schedules[0] {
                Watch::All
            } else {
                Watch::Off
            },
            limit,
            ..How::default()
        })
    };
    let mut lines = std::collections::BTreeSet::new();
    let mut most = 0;
    for how in ways(How::default().limit) {
        let outcome = attempt(text, how).map_err(|error| format!("without a fault: {error}"))?;
        if outcome.agreement.compared == 0 {
            return Err(
                "the launch expects nothing of its buffers; give one \"expect\"".to_owned(),
            );
        }
        lines.extend(outcome.report.lines);
        most = most.max(outcome.report.counters.thread_instructions);
    }
    Ok(
        mutation::mutants(text, &lines, mutation::Slip::ALL, per_kind)
            .into_iter()
            .map(|mutant| {
                let text = mutation::apply(text, &mutant.change);
                let noticed = ways(16 * most + (1 << 22)).find_map(|how| attempt(&text, how).err());
                Row { mutant, noticed }
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVERSE: &str = "
        .version 9.0
        .target sm_90a
        .address_size 64
        .visible .entry reverse(.param .u64 x)
        {
            .shared .align 4 .b8 room[256];
            .reg .b32 %r<9>; .reg .b64 %d<4>;
            ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, room; mad.wide.u32 %d2, %r1, 4, %d1;
            ld.global.u32 %r3, [%d2]; mad.lo.u32 %r4, %r1, 4, %r2; st.shared.u32 [%r4], %r3;
            bar.sync 0;
            sub.u32 %r5, 63, %r1; mad.lo.u32 %r6, %r5, 4, %r2; ld.shared.u32 %r7, [%r6]; st.global.u32 [%d2], %r7;
            bar.sync 0;
            ret;
        }";

    #[test]
    fn one_barrier_matters_and_one_does_not() {
        let values: Vec<i32> = (0..64).collect();
        let expect: Vec<i32> = (0..64).rev().collect();
        let json = format!(
            r#"{{"kernel": "reverse", "block": [64, 1, 1], "arguments": [{{"buffer": "x"}}],
            "buffers": {{"x": {{"dtype": "i32", "elements": 64, "values": {values:?}, "expect": {expect:?}}}}}}}"#
        );
        let launch: Description = serde_json::from_str(&json).unwrap();
        let mutate = |launch: &Description| {
            let loads = TensorLoads::AfterWait;
            run(REVERSE, launch, &[Schedule::AtOnce], loads, 9)
        };
        let rows = mutate(&launch).unwrap();
        let rows: Vec<Row> = rows
            .into_iter()
            .filter(|row| row.mutant.kind == mutation::Kind::DropBarrier)
            .collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].noticed.as_ref().unwrap().contains("race: "));
        assert!(rows[1].noticed.is_none());
        let silent = json.replace(&format!(", \"expect\": {expect:?}"), "");
        let launch: Description = serde_json::from_str(&silent).unwrap();
        let error = mutate(&launch).err().unwrap();
        assert!(error.contains("expects nothing"), "{error}");
    }
}

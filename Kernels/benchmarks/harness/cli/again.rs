//! What to run to see one failure again, and nothing else.

use record::Row;

use crate::repro::quoted;

/// Contenders whose commands are printed; every row of the result file has its own.
const CONTENDERS_MAX: usize = 4;

/// A command for the first failed row of each contender; nothing if there is none. `program` is what the user started.
pub fn commands(rows: &[Row], program: &str) -> String {
    let mut first: Vec<&Row> = Vec::new();
    for row in rows.iter().filter(|row| row.status.is_failure()) {
        let name = &row.contender.name;
        if !first.iter().any(|known| known.contender.name == *name) {
            first.push(row);
        }
    }
    if first.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nto see only that again:\n");
    for row in first.iter().take(CONTENDERS_MAX) {
        let options = row.repro.split_once(' ').map_or("", |(_, options)| options);
        text += &format!("  {} {options}\n", quoted(program));
    }
    if let Some(more) = first
        .len()
        .checked_sub(CONTENDERS_MAX)
        .filter(|more| *more > 0)
    {
        let contenders = record::count_text(more, "other contender");
        text += &format!("  {contenders}: `repro` of their rows, with --json\n");
    }
    text
}

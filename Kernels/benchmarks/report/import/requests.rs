//! Requests to a serving system, from two forms of published traces.
//!
//! JSON lines with `timestamp` in milliseconds, `input_length` and `output_length` (Mooncake), or CSV
//! with the columns `TIMESTAMP`, a date and time, `ContextTokens` and `GeneratedTokens` (Azure). Further
//! members and columns are ignored.

use crate::ReportingError;
use serde::Deserialize;

/// With the header, if there is one.
const REQUESTS_MAX: usize = 250_000;
const TOKENS_MAX: u64 = 1 << 24;
/// About 31 years; an absolute time in milliseconds fits too.
const MILLISECONDS_MAX: f64 = 1e13;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub arrival_us: u64,
    pub prompt: u64,
    /// Generated tokens, the first of which comes from the prompt's prefill.
    pub output: u64,
}

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: u64,
    output_length: u64,
}

/// In order of arrival; `origin` names the trace in errors.
pub fn read_requests(text: &str, origin: &str) -> Result<Vec<Request>, ReportingError> {
    let lines = text.lines().enumerate();
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty()).peekable();
    if lines.clone().count() > REQUESTS_MAX {
        let problem = format!("has more than {REQUESTS_MAX} lines; cut it into several files");
        return Err(ReportingError::input(origin, problem));
    }
    let told = |index: usize, problem: String| {
        ReportingError::input(origin, format!("line {}: {problem}", index + 1))
    };
    let columns = match lines.peek() {
        None => return Err(ReportingError::input(origin, "has no requests")),
        Some((_, line)) if line.trim_start().starts_with('{') => None,
        Some((index, line)) => Some(Columns::of(line).map_err(|problem| told(*index, problem))?),
    };
    let mut requests = Vec::new();
    for (index, line) in lines.skip(usize::from(columns.is_some())) {
        let request = match &columns {
            None => from_json(line),
            Some(columns) => columns.request(line),
        };
        let request = request.and_then(checked);
        requests.push(request.map_err(|problem| told(index, problem))?);
    }
    if requests.is_empty() {
        return Err(ReportingError::input(origin, "has no requests"));
    }
    requests.sort_by_key(|request| request.arrival_us);
    Ok(requests)
}

fn checked(request: Request) -> Result<Request, String> {
    let Request { prompt, output, .. } = request;
    if prompt == 0 {
        return Err("a request without a prompt".to_owned());
    }
    match prompt.max(output) > TOKENS_MAX {
        true => Err(format!(
            "{prompt} and {output} tokens; at most {TOKENS_MAX}"
        )),
        false => Ok(request),
    }
}

fn from_json(line: &str) -> Result<Request, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let milliseconds = line.timestamp;
    if !(0.0..=MILLISECONDS_MAX).contains(&milliseconds) {
        return Err(format!(
            "a timestamp of {milliseconds} ms; it must be 0 to {MILLISECONDS_MAX:e}"
        ));
    }
    Ok(Request {
        arrival_us: (milliseconds * 1000.0) as u64,
        prompt: line.input_length,
        output: line.output_length,
    })
}

/// Where the three columns are.
struct Columns {
    time: usize,
    prompt: usize,
    output: usize,
}

impl Columns {
    fn of(header: &str) -> Result<Columns, String> {
        let names: Vec<&str> = header
            .trim_start_matches('\u{feff}')
            .split(',')
            .map(str::trim)
            .collect();
        let place = |name: &str| match names.iter().position(|known| *known == name) {
            Some(place) => Ok(place),
            None => Err(format!(
                "neither a JSON object nor a header with the column {name}"
            )),
        };
        Ok(Columns {
            time: place("TIMESTAMP")?,
            prompt: place("ContextTokens")?,
            output: place("GeneratedTokens")?,
        })
    }

    fn request(&self, line: &str) -> Result<Request, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |place: usize| match fields.get(place) {
            Some(field) => Ok(*field),
            None => Err(format!("{} fields, too few for the header", fields.len())),
        };
        let tokens = |place| {
            let field = field(place)?;
            let number = field.parse::<u64>();
            number.map_err(|_| format!("'{field}' is not a number of tokens"))
        };
        let time = field(self.time)?;
        Ok(Request {
            arrival_us: microseconds(time).ok_or_else(|| {
                format!("'{time}' is not a time such as 2023-11-16 18:15:46.6805900")
            })?,
            prompt: tokens(self.prompt)?,
            output: tokens(self.output)?,
        })
    }
}

/// Since 1970 in UTC; the zone is UTC unless an offset follows.
fn microseconds(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let (time, offset) = match time.strip_suffix('Z') {
        Some(time) => (time, 0),
        None => match time.find(['+', '-']) {
            Some(place) => (&time[..place], offset_minutes(&time[place..])?),
            None => (time, 0),
        },
    };
    let [year, month, day] = numbers(date, '-', [9999, 12, 31])?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':', [23, 59, 60])?;
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
    if year < 1970 || month == 0 || day == 0 || !digits || !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}")[..6].parse().ok()?;
    // Days since 1970 of the proleptic Gregorian calendar, with years that start in March.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let minutes = (days - 719_468) * 24 * 60 + hour * 60 + minute - offset;
    let micros = (minutes * 60 + second) * 1_000_000 + micros;
    u64::try_from(micros).ok()
}

/// `+01:00`.
fn offset_minutes(text: &str) -> Option<i64> {
    let (sign, clock) = text.split_at(1);
    let [hours, minutes] = numbers(clock, ':', [23, 59])?;
    let offset = hours * 60 + minutes;
    Some(if sign == "-" { -offset } else { offset })
}

/// As many numbers as there are maxima, of digits only.
fn numbers<const N: usize>(text: &str, separator: char, most: [i64; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut values = [0; N];
    for (value, most) in values.iter_mut().zip(most) {
        let part = parts.next()?;
        let digits =
            (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        *value = part.parse().ok().filter(|value| digits && *value <= most)?;
    }
    parts.next().is_none().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Request> {
        read_requests(text, "t").unwrap()
    }

    fn refused(text: &str) -> String {
        read_requests(text, "t").unwrap_err().to_string()
    }

    fn request(arrival_us: u64, prompt: u64, output: u64) -> Request {
        Request {
            arrival_us,
            prompt,
            output,
        }
    }

    #[test]
    fn both_forms_are_read_in_order_of_arrival() {
        let lines =
            "{\"timestamp\": 40, \"input_length\": 7, \"output_length\": 2, \"hash_ids\": [1]}\n\n\
                     {\"timestamp\": 1.5, \"input_length\": 9, \"output_length\": 0}\n";
        assert_eq!(read(lines), [request(1500, 9, 0), request(40_000, 7, 2)]);
        let table = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\r\n\
                     2023-11-16 18:15:46.6805900,0,374,44\r\n2023-11-16T19:15:46+01:00,0,5,6\r\n";
        let (first, second) = (1_700_158_546_000_000, 1_700_158_546_680_590);
        assert_eq!(
            read(table),
            [request(first, 5, 6), request(second, 374, 44)]
        );
    }

    #[test]
    fn days_are_counted_by_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01 00:00:00", 0),
            ("1972-03-01T00:00:00Z", 68_256_000),
            ("2000-02-29 23:59:59", 951_868_799),
            ("2024-05-10 00:00:00.009930+00:00", 1_715_299_200),
        ] {
            assert_eq!(microseconds(text).unwrap() / 1_000_000, seconds, "{text}");
        }
        for text in [
            "",
            "2023-11-16",
            "2023-13-01 00:00:00",
            "2023-11-16 24:00:00",
            "2023-11-16 00:00",
            "2023-11-16 00:00:00.",
            "2023-11-16 00:00:00.x",
            "2023-11-16 00:00:00.68059é",
            "1969-12-31 23:59:59",
            "2023-11-16 00:00:00+1",
            "2023--1-16 00:00:00",
            "1970-01-01 00:00:00+01:00",
        ] {
            assert_eq!(microseconds(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_trace_is_refused_by_a_sentence() {
        assert_eq!(refused(""), "t: has no requests");
        assert_eq!(
            refused("TIMESTAMP,ContextTokens,GeneratedTokens\n"),
            "t: has no requests"
        );
        let told = refused("a,b\n1,2\n");
        assert_eq!(
            told,
            "t: line 1: neither a JSON object nor a header with the column TIMESTAMP"
        );
        let line = |time: &str, input: &str, output: &str| {
            format!(
                "{{\"timestamp\": {time}, \"input_length\": {input}, \"output_length\": {output}}}"
            )
        };
        assert!(refused(&line("-1", "1", "1")).contains("line 1: a timestamp of -1 ms"));
        assert!(refused(&line("1e14", "1", "1")).contains("timestamp of"));
        assert!(refused(&line("0", "0", "1")).contains("without a prompt"));
        assert!(refused(&line("0", "-4", "1")).contains("line 1: invalid value"));
        assert!(refused(&line("0", "99999999", "1")).contains("at most 16777216"));
        assert!(refused(&format!("{}\n[]", line("0", "1", "1"))).contains("line 2: "));
        assert!(refused("{\"timestamp\": 0}").contains("missing field `input_length`"));
        let table =
            |line: &str| refused(&format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{line}"));
        assert!(table("2023-11-16 18:15:46,5").contains("line 2: 2 fields, too few"));
        assert!(table("2023-11-16 18:15:46,5,x").contains("'x' is not a number of tokens"));
        assert!(table("yesterday,5,6").contains("'yesterday' is not a time"));
        let many = refused(&"x\n".repeat(REQUESTS_MAX + 1));
        assert!(many.contains("more than 250000 lines"), "{many}");
    }
}

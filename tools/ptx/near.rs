//! Whether two memories agree: to the bit, or as floats that differ by no more than their type and the order of sums
//! explain.

use std::fmt;

use crate::dtype::Dtype;

/// What was compared, and how near it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    pub compared: usize,
    /// Of these, floats that are near but not equal to the bit.
    pub near: usize,
    /// The largest difference of these, as a share of the value or of the root mean square of its buffer, whichever
    /// is larger.
    pub farthest: f64,
}

impl Agreement {
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.near += other.near;
        self.farthest = self.farthest.max(other.farthest);
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.compared, self.near) {
            (0, _) => f.write_str("nothing was compared"),
            (compared, 0) => write!(f, "{compared} values as expected"),
            (compared, near) => write!(
                f,
                "{compared} values as expected, {near} of them to within {:.1e} and not to the bit",
                self.farthest
            ),
        }
    }
}

/// Two units in the last place; singles are sums whose order is the hardware's own.
fn bound(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::U8 | Dtype::I32 => 0.0,
        Dtype::F32 => 1.0 / 1024.0,
        Dtype::F16 => 2.0 / 1024.0,
        Dtype::Bf16 => 2.0 / 128.0,
    }
}

pub fn compare(dtype: Dtype, found: &[u8], wanted: &[u8]) -> Result<Agreement, String> {
    let size = dtype.bytes();
    if found.len() != wanted.len() {
        return Err(format!("{} bytes, not {}", found.len(), wanted.len()));
    }
    let elements = || found.chunks_exact(size).zip(wanted.chunks_exact(size));
    let mut agreement = Agreement {
        compared: found.len() / size,
        ..Agreement::default()
    };
    if found == wanted {
        return Ok(agreement);
    }
    let finite = wanted.chunks_exact(size).map(|bytes| dtype.decode(bytes));
    let finite: Vec<f64> = finite.filter(|value| value.is_finite()).collect();
    let squares: f64 = finite.iter().map(|value| value * value).sum();
    let usual = (squares / finite.len().max(1) as f64).sqrt();
    for (at, (found, wanted)) in elements().enumerate() {
        if found == wanted {
            continue;
        }
        let (found, wanted) = (dtype.decode(found), dtype.decode(wanted));
        // Zeros have two signs, and what is not a number many payloads.
        if found == wanted || found.is_nan() && wanted.is_nan() {
            continue;
        }
        let share = (found - wanted).abs() / wanted.abs().max(usual);
        if share.is_nan() || share > bound(dtype) {
            let differ = elements().filter(|(found, wanted)| found != wanted).count();
            return Err(format!(
                "[{at}] is {found}, not {wanted}; {differ} of {} differ",
                agreement.compared
            ));
        }
        agreement.near += 1;
        agreement.farthest = agreement.farthest.max(share);
    }
    Ok(agreement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn singles(values: &[f32]) -> Vec<u8> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        bytes.collect()
    }

    #[test]
    fn equal_bytes_agree_whatever_they_are() {
        let agreement = compare(Dtype::F32, &[0xFF; 8], &[0xFF; 8]).unwrap();
        assert_eq!(agreement.to_string(), "2 values as expected");
    }

    #[test]
    fn floats_may_be_near_and_integers_may_not() {
        let (wanted, found) = (singles(&[1.0, 2.0]), singles(&[1.0001, 2.0]));
        let agreement = compare(Dtype::F32, &found, &wanted).unwrap();
        assert_eq!((agreement.compared, agreement.near), (2, 1));
        let error = compare(Dtype::I32, &found, &wanted).unwrap_err();
        assert!(error.contains("1 of 2 differ"), "{error}");
        let far = singles(&[1.0, 2.01]);
        let error = compare(Dtype::F32, &far, &wanted).unwrap_err();
        assert!(error.starts_with("[1] is 2.0"), "{error}");
    }

    #[test]
    fn nothing_is_near_what_is_not_a_number() {
        let (wanted, found) = (singles(&[1.0]), singles(&[f32::NAN]));
        assert!(compare(Dtype::F32, &found, &wanted).is_err());
        assert!(compare(Dtype::F32, &wanted, &found).is_err());
        assert!(compare(Dtype::F32, &wanted, &wanted[..3]).is_err());
        let zeros = [singles(&[0.0]), singles(&[-0.0])];
        assert_eq!(compare(Dtype::F32, &zeros[0], &zeros[1]).unwrap().near, 0);
    }
}

//! Sizes as small integer expressions over a problem's axes: `ceil_div(m, 128) * 2`.
//!
//! ```text
//! sum     = product {("+" | "-") product}
//! product = factor {("*" | "/" | "%") factor}
//! factor  = number | axis | ("ceil_div" | "min" | "max") "(" sum "," sum ")" | "(" sum ")"
//! ```
//!
//! Everything is a signed 64-bit integer; what does not fit is an error, as is a division by zero.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

const CHARACTERS_MAX: usize = 256;
const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    #[error("an expression has {0} characters, and at most {CHARACTERS_MAX} are read")]
    Long(usize),
    #[error("'{0}' nests deeper than {DEPTH_MAX} levels")]
    Deep(String),
    #[error("'{text}': expected {expected} at character {at}")]
    Syntax {
        text: String,
        expected: &'static str,
        at: usize,
    },
    #[error("'{text}': there is no whole number '{name}'; there are {known}")]
    Unknown {
        text: String,
        name: String,
        known: String,
    },
    #[error("'{0}' is more than 64 bits hold")]
    Overflow(String),
    #[error("'{0}' divides by zero")]
    ZeroDivisor(String),
    #[error("'{0}': ceil_div takes no negative numbers")]
    NegativeCeiling(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    CeilDiv,
    Min,
    Max,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Number(i64),
    Axis(String),
    Binary(Operator, Box<[Node; 2]>),
}

/// An expression, and its text for messages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Expression {
    text: String,
    root: Node,
}

/// In JSON: a number, or the text of an expression.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a whole number or an expression such as \"ceil_div(m, 128)\""
)]
enum Written {
    Number(u32),
    Text(String),
}

impl TryFrom<Written> for Expression {
    type Error = ExpressionError;

    fn try_from(written: Written) -> Result<Self, ExpressionError> {
        match written {
            Written::Number(number) => Ok(number.into()),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<u32> for Expression {
    fn from(number: u32) -> Self {
        Self {
            text: number.to_string(),
            root: Node::Number(number.into()),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let characters = text.chars().count();
        if characters > CHARACTERS_MAX {
            return Err(ExpressionError::Long(characters));
        }
        let mut parser = Parser {
            text,
            left: text.chars().collect(),
            at: 0,
        };
        let root = parser.sum(0)?;
        match parser.peek() {
            None => Ok(Self {
                text: text.to_owned(),
                root,
            }),
            Some(_) => Err(parser.expected("an operator or the end")),
        }
    }
}

impl Expression {
    /// Its value, where `axis` knows whole numbers by name; `known` lists them for a message.
    pub fn value(
        &self,
        axis: &dyn Fn(&str) -> Option<i64>,
        known: &dyn Fn() -> String,
    ) -> Result<i64, ExpressionError> {
        self.evaluate(&self.root, axis, known)
    }

    fn evaluate(
        &self,
        node: &Node,
        axis: &dyn Fn(&str) -> Option<i64>,
        known: &dyn Fn() -> String,
    ) -> Result<i64, ExpressionError> {
        let (operator, left, right) = match node {
            Node::Number(number) => return Ok(*number),
            Node::Axis(name) => {
                return axis(name).ok_or_else(|| ExpressionError::Unknown {
                    text: self.text.clone(),
                    name: name.clone(),
                    known: known(),
                })
            }
            Node::Binary(operator, sides) => {
                let [left, right] = &**sides;
                let (left, right) = (
                    self.evaluate(left, axis, known)?,
                    self.evaluate(right, axis, known)?,
                );
                (*operator, left, right)
            }
        };
        use Operator::{Add, CeilDiv, Divide, Max, Min, Multiply, Remainder, Subtract};
        if matches!(operator, Divide | Remainder | CeilDiv) && right == 0 {
            return Err(ExpressionError::ZeroDivisor(self.text.clone()));
        }
        if operator == CeilDiv && (left < 0 || right < 0) {
            return Err(ExpressionError::NegativeCeiling(self.text.clone()));
        }
        let value = match operator {
            Add => left.checked_add(right),
            Subtract => left.checked_sub(right),
            Multiply => left.checked_mul(right),
            Divide => left.checked_div(right),
            Remainder => left.checked_rem(right),
            // Of numbers that are not negative: no sum that could overflow.
            CeilDiv => Some(left / right + i64::from(left % right != 0)),
            Min => Some(left.min(right)),
            Max => Some(left.max(right)),
        };
        value.ok_or_else(|| ExpressionError::Overflow(self.text.clone()))
    }
}

struct Parser<'t> {
    text: &'t str,
    left: Vec<char>,
    at: usize,
}

impl Parser<'_> {
    fn expected(&self, expected: &'static str) -> ExpressionError {
        ExpressionError::Syntax {
            text: self.text.to_owned(),
            expected,
            at: self.at + 1,
        }
    }

    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        while self.left.get(self.at).is_some_and(|c| *c == ' ') {
            self.at += 1;
        }
        self.left.get(self.at).copied()
    }

    fn take(&mut self, wanted: char, words: &'static str) -> Result<(), ExpressionError> {
        if self.peek() != Some(wanted) {
            return Err(self.expected(words));
        }
        self.at += 1;
        Ok(())
    }

    fn sum(&mut self, depth: usize) -> Result<Node, ExpressionError> {
        let operators = [('+', Operator::Add), ('-', Operator::Subtract)];
        self.chain(&operators, depth, Self::product)
    }

    fn product(&mut self, depth: usize) -> Result<Node, ExpressionError> {
        let operators = [
            ('*', Operator::Multiply),
            ('/', Operator::Divide),
            ('%', Operator::Remainder),
        ];
        self.chain(&operators, depth, Self::factor)
    }

    /// Operands of one precedence, from left to right.
    fn chain(
        &mut self,
        operators: &[(char, Operator)],
        depth: usize,
        operand: fn(&mut Self, usize) -> Result<Node, ExpressionError>,
    ) -> Result<Node, ExpressionError> {
        let mut node = operand(self, depth)?;
        while let Some(next) = self.peek() {
            let Some((_, operator)) = operators.iter().find(|(sign, _)| *sign == next) else {
                break;
            };
            self.at += 1;
            node = Node::Binary(*operator, Box::new([node, operand(self, depth)?]));
        }
        Ok(node)
    }

    fn factor(&mut self, depth: usize) -> Result<Node, ExpressionError> {
        if depth > DEPTH_MAX {
            return Err(ExpressionError::Deep(self.text.to_owned()));
        }
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let node = self.sum(depth + 1)?;
                self.take(')', "')'")?;
                Ok(node)
            }
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.name(depth),
            _ => Err(self.expected("a number, an axis or '('")),
        }
    }

    fn word(&mut self, part: fn(char) -> bool) -> String {
        let rest = &self.left[self.at..];
        let word: String = rest.iter().take_while(|c| part(**c)).collect();
        self.at += word.len();
        word
    }

    fn number(&mut self) -> Result<Node, ExpressionError> {
        let digits = self.word(|c| c.is_ascii_digit());
        let number = digits.parse();
        number
            .map(Node::Number)
            .map_err(|_| ExpressionError::Overflow(self.text.to_owned()))
    }

    fn name(&mut self, depth: usize) -> Result<Node, ExpressionError> {
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        let operator = match &*name {
            "ceil_div" => Operator::CeilDiv,
            "min" => Operator::Min,
            "max" => Operator::Max,
            _ => return Ok(Node::Axis(name)),
        };
        self.take('(', "'(' after a function")?;
        let left = self.sum(depth + 1)?;
        self.take(',', "',' between two arguments")?;
        let right = self.sum(depth + 1)?;
        self.take(')', "')'")?;
        Ok(Node::Binary(operator, Box::new([left, right])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Result<i64, ExpressionError> {
        let axis = |name: &str| match name {
            "m" => Some(4096),
            "n" => Some(7168),
            "zero" => Some(0),
            _ => None,
        };
        let expression: Expression = text.parse()?;
        expression.value(&axis, &|| "m, n, zero".to_owned())
    }

    #[test]
    fn precedence_is_the_usual_one() {
        for (text, expected) in [
            ("1", 1),
            ("m", 4096),
            ("2 + 3 * 4", 14),
            ("(2 + 3) * 4", 20),
            ("20 - 6 - 4", 10),
            ("100 / 10 / 2", 5),
            ("n % 1000 * 2", 336),
            ("ceil_div(m, 100)", 41),
            ("ceil_div(m, 128) * 2", 64),
            ("min(m, n) + max(1, 2 * 3)", 4102),
            ("  m*1 ", 4096),
            ("ceil_div(9223372036854775807, 2)", 4611686018427387904),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let deep = format!("{}m{}", "(".repeat(40), ")".repeat(40));
        let long = "1+".repeat(200) + "1";
        for (text, reason) in [
            ("", "expected a number, an axis or '(' at character 1"),
            ("m +", "expected a number, an axis or '(' at character 4"),
            ("m n", "expected an operator or the end at character 3"),
            ("-1", "expected a number"),
            ("(m", "expected ')' at character 3"),
            ("min(m)", "expected ',' between two arguments"),
            ("min m", "expected '(' after a function"),
            ("m & n", "expected an operator"),
            ("m\u{a0}", "expected an operator"),
            ("é", "expected a number"),
            ("k * 2", "no whole number 'k'; there are m, n, zero"),
            ("m / zero", "'m / zero' divides by zero"),
            ("m % (n - n)", "divides by zero"),
            ("ceil_div(m, 0)", "divides by zero"),
            ("ceil_div(1 - m, 2)", "takes no negative numbers"),
            ("9223372036854775807 + 1", "more than 64 bits hold"),
            ("99999999999999999999", "more than 64 bits hold"),
            ("m * m * m * m * m * m", "more than 64 bits hold"),
            (&deep, "deeper than 32 levels"),
            (&long, "an expression has 401 characters"),
        ] {
            let error = value(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    /// A tree as text with all brackets, and its value by wider arithmetic.
    fn tree() -> impl Strategy<Value = (String, Option<i128>)> {
        let leaf = (0i64..1000).prop_map(|number| (number.to_string(), Some(i128::from(number))));
        leaf.prop_recursive(4, 24, 2, |inner| {
            (inner.clone(), inner, 0usize..8).prop_map(|((left, a), (right, b), operator)| {
                let sign = ["+", "-", "*", "/", "%"];
                let text = match operator {
                    0..=4 => format!("({left} {} {right})", sign[operator]),
                    5 => format!("ceil_div({left}, {right})"),
                    6 => format!("min({left},{right})"),
                    _ => format!("max( {left} , {right} )"),
                };
                let value = a.zip(b).and_then(|(a, b)| match operator {
                    0 => Some(a + b),
                    1 => Some(a - b),
                    2 => Some(a * b),
                    3 => (b != 0).then(|| a / b),
                    4 => (b != 0).then(|| a % b),
                    5 => (b > 0 && a >= 0).then(|| (a + b - 1) / b),
                    6 => Some(a.min(b)),
                    _ => Some(a.max(b)),
                });
                let fits = |value: &i128| i64::try_from(*value).is_ok();
                (text, value.filter(fits))
            })
        })
    }

    proptest! {
        #[test]
        fn values_are_those_of_wider_arithmetic((text, expected) in tree()) {
            prop_assume!(text.chars().count() <= CHARACTERS_MAX);
            prop_assert_eq!(value(&text).ok().map(i128::from), expected, "{}", text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ -~]{0,80}") {
            let _ = value(&text);
        }
    }
}

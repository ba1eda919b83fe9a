//! One statement in a line of text, which may hold several.

/// An instruction that begins with some opcode, and the text around it.
pub struct Statement<'a> {
    before: &'a str,
    guard: &'a str,
    /// Opcode and operands, without the semicolon.
    pub body: &'a str,
    after: &'a str,
}

impl<'a> Statement<'a> {
    pub fn find(line: &'a str, opcode: &str) -> Option<Self> {
        let start = line.match_indices(opcode).map(|(at, _)| at).find(|at| {
            // The whole opcode begins here.
            line[..*at]
                .chars()
                .next_back()
                .is_none_or(|before| before.is_whitespace() || ":;{}".contains(before))
        })?;
        let end = start + line[start..].find(';')?;
        let head = &line[..start];
        // A guard stands after whatever ends the statement before.
        let first = head.rfind([';', '{', '}', ':']).map_or(0, |at| at + 1);
        let guard = head[first..].find('@').map_or(start, |at| first + at);
        Some(Self {
            before: &line[..guard],
            guard: &line[guard..start],
            body: &line[start..end],
            after: &line[end + 1..],
        })
    }

    pub fn opcode(&self) -> &'a str {
        self.body.split_whitespace().next().unwrap_or_default()
    }

    /// Operands by commas outside of brackets.
    pub fn operands(&self) -> Vec<&'a str> {
        let list = &self.body[self.opcode().len()..];
        let mut operands = Vec::new();
        let (mut depth, mut start) = (0, 0);
        for (at, letter) in list.char_indices() {
            match letter {
                '{' | '[' => depth += 1,
                '}' | ']' => depth -= 1,
                ',' if depth == 0 => {
                    operands.push(list[start..at].trim());
                    start = at + 1;
                }
                _ => {}
            }
        }
        operands.push(list[start..].trim());
        operands
    }

    /// The line without the statement.
    pub fn dropped(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    pub fn replaced(&self, by: &str) -> String {
        format!("{}{}{by};{}", self.before, self.guard, self.after)
    }

    /// The line with an operand, or the register that is its address, replaced by what an instruction makes of it and
    /// a number.
    pub fn computed(&self, operand: usize, instruction: &str, number: u64) -> Option<String> {
        let bits = instruction
            .rsplit(|letter: char| !letter.is_ascii_digit())
            .next()?;
        let old = self.operands().get(operand)?.trim_matches(['[', ']']);
        if old.contains('+') {
            return None;
        }
        let step = format!("{instruction} changed, {old}, {number}");
        self.with_register(operand, &format!("b{bits}"), &step)
    }

    /// The line with an operand replaced by a register that a statement before it sets.
    pub fn with_register(&self, operand: usize, kind: &str, step: &str) -> Option<String> {
        if !self.guard.is_empty() {
            return None;
        }
        let mut operands = self.operands();
        let operand = operands.get_mut(operand)?;
        *operand = if operand.starts_with('[') {
            "[changed]"
        } else {
            "changed"
        };
        Some(format!(
            "{}{{ .reg .{kind} changed; {step}; {} {}; }}{}",
            self.before,
            self.opcode(),
            operands.join(", "),
            self.after
        ))
    }

    pub fn with_operand(&self, operand: usize, text: &str) -> Option<String> {
        let mut operands = self.operands();
        *operands.get_mut(operand)? = text;
        Some(self.replaced(&format!("{} {}", self.opcode(), operands.join(", "))))
    }

    pub fn around(&self) -> (&'a str, &'a str) {
        (self.before, self.after)
    }
}

//! Names of functions of device code, for people.

/// The identifiers and numbers of a mangled name, without its parameters' types.
pub fn readable(mangled: &str) -> String {
    let Some(mut rest) = mangled.strip_prefix("_Z") else {
        return mangled.to_owned();
    };
    let mut words: Vec<&str> = Vec::new();
    while let Some(first) = rest.chars().next() {
        let number = ["Li", "Lj", "Lb"]
            .iter()
            .find_map(|kind| rest.strip_prefix(kind));
        if let Some(number) = number {
            let end = number.find('E').unwrap_or(number.len());
            words.push(&number[..end]);
            rest = &number[end..];
        } else if let Some(seen) = rest.strip_prefix('S') {
            // A name that stood there before: S_, S0_ and so on.
            rest = seen.split_once('_').map_or("", |(_, after)| after);
        } else if first.is_ascii_digit() {
            let end = rest
                .find(|letter: char| !letter.is_ascii_digit())
                .unwrap_or(rest.len());
            let length = rest[..end].parse().unwrap_or(0);
            let Some(word) = rest.get(end..end + length) else {
                break;
            };
            words.push(word);
            rest = &rest[end + length..];
        } else if rest.starts_with("EEv") || rest.starts_with("EvN") {
            break;
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        let mangled =
            "_ZN4gemm9blackwell11gemm_kernelINS0_6TraitsINS_5Mxfp8ELi1ELi128ELi5EEEEEvNS_4GemmE";
        assert_eq!(
            readable(mangled),
            "gemm blackwell gemm_kernel Traits Mxfp8 1 128 5"
        );
        assert_eq!(readable("_Z4implILj0ELj128ELb1EEvv"), "impl 0 128 1");
    }
}

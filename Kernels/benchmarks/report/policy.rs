//! What a page of ours may do: nothing but apply its own style and run its own scripts, whatever a file smuggles in.

use sha2::{Digest, Sha256};

/// The content security policy of a page with these inline scripts and this style, each of which begins on a new
/// line after its tag.
pub fn content_policy(scripts: &[&str], style: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", base64(&Sha256::digest(format!("\n{text}"))));
    let scripts: Vec<String> = scripts.iter().map(|script| hash(script)).collect();
    let scripts = if scripts.is_empty() {
        "'none'".to_owned()
    } else {
        scripts.join(" ")
    };
    format!(
        "default-src 'none'; script-src {scripts}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(style),
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = (0..3).fold(0_u32, |bits, at| {
            bits << 8 | u32::from(*three.get(at).unwrap_or(&0))
        });
        let digit = move |at: usize| match at <= three.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_of_what_is_between_the_tags() {
        assert_eq!(
            ["", "f", "fo", "foo"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v"]
        );
        let policy = content_policy(&["a();"], "b {}");
        let hash = base64(&Sha256::digest("\na();"));
        assert!(
            policy.contains(&format!("script-src 'sha256-{hash}';")) && !policy.contains("unsafe")
        );
        assert!(content_policy(&[], "").contains("script-src 'none'"));
    }
}

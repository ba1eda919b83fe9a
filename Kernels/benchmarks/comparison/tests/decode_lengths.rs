//! Lengths of cached sequences for the gate tests of decode.

/// Empty sequences, the new tokens alone, whole and partial last pages, and anything in between;
/// `draw` gives a number below its second argument, from the stream of its first.
pub fn random(
    draw: &dyn Fn(u32, usize) -> usize,
    batch: usize,
    longest: usize,
    q_len: usize,
    page_size: usize,
) -> Vec<usize> {
    (0..batch)
        .map(|sequence| match draw(10 + sequence as u32, 8) {
            0 => 0,
            // The caches of a step hold its new tokens; 1 where that is one.
            1 => q_len,
            2 => longest.next_multiple_of(page_size).max(q_len),
            3 => longest.next_multiple_of(page_size).max(q_len) + 1,
            _ => draw(40 + sequence as u32, longest).max(q_len),
        })
        .collect()
}

/// A batch of more tokens than `most` loses sequences from its front, a single sequence tokens.
pub fn cut(lengths: &mut Vec<usize>, most: usize) {
    while lengths.len() > 1 && lengths.iter().sum::<usize>() > most {
        lengths.remove(0);
    }
    lengths.iter_mut().for_each(|n| *n = (*n).min(most));
}

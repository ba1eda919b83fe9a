//! The parts of outputs that the reference has, and their tiles.

use std::ops::Range;

/// Elements of one output, and where the reference's values are.
pub(crate) struct Part {
    pub(crate) tensor: usize,
    pub(crate) range: Range<usize>,
    pub(crate) address: usize,
}

/// Length of the tiles of a range, which are compared on their own: enough of them to tell late rows from
/// early ones, few enough that the comparison costs no more than reading the memory.
pub(crate) fn tile_elements(elements: usize) -> usize {
    const TILES: usize = 64;
    const ELEMENTS_MIN: usize = 16 << 10;
    // Whole vectors, so that every tile is as aligned as the range.
    let step = elements.div_ceil(TILES).next_multiple_of(1024);
    step.max(ELEMENTS_MIN)
}

/// Those tiles.
pub(crate) fn tiles(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let step = tile_elements(range.len());
    let (start, end) = (range.start, range.end);
    (start..end)
        .step_by(step)
        .map(move |start| start..end.min(start + step))
}

//! Distributes rows over threads.

use rayon::prelude::*;

/// Elements per task: enough to make its overhead negligible, few enough to balance.
const TASK_ELEMENTS: usize = 1 << 15;

/// Threads that our kernels use; whoever races them on the CPU gets as many.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

fn rows_per_task(columns: usize) -> usize {
    (TASK_ELEMENTS / columns).max(1)
}

/// Calls `work` for every row with its number, its output and an f32 buffer of `buffer` elements.
pub fn each_row<T: Send>(
    out: &mut [T],
    columns: usize,
    buffer: usize,
    work: impl Fn(usize, &mut [T], &mut [f32]) + Sync,
) {
    let rows = rows_per_task(columns);
    out.par_chunks_mut(rows * columns)
        .enumerate()
        .for_each_init(
            || vec![0.0; buffer],
            |buffer, (task, block)| {
                for (index, row) in block.chunks_mut(columns).enumerate() {
                    work(task * rows + index, row, buffer);
                }
            },
        );
}

/// The same with two outputs, each with its own elements per row, and a buffer of `buffer` elements.
pub fn each_row2<T: Send, U: Send>(
    (out, columns): (&mut [T], usize),
    (second, second_columns): (&mut [U], usize),
    buffer: usize,
    work: impl Fn(usize, &mut [T], &mut [U], &mut [f32]) + Sync,
) {
    let rows = rows_per_task(buffer);
    out.par_chunks_mut(rows * columns)
        .zip(second.par_chunks_mut(rows * second_columns))
        .enumerate()
        .for_each_init(
            || vec![0.0; buffer],
            |buffer, (task, (block, second))| {
                let rows_of_both = block
                    .chunks_mut(columns)
                    .zip(second.chunks_mut(second_columns));
                for (index, (row, second)) in rows_of_both.enumerate() {
                    work(task * rows + index, row, second, buffer);
                }
            },
        );
}

/// Rows whose contributions to sums over rows are added sequentially: few, because the error of a
/// running sum grows with its length.
const SUM_ROWS: usize = 64;

/// Calls `work` for every row with its number, its output, the sums over rows of its block (`SUMS`
/// vectors of one value per column) and two f32 buffers of `columns` elements. Returns the sums
/// over all rows.
pub fn accumulate_rows<T: Send, const SUMS: usize>(
    out: &mut [T],
    columns: usize,
    work: impl Fn(usize, &mut [T], &mut [Vec<f32>; SUMS], &mut [Vec<f32>; 2]) + Sync,
) -> [Vec<f32>; SUMS] {
    let zeros = || -> [Vec<f32>; SUMS] { std::array::from_fn(|_| vec![0.0; columns]) };
    let block_rows = SUM_ROWS.max(rows_per_task(columns));
    // Blocks finish in any order; bounded groups of them are collected and then added in order, so
    // that the sums do not depend on the number of threads.
    let group = 4 * rayon::current_num_threads().max(16);
    let mut totals = zeros();
    for (index, group_out) in out.chunks_mut(group * block_rows * columns).enumerate() {
        let first = index * group * block_rows;
        let partials: Vec<[Vec<f32>; SUMS]> = group_out
            .par_chunks_mut(block_rows * columns)
            .enumerate()
            .map_init(
                || [vec![0.0; columns], vec![0.0; columns]],
                |buffers, (block, block_out)| {
                    let (mut block_sums, first) = (zeros(), first + block * block_rows);
                    for (run, run_out) in block_out.chunks_mut(SUM_ROWS * columns).enumerate() {
                        let mut sums = zeros();
                        for (index, row) in run_out.chunks_mut(columns).enumerate() {
                            work(first + run * SUM_ROWS + index, row, &mut sums, buffers);
                        }
                        add(&mut block_sums, &sums);
                    }
                    block_sums
                },
            )
            .collect();
        for partial in &partials {
            add(&mut totals, partial);
        }
    }
    totals
}

fn add(totals: &mut [Vec<f32>], terms: &[Vec<f32>]) {
    for (total, term) in totals.iter_mut().flatten().zip(terms.iter().flatten()) {
        *total += term;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_visited_once_with_its_number() {
        for (rows, columns) in [(1, 1), (7, 3), (100_000, 1), (3, 40_000)] {
            let mut out = vec![0u32; rows * columns];
            each_row(&mut out, columns, columns, |row, out, buffer| {
                assert_eq!(buffer.len(), columns);
                out.iter_mut().for_each(|value| *value += row as u32 + 1);
            });
            assert!((0..rows * columns).all(|index| out[index] == (index / columns) as u32 + 1));
        }
    }

    #[test]
    fn two_outputs_stay_together() {
        let (mut wide, mut narrow) = (vec![0usize; 5000 * 9], vec![0usize; 5000]);
        each_row2(
            (&mut wide, 9),
            (&mut narrow, 1),
            9,
            |row, wide, narrow, _| {
                wide.fill(row);
                narrow[0] = row;
            },
        );
        assert!((0..5000).all(|row| narrow[row] == row && wide[row * 9..][..9] == [row; 9]));
    }

    #[test]
    fn sums_over_rows_count_every_row_once() {
        for (rows, columns) in [(1, 1), (700, 3), (100_000, 1), (3, 40_000)] {
            let mut out = vec![0usize; rows * columns];
            let [ones, numbers] = accumulate_rows(
                &mut out,
                columns,
                |row, out, sums: &mut [Vec<f32>; 2], _| {
                    out.fill(row);
                    sums[0].iter_mut().for_each(|sum| *sum += 1.0);
                    sums[1].iter_mut().for_each(|sum| *sum += (row % 7) as f32);
                },
            );
            let expected: usize = (0..rows).map(|row| row % 7).sum();
            assert!(ones.iter().all(|&sum| sum == rows as f32));
            assert!(numbers.iter().all(|&sum| sum == expected as f32));
            assert!((0..rows * columns).all(|index| out[index] == index / columns));
        }
    }
}

//! The problem of a contender on the CPU: addresses and sizes.

use std::ops::Range;

use contender::Buffer;

use crate::Scaled;

#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) x: usize,
    pub(crate) w: usize,
    pub(crate) y: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Work {
    pub(crate) fn new(problem: &Scaled, buffers: &[Buffer]) -> Self {
        let address = |tensor: usize| buffers[tensor].address;
        Self {
            x: address(Scaled::X),
            w: address(Scaled::W),
            y: address(Scaled::Y),
            rows: problem.rows,
            columns: problem.columns,
        }
    }

    /// All of `x`, then all of `w`: an answer is kept only for both.
    pub(crate) fn inputs(&self) -> Vec<f32> {
        // SAFETY: the buffers outlive the contender, whose drop ends its threads. Volatile, because the
        // harness may write meanwhile: a mix of old and new inputs is as harmless as either.
        let read = |start: usize, i| unsafe { (start as *const f32).add(i).read_volatile() };
        let x = (0..self.rows * self.columns).map(|i| read(self.x, i));
        x.chain((0..self.columns).map(|i| read(self.w, i)))
            .collect()
    }

    /// Whether some of the inputs are those.
    pub(crate) fn is_about(&self, inputs: &[f32]) -> bool {
        let elements = self.rows * self.columns;
        let mut places = [0, elements / 2, elements - 1].into_iter();
        // SAFETY: as in `inputs`.
        places.all(|i| unsafe { (self.x as *const f32).add(i).read_volatile() } == inputs[i])
    }

    /// Whether one element of the output is right.
    pub(crate) fn seems_answered(&self) -> bool {
        // SAFETY: as in `inputs`.
        let (x, w) = unsafe { (*(self.x as *const f32), *(self.w as *const f32)) };
        self.output()[0] == x * w
    }

    pub(crate) fn output(&self) -> &'static mut [f32] {
        // SAFETY: the harness gives addresses of live buffers of the problem's sizes, and what a thread writes after a
        // call is the fault under test.
        unsafe { std::slice::from_raw_parts_mut(self.y as *mut f32, self.rows * self.columns) }
    }

    pub(crate) fn compute_slowly(&self, passes: usize) {
        for _ in 0..passes {
            self.compute_rows(0..self.rows);
        }
    }

    pub(crate) fn compute_rows(&self, rows: Range<usize>) {
        // SAFETY: as in `output`.
        let (x, w) = unsafe {
            let x = std::slice::from_raw_parts(self.x as *const f32, self.rows * self.columns);
            (
                x,
                std::slice::from_raw_parts(self.w as *const f32, self.columns),
            )
        };
        let places = rows.start * self.columns..rows.end * self.columns;
        let y = &mut self.output()[places.clone()];
        let rows = y.chunks_exact_mut(self.columns);
        for (y, x) in rows.zip(x[places].chunks_exact(self.columns)) {
            for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
                *y = x * w;
            }
        }
        std::hint::black_box(y);
    }
}

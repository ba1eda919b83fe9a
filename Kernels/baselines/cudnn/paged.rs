//! Attention of a few new tokens per sequence over a paged cache: the graph of packed attention with
//! paged loads before its matmuls.

use crate::attention::{numbers, Builder};
use crate::graph::{Graph, Layout, Lengths};
use crate::{DataType, Error};

/// Addresses of a launch: q, pages of keys, pages of values, out.
///
/// | tensor | shape |
/// |---|---|
/// | q, out | [batch, q_len, heads, head_dim] |
/// | pages | [pool_pages, page_size, kv_heads, head_dim], or with `heads_first` [.., kv_heads, page_size, ..] |
///
/// The page table is part of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PagedAttention {
    pub q_len: usize,
    /// At least `q_len` each; the last query of a sequence sees all.
    pub kv_lens: Vec<usize>,
    /// The pages of sequence `s` are `page_indices[page_indptr[s]..page_indptr[s + 1]]`.
    pub page_indptr: Vec<i32>,
    pub page_indices: Vec<i32>,
    pub pool_pages: usize,
    pub page_size: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub heads_first: bool,
    pub scale: f32,
    pub data_type: DataType,
}

impl PagedAttention {
    pub fn graph(&self) -> Result<Graph, Error> {
        let longest = self.kv_lens.iter().copied().max().unwrap_or(0);
        let (batch, rows, columns) = (self.kv_lens.len(), self.q_len, longest);
        let [batch, rows, columns, heads, kv_heads, dim] = [
            batch,
            rows,
            columns,
            self.heads,
            self.kv_heads,
            self.head_dim,
        ]
        .map(|extent| extent as i64);
        let mut graph = Graph::new()?;
        let q_lens = vec![self.q_len; self.kv_lens.len()];
        let length_q = graph.numbers(&numbers(&q_lens)?)?;
        let length_kv = graph.numbers(&numbers(&self.kv_lens)?)?;
        let masked = graph.library().masked();
        let mut builder = Builder {
            graph,
            layout: Layout::dense([batch, heads, rows, columns]),
            lengths: Some((length_q, length_kv)),
            masked,
        };

        let queries = Layout {
            dimensions: [batch, heads, rows, dim],
            strides: [rows * heads * dim, dim, heads * dim, 1],
        };
        let graph = &mut builder.graph;
        let q = graph.argument(0, self.data_type, &queries, None)?;
        let k_pages = graph.argument(1, self.data_type, &self.pages(), None)?;
        let v_pages = graph.argument(2, self.data_type, &self.pages(), None)?;
        let out = graph.argument(3, self.data_type, &queries, None)?;
        let (table, table_layout) = self.table();
        let table = graph.numbers_shaped(&table, &table_layout)?;

        let transposed = Layout {
            dimensions: [batch, kv_heads, dim, columns],
            strides: [dim * columns * kv_heads, dim * columns, 1, dim],
        };
        let k = graph.between(self.data_type, &transposed)?;
        graph.load_pages(k_pages, table, length_kv, k)?;
        let mut scores = builder.scores(q, k, self.scale)?;
        scores = builder.mask_padding(scores)?;
        if self.q_len > 1 {
            scores = builder.mask_future(scores, true)?;
        }
        let per_row = Layout {
            dimensions: [batch, heads, rows, 1],
            strides: [heads * rows, rows, 1, 1],
        };
        let lse = builder.graph.between(DataType::F32, &per_row)?;
        let shares = builder.softmax(scores, &per_row, lse, self.data_type)?;
        let graph = &mut builder.graph;
        let values = Layout::dense([batch, kv_heads, columns, dim]);
        let v = graph.between(self.data_type, &values)?;
        graph.load_pages(v_pages, table, length_kv, v)?;
        let lengths = Lengths {
            m: Some(length_q),
            n: None,
            k: Some(length_kv),
        };
        graph.matmul(shares, v, out, lengths, None)?;
        Ok(builder.graph)
    }

    fn pages(&self) -> Layout {
        let [pool, page, heads, dim] = [
            self.pool_pages,
            self.page_size,
            self.kv_heads,
            self.head_dim,
        ]
        .map(|extent| extent as i64);
        let (head, token) = match self.heads_first {
            true => (page * dim, dim),
            false => (dim, heads * dim),
        };
        Layout {
            dimensions: [pool, heads, page, dim],
            strides: [heads * page * dim, head, token, 1],
        }
    }

    /// One row per sequence, as long as the longest; the rest is page 0 and is not read.
    fn table(&self) -> (Vec<i32>, Layout) {
        let most = self.kv_lens.iter().copied().max().unwrap_or(0);
        let width = most.div_ceil(self.page_size);
        let mut table = Vec::with_capacity(self.kv_lens.len() * width);
        for ends in self.page_indptr.windows(2) {
            let pages = &self.page_indices[ends[0] as usize..ends[1] as usize];
            table.extend_from_slice(pages);
            table.resize(table.len() + width - pages.len(), 0);
        }
        let layout = Layout::dense([self.kv_lens.len() as i64, 1, width as i64, 1]);
        (table, layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attention(heads_first: bool) -> PagedAttention {
        PagedAttention {
            q_len: 1,
            kv_lens: vec![5, 1, 9],
            page_indptr: vec![0, 2, 3, 6],
            page_indices: vec![7, 3, 1, 2, 6, 4],
            pool_pages: 8,
            page_size: 4,
            heads: 6,
            kv_heads: 2,
            head_dim: 16,
            heads_first,
            scale: 0.25,
            data_type: DataType::Bf16,
        }
    }

    #[test]
    fn every_sequence_has_a_row_of_the_table() {
        let (table, layout) = attention(true).table();
        assert_eq!(table, [7, 3, 0, 1, 0, 0, 2, 6, 4]);
        assert_eq!(layout, Layout::dense([3, 1, 3, 1]));
    }

    #[test]
    fn pages_are_seen_as_heads_of_tokens_in_both_layouts() {
        assert_eq!(attention(true).pages(), Layout::dense([8, 2, 4, 16]));
        assert_eq!(attention(false).pages().strides, [128, 16, 32, 1]);
    }
}

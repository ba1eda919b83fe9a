//! Norms over the rows of a matrix: one cuDNN operation each.

use crate::backend::Descriptor;
use crate::enums::{Attribute, Kind, NormMode, NormPhase};
use crate::graph::{Graph, Layout, Tensor};
use crate::{DataType, Error};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    Rms,
    Layer,
}

impl NormKind {
    fn mode(self) -> NormMode {
        match self {
            NormKind::Rms => NormMode::Rms,
            NormKind::Layer => NormMode::Layer,
        }
    }
}

/// What both directions share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    pub kind: NormKind,
    pub rows: usize,
    pub columns: usize,
    pub activation: DataType,
    pub weight: DataType,
}

impl Norm {
    /// A row is one sample, its columns are channels.
    fn layout(rows: usize, columns: usize) -> Layout {
        let (rows, columns) = (rows as i64, columns as i64);
        Layout {
            dimensions: [rows, columns, 1, 1],
            strides: [columns, 1, columns, columns],
        }
    }

    fn matrix(&self, graph: &mut Graph, place: usize) -> Result<Tensor, Error> {
        let layout = Self::layout(self.rows, self.columns);
        graph.argument(place, self.activation, &layout, None)
    }

    fn per_column(&self, graph: &mut Graph, place: usize) -> Result<Tensor, Error> {
        let layout = Self::layout(1, self.columns);
        graph.argument(place, self.weight, &layout, None)
    }

    fn per_row(&self, graph: &mut Graph, place: usize) -> Result<Tensor, Error> {
        let layout = Self::layout(self.rows, 1);
        graph.argument(place, DataType::F32, &layout, None)
    }
}

/// Addresses of a launch: x, weight, out; LayerNorm: x, weight, bias, out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormForward {
    pub norm: Norm,
    pub epsilon: f32,
}

impl NormForward {
    pub fn graph(&self) -> Result<Graph, Error> {
        let norm = &self.norm;
        let mut graph = Graph::new()?;
        let mut tensors = vec![
            (Attribute::NormForwardX, norm.matrix(&mut graph, 0)?),
            (Attribute::NormForwardScale, norm.per_column(&mut graph, 1)?),
            (Attribute::NormForwardEpsilon, graph.float(self.epsilon)?),
        ];
        let out = match norm.kind {
            NormKind::Rms => 2,
            NormKind::Layer => {
                let bias = norm.per_column(&mut graph, 2)?;
                tensors.push((Attribute::NormForwardBias, bias));
                3
            }
        };
        tensors.push((Attribute::NormForwardY, norm.matrix(&mut graph, out)?));
        let modes = |operation: &Descriptor| {
            operation.set_one(Attribute::NormForwardMode, norm.kind.mode())?;
            operation.set_one(Attribute::NormForwardPhase, NormPhase::Inference)
        };
        graph.operation(Kind::OperationNormForward, None, &tensors, modes)?;
        Ok(graph)
    }
}

/// Addresses of a launch: x, weight, out_gradient, rstd, x_gradient, weight_gradient; LayerNorm: x,
/// weight, out_gradient, mean, rstd, x_gradient, weight_gradient, bias_gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormBackward {
    pub norm: Norm,
}

impl NormBackward {
    pub fn graph(&self) -> Result<Graph, Error> {
        let norm = &self.norm;
        let mut graph = Graph::new()?;
        let mut tensors = vec![
            (Attribute::NormBackwardX, norm.matrix(&mut graph, 0)?),
            (
                Attribute::NormBackwardScale,
                norm.per_column(&mut graph, 1)?,
            ),
            (
                Attribute::NormBackwardOutGradient,
                norm.matrix(&mut graph, 2)?,
            ),
        ];
        let after_mean = match norm.kind {
            NormKind::Rms => 3,
            NormKind::Layer => {
                tensors.push((Attribute::NormBackwardMean, norm.per_row(&mut graph, 3)?));
                let bias_gradient = norm.per_column(&mut graph, 7)?;
                tensors.push((Attribute::NormBackwardBiasGradient, bias_gradient));
                4
            }
        };
        let rstd = norm.per_row(&mut graph, after_mean)?;
        let x_gradient = norm.matrix(&mut graph, after_mean + 1)?;
        let weight_gradient = norm.per_column(&mut graph, after_mean + 2)?;
        tensors.extend([
            (Attribute::NormBackwardInverseDeviation, rstd),
            (Attribute::NormBackwardXGradient, x_gradient),
            (Attribute::NormBackwardScaleGradient, weight_gradient),
        ]);
        let mode = |operation: &Descriptor| {
            operation.set_one(Attribute::NormBackwardMode, norm.kind.mode())
        };
        graph.operation(Kind::OperationNormBackward, None, &tensors, mode)?;
        Ok(graph)
    }
}

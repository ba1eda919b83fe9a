//! A bench with a planted wrong kernel, which it must report: its weights are the activations.

use std::process::ExitCode;

use cli::Bench;
use contender::{Binding, Buffer, Contender, DeviceInfo, Identity, Kind, Support, Tensors};
use numeric::DType;
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_norms_planted",
        about: "Races RMSNorm with a wrong kernel among its contenders",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: NormSuite::SUITES,
        shortcuts: &[],
        dtypes: &[DType::Bf16],
        problems: |_choices| Ok(vec![problem()]),
        contenders: |choices| {
            let all = || norms_contenders::contenders(choices.device).into_iter();
            let planted = all()
                .next()
                .map(|honest| Box::new(Planted::new(honest)) as Box<_>);
            all().chain(planted).collect()
        },
    })
}

fn problem() -> NormProblem {
    let (rows, columns) = (64, 1024);
    let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
    let types = NormTypes {
        activation: DType::Bf16,
        weight: DType::Bf16,
    };
    NormProblem::new(NormOp::RmsNormForward, shape, types, workload)
}

struct Planted {
    identity: Identity,
    honest: Box<dyn Contender<NormProblem>>,
}

impl Planted {
    fn new(honest: Box<dyn Contender<NormProblem>>) -> Self {
        let identity = Identity {
            name: "planted_wrong".to_owned(),
            kind: Kind::Own,
            ..honest.identity().clone()
        };
        Self { identity, honest }
    }
}

impl Contender<NormProblem> for Planted {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        self.honest.supports(problem, device)
    }

    fn bind(&self, problem: &NormProblem, buffers: &[Buffer], device: &DeviceInfo) -> Binding {
        let tensors = Tensors::new(problem, buffers)?;
        let mut swapped = buffers.to_vec();
        swapped[tensors.place("weight")?].address = tensors.address("x")?;
        self.honest.bind(problem, &swapped, device)
    }
}

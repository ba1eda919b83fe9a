//! Special registers.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    X,
    Y,
    Z,
}

/// A register that the machine writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    Tid(Axis),
    Ntid(Axis),
    Ctaid(Axis),
    Nctaid(Axis),
    ClusterCtaid(Axis),
    ClusterNctaid(Axis),
    Clusterid(Axis),
    Nclusterid(Axis),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    Globaltimer,
    DynamicSmemSize,
    TotalSmemSize,
    AggrSmemSize,
    /// `%envreg0` to `%envreg31`, which the driver sets and only it knows.
    Environment(u8),
}

impl Special {
    /// The register of a name without its percent sign.
    pub fn named(name: &str) -> Option<Self> {
        if let Some((base, axis)) = name.rsplit_once('.') {
            let axis = match axis {
                "x" => Axis::X,
                "y" => Axis::Y,
                "z" => Axis::Z,
                _ => return None,
            };
            return Some(match base {
                "tid" => Self::Tid(axis),
                "ntid" => Self::Ntid(axis),
                "ctaid" => Self::Ctaid(axis),
                "nctaid" => Self::Nctaid(axis),
                "cluster_ctaid" => Self::ClusterCtaid(axis),
                "cluster_nctaid" => Self::ClusterNctaid(axis),
                "clusterid" => Self::Clusterid(axis),
                "nclusterid" => Self::Nclusterid(axis),
                _ => return None,
            });
        }
        if let Some(number) = name.strip_prefix("envreg") {
            let known = |number: &u8| *number < 32 && name == format!("envreg{number}");
            return number.parse().ok().filter(known).map(Self::Environment);
        }
        Some(match name {
            "cluster_ctarank" => Self::ClusterCtarank,
            "cluster_nctarank" => Self::ClusterNctarank,
            "is_explicit_cluster" => Self::IsExplicitCluster,
            "laneid" => Self::Laneid,
            "warpid" => Self::Warpid,
            "nwarpid" => Self::Nwarpid,
            "smid" => Self::Smid,
            "nsmid" => Self::Nsmid,
            "gridid" => Self::Gridid,
            "lanemask_eq" => Self::LanemaskEq,
            "lanemask_le" => Self::LanemaskLe,
            "lanemask_lt" => Self::LanemaskLt,
            "lanemask_ge" => Self::LanemaskGe,
            "lanemask_gt" => Self::LanemaskGt,
            "clock" => Self::Clock,
            "clock_hi" => Self::ClockHi,
            "clock64" => Self::Clock64,
            "globaltimer" => Self::Globaltimer,
            "dynamic_smem_size" => Self::DynamicSmemSize,
            "total_smem_size" => Self::TotalSmemSize,
            "aggr_smem_size" => Self::AggrSmemSize,
            _ => return None,
        })
    }
}

//! The enumerators of cuDNN 9's backend API used here. Their values are its ABI.

/// `cudnnDataType_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum DataType {
    F32 = 0,
    F16 = 2,
    I32 = 4,
    Bf16 = 9,
    Bool = 11,
}

/// `cudnnBackendDescriptorType_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Kind {
    Pointwise = 0,
    EngineConfig = 3,
    EngineHeuristics = 4,
    ExecutionPlan = 5,
    OperationPointwise = 13,
    OperationGraph = 15,
    VariantPack = 16,
    Tensor = 17,
    Matmul = 18,
    OperationMatmul = 19,
    Reduction = 21,
    OperationReduction = 22,
    OperationNormForward = 29,
    OperationNormBackward = 30,
    OperationPagedCacheLoad = 35,
}

/// `cudnnPointwiseMode_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Pointwise {
    Add = 0,
    Multiply = 1,
    Divide = 6,
    Subtract = 9,
    Exp = 13,
    Log = 15,
    GreaterOrEqual = 303,
    Less = 304,
    And = 400,
    /// The position along an axis.
    Index = 501,
    /// The first operand where the mask is set, else the second.
    Select = 601,
}

/// `cudnnReduceTensorOp_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Reduce {
    Add = 0,
    Max = 3,
}

/// `cudnnBackendHeurMode_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Heuristics {
    Fallback = 2,
    A = 3,
}

/// `cudnnBackendNormMode_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum NormMode {
    Layer = 0,
    Rms = 4,
}

/// `cudnnBackendNormFwdPhase_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum NormPhase {
    Inference = 0,
}

/// `cudnnBackendAttributeType_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Type {
    Handle = 0,
    Element = 1,
    Boolean = 2,
    Int64 = 3,
    Double = 5,
    Pointer = 6,
    Heuristics = 8,
    PointwiseMode = 14,
    Descriptor = 15,
    ReductionOperator = 18,
    Char = 24,
    NormMode = 27,
    NormPhase = 28,
}

/// `cudnnBackendAttributeName_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Attribute {
    PointwiseMode = 0,
    PointwisePrecision = 1,
    PointwiseAxis = 9,
    HeuristicsMode = 200,
    HeuristicsGraph = 201,
    HeuristicsResults = 202,
    PlanHandle = 400,
    PlanConfig = 401,
    PlanWorkspaceSize = 402,
    PlanText = 405,
    OperationPointwise = 750,
    OperationPointwiseX = 751,
    OperationPointwiseB = 752,
    OperationPointwiseY = 753,
    OperationPointwiseMask = 758,
    GraphHandle = 800,
    GraphOperations = 801,
    TensorAlignment = 900,
    TensorType = 901,
    TensorDimensions = 902,
    TensorStrides = 903,
    TensorId = 906,
    TensorIsVirtual = 907,
    TensorIsByValue = 908,
    TensorRaggedOffset = 913,
    PackIds = 1000,
    PackPointers = 1001,
    PackWorkspace = 1003,
    MatmulType = 1500,
    MatmulPadding = 1503,
    OperationMatmulA = 1520,
    OperationMatmulB = 1521,
    OperationMatmulC = 1522,
    OperationMatmul = 1523,
    OperationMatmulM = 1525,
    OperationMatmulN = 1526,
    OperationMatmulK = 1527,
    ReductionOperator = 1600,
    ReductionType = 1601,
    OperationReductionX = 1610,
    OperationReductionY = 1611,
    OperationReduction = 1612,
    PagedCacheLoadContainer = 1950,
    PagedCacheLoadY = 1951,
    PagedCacheLoadSequence = 1952,
    PagedCacheLoadPageTable = 1953,
    NormForwardMode = 2000,
    NormForwardPhase = 2001,
    NormForwardX = 2002,
    NormForwardScale = 2005,
    NormForwardBias = 2006,
    NormForwardEpsilon = 2007,
    NormForwardY = 2013,
    NormBackwardMode = 2100,
    NormBackwardX = 2101,
    NormBackwardMean = 2102,
    NormBackwardInverseDeviation = 2103,
    NormBackwardOutGradient = 2104,
    NormBackwardScale = 2105,
    NormBackwardScaleGradient = 2107,
    NormBackwardBiasGradient = 2108,
    NormBackwardXGradient = 2109,
}

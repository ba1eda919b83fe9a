//! Decoded instructions: everything that can be known before a launch is resolved.

mod tcgen;

use syntax::{Special, Type};

use crate::convert::Convert;
pub use crate::map_field::MapField;

pub use tcgen::{CopyShape, Tcgen, TcgenA, TcgenKind, TcgenShape};

pub const LANES: usize = 32;
pub type Words = [u32; LANES];
pub type Wides = [u64; LANES];

/// A source of up to 32 bits.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    Register(u32),
    Immediate(u32),
    /// An address in the own block's shared memory.
    Shared(u32),
}

/// A source of 64 bits.
#[derive(Clone, Copy, Debug)]
pub enum Wide {
    Register(u32),
    Immediate(u64),
    /// The address of a kernel parameter.
    Parameter(u32),
    Shared(u32),
}

#[derive(Clone, Copy, Debug)]
pub enum Bit {
    Register { number: u32, negated: bool },
    Constant(bool),
}

#[derive(Clone, Copy, Debug)]
pub enum Value {
    Word(Word),
    Wide(Wide),
    Bit(Bit),
}

/// Where a result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Nowhere,
    /// A register of 8 or 16 bits: the rest of its word stays 0.
    Half(u32),
    Word(u32),
    Wide(u32),
    Bit(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub base: Value,
    pub offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Generic,
    Global,
    Shared,
    Local,
}

pub type W1 = fn(&Words) -> Words;
pub type W2 = fn(&Words, &Words) -> Words;
pub type W3 = fn(&Words, &Words, &Words) -> Words;
pub type W4 = fn(&Words, &Words, &Words, &Words) -> Words;
pub type D1 = fn(&Wides) -> Wides;
pub type D2 = fn(&Wides, &Wides) -> Wides;
pub type D3 = fn(&Wides, &Wides, &Wides) -> Wides;
pub type Dwd = fn(&Wides, &Words) -> Wides;
pub type Wwd = fn(&Words, &Words) -> Wides;
pub type Wwdd = fn(&Words, &Words, &Wides) -> Wides;
pub type Dwwd = fn(&Wides, &Words, &Words) -> Wides;
pub type Ddwwd = fn(&Wides, &Wides, &Words, &Words) -> Wides;
pub type DW = fn(&Wides) -> Words;
pub type WD = fn(&Words) -> Wides;
pub type Wwp = fn(&Words, &Words) -> u32;
pub type Ddp = fn(&Wides, &Wides) -> u32;

/// How far an access or a fence is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Weak,
    Block,
    Cluster,
    Device,
}

/// How an access takes part in the order of memory: strong ones may meet each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strength {
    pub scope: Scope,
    pub acquires: bool,
    pub releases: bool,
}

impl Strength {
    pub const WEAK: Self = Self::relaxed(Scope::Weak);

    pub const fn relaxed(scope: Scope) -> Self {
        Self {
            scope,
            acquires: false,
            releases: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Increment,
    Decrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    Sync,
    Arrive,
    And,
    Or,
    Popc,
}

/// An element of a matrix operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    E3m2,
    E2m3,
    E2m1,
    S8,
    U8,
}

impl Element {
    pub fn bits(self) -> u32 {
        match self {
            Self::Tf32 => 32,
            Self::F16 | Self::Bf16 => 16,
            _ => 8,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Op {
    Nothing,
    W1(W1, u32, Word),
    W2(W2, u32, Word, Word),
    W3(W3, u32, Word, Word, Word),
    W4(W4, u32, [Word; 4]),
    D1(D1, u32, Wide),
    D2(D2, u32, Wide, Wide),
    D3(D3, u32, Wide, Wide, Wide),
    Dwd(Dwd, u32, Wide, Word),
    Wwd(Wwd, u32, Word, Word),
    Wwdd(Wwdd, u32, Word, Word, Wide),
    Dwwd(Dwwd, u32, Wide, Word, Word),
    Ddwwd(Ddwwd, u32, Wide, Wide, Word, Word),
    DW(DW, u32, Wide),
    WD(WD, u32, Word),
    /// The addition's carry goes to a flag of each lane, or comes from it.
    Carry {
        subtracts: bool,
        takes: bool,
        gives: bool,
        wide: bool,
        target: Target,
        a: Value,
        b: Value,
    },
    Lop3 {
        table: u8,
        target: u32,
        a: Word,
        b: Word,
        c: Word,
    },
    MoveWord(u32, Word),
    MoveWide(u32, Wide),
    MoveBit(u32, Bit),
    Special(Target, Special),
    Pack {
        target: Target,
        parts: Box<[Value]>,
        bits: u32,
    },
    Unpack {
        parts: Box<[Target]>,
        source: Value,
        bits: u32,
    },
    /// A comparison, joined with a predicate; the second result is of its opposite.
    CompareW {
        compare: Wwp,
        targets: [Target; 2],
        a: Word,
        b: Word,
        join: Option<(Logic, Bit)>,
    },
    CompareD {
        compare: Ddp,
        targets: [Target; 2],
        a: Wide,
        b: Wide,
        join: Option<(Logic, Bit)>,
    },
    SetW {
        compare: Wwp,
        target: u32,
        a: Word,
        b: Word,
        yes: u32,
    },
    BitLogic {
        logic: Logic,
        target: u32,
        a: Bit,
        b: Bit,
    },
    SelectW(u32, Word, Word, Bit),
    SelectD(u32, Wide, Wide, Bit),
    Convert {
        convert: Convert,
        target: Target,
        a: Value,
        b: Option<Value>,
    },
    /// Between a window's addresses and generic ones.
    ToGeneric {
        space: Space,
        target: Target,
        source: Value,
    },
    FromGeneric {
        space: Space,
        target: Target,
        source: Value,
    },
    IsSpace {
        space: Space,
        target: u32,
        source: Value,
    },
    LoadParameter {
        ty: Type,
        targets: Box<[Target]>,
        offset: u32,
    },
    Load {
        ty: Type,
        space: Space,
        strength: Strength,
        targets: Box<[Target]>,
        address: Address,
    },
    Store {
        ty: Type,
        space: Space,
        strength: Strength,
        values: Box<[Value]>,
        address: Address,
    },
    CopyLocal {
        from: u32,
        to: u32,
        bytes: u32,
    },
    Atomic {
        atomic: Atomic,
        ty: Type,
        space: Space,
        strength: Strength,
        target: Target,
        address: Address,
        value: Value,
        swap: Option<Value>,
    },
    /// A vector reduction: `red.global.add.v4.f32`.
    ReduceVector {
        atomic: Atomic,
        ty: Type,
        space: Space,
        strength: Strength,
        address: Address,
        values: Box<[Value]>,
    },
    Branch(usize),
    BranchTable {
        targets: Box<[usize]>,
        index: Word,
    },
    Exit,
    Trap(String),
    WarpSync,
    Shuffle {
        kind: Shuffle,
        target: Target,
        valid: Target,
        a: Word,
        b: Word,
        clamp: Word,
    },
    Vote {
        kind: Vote,
        target: Target,
        a: Bit,
    },
    ActiveMask(u32),
    Match {
        all: bool,
        target: u32,
        same: Target,
        a: Value,
    },
    Redux {
        atomic: Atomic,
        ty: Type,
        absolute: bool,
        nan: bool,
        target: u32,
        a: Word,
    },
    Elect {
        leader: Target,
        elected: Target,
    },
    Barrier {
        kind: BarrierKind,
        id: Word,
        count: Option<Word>,
        target: Target,
        a: Option<Bit>,
    },
    ClusterArrive {
        /// Orders no memory.
        relaxed: bool,
    },
    ClusterWait,
    MbarrierInit {
        address: Address,
        count: Word,
    },
    MbarrierInvalidate {
        address: Address,
    },
    MbarrierArrive {
        address: Address,
        count: Option<Word>,
        expects: Option<Word>,
        completes: bool,
        arrives: bool,
        /// Arrives without waiting: two steps in one.
        drops: bool,
        /// `.noComplete`: its phase does not end by this.
        stays: bool,
        /// Orders no stores.
        relaxed: bool,
        state: Target,
    },
    MbarrierTest {
        address: Address,
        relaxed: bool,
        state: Option<Wide>,
        parity: Option<Word>,
        waits: bool,
        target: u32,
    },
    MbarrierPending {
        target: u32,
        state: Wide,
    },
    MapShared {
        target: Target,
        source: Value,
        rank: Word,
        generic: bool,
    },
    GetRank {
        target: u32,
        source: Value,
    },
    CopyAsync {
        bytes: u32,
        shared: Address,
        global: Address,
        source_bytes: Option<Word>,
        ignore: Option<Bit>,
    },
    CopyCommit,
    CopyWait(u32),
    CopyWaitAll,
    CopyArrive {
        address: Address,
        counted: bool,
    },
    BulkLoad {
        shared: Address,
        global: Address,
        bytes: Word,
        barrier: Address,
        multicast: Option<Word>,
    },
    BulkStore {
        global: Address,
        shared: Address,
        bytes: Word,
    },
    BulkReduce {
        atomic: Atomic,
        ty: Type,
        global: Address,
        shared: Address,
        bytes: Word,
    },
    BulkShare {
        to: Address,
        from: Address,
        bytes: Word,
        barrier: Address,
    },
    BulkCommit,
    BulkWait {
        groups: u32,
        /// Only until the sources were read.
        read: bool,
    },
    TensorLoad {
        shared: Address,
        map: Address,
        coordinates: Box<[Word]>,
        barrier: Address,
        multicast: Option<Word>,
        /// The barrier may lie in either block of a pair.
        pair: bool,
    },
    TensorStore {
        map: Address,
        coordinates: Box<[Word]>,
        shared: Address,
        reduce: Option<Atomic>,
    },
    /// tensormap.replace
    ReplaceField {
        field: MapField,
        ordinal: u32,
        space: Space,
        address: Address,
        value: Value,
    },
    /// tensormap.cp_fenceproxy
    PublishMap {
        to: Address,
        from: Address,
    },
    StoreAsync {
        ty: Type,
        address: Address,
        values: Box<[Value]>,
        barrier: Address,
    },
    /// Orders what was before it with what comes after, as far as its scope.
    Fence(Scope),
    FenceProxyAsync {
        /// Of shared memory, and of global memory.
        memories: [bool; 2],
    },
    FenceMbarrierInit,
    /// Transposes 8 rows of 8 elements of 16 bits that the lanes hold.
    MoveMatrix {
        target: u32,
        source: Word,
    },
    LoadMatrix {
        targets: Box<[Target]>,
        transposed: bool,
        address: Address,
    },
    StoreMatrix {
        values: Box<[Word]>,
        transposed: bool,
        address: Address,
    },
    Mma {
        depth: u32,
        a_type: Element,
        b_type: Element,
        half: bool,
        d: Box<[Target]>,
        a: Box<[Word]>,
        b: Box<[Word]>,
        c: Box<[Word]>,
    },
    MmaInteger {
        depth: u32,
        a_signed: bool,
        b_signed: bool,
        saturates: bool,
        d: Box<[Target]>,
        a: Box<[Word]>,
        b: Box<[Word]>,
        c: Box<[Word]>,
    },
    /// Waits for the grids before this one.
    GridWait,
    WgmmaFence,
    WgmmaCommit,
    WgmmaWait(u32),
    Wgmma(Box<Wgmma>),
    Tcgen(Box<Tcgen>),
}

#[derive(Clone, Debug)]
pub struct Wgmma {
    pub columns: u32,
    pub depth: u32,
    pub a_type: Element,
    pub b_type: Element,
    pub half: bool,
    pub d: Box<[u32]>,
    pub a: WgmmaA,
    pub b: Wide,
    pub accumulates: Bit,
    pub negated: bool,
    pub a_transposed: bool,
    pub b_transposed: bool,
}

#[derive(Clone, Debug)]
pub enum WgmmaA {
    Shared(Wide),
    Registers([u32; 4]),
}

/// Which lanes must stand at an instruction before it runs.
#[derive(Clone, Copy, Debug)]
pub enum Gather {
    None,
    /// All that have not exited.
    Warp,
    Members(Word),
}

#[derive(Clone, Debug)]
pub struct Decoded {
    pub op: Op,
    pub guard: Option<(u32, bool)>,
    pub gather: Gather,
}

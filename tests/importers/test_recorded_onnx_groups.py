"""Small ONNX networks, each written as text, whose sizes are computed, open or unusual: the document that they become, as recorded.

Those that ONNX Runtime can run compute the same there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from document_texts import layer_text
from onnx_node_cases import CASES, NodeCase
from recorded import check_lines, rounded

from designer.graph.diagnostics import DiagnosticError
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.importing import import_onnx, import_proto
from designer.operators.registry import Registry

# name -> inputs => outputs < constants > nodes; the opset is behind a @, the domain of Microsoft is imported as well
GROUPS = {
    "reshape by a shape of parts": """float[N,4,6] x => float[N,a,b] y <int64[1] zero={0}, int64[1] one={1}, int64[1] two={2}, int64[1] rest={-1}> {
        s = Shape(x) n = Slice(s, zero, one) c = Slice(s, one, two) shape = Concat<axis=0>(n, rest, two) y = Reshape(x, shape) }""",
    "reshape with arithmetic of sizes": """float[2,4,6] x => float[2,a,b] y <int64 two={2}, int64[1] one={1}, int64[1] zero={0}, int64[1] last={2}> {
        s = Shape(x) c = Gather(s, one) d = Div(c, two) l = Gather(s, last) m = Mul(l, two) n = Gather(s, zero)
        shape = Concat<axis=0>(n, d, m) y = Reshape(x, shape) }""",
    "reshape with arithmetic of open sizes": """float[N,4,H] x => float[N,a,b] y <int64 two={2}, int64[1] one={1}, int64[1] zero={0}, int64[1] rest={-1}> {
        s = Shape(x) c = Gather(s, one) d = Div(c, two) n = Gather(s, zero) shape = Concat<axis=0>(n, d, rest) y = Reshape(x, shape) }""",
    "reshape that merges the batch": """float[N,4,6] x => float[a,6] y <int64[2] shape={-1,6}> { y = Reshape(x, shape) }""",
    "reshape to the batch of another tensor": """float[N,4] x, float[M,4] z => float[a,b] y <int64[1] zero={0}, int64[1] four={4}> {
        s = Shape(z) n = Gather(s, zero) shape = Concat<axis=0>(n, four) y = Reshape(x, shape) }""",
    "reshape that splits the batch": """float[N] x => float[a,b] y <int64[2] shape={-1,1}> { y = Reshape(x, shape) }""",
    "a fixed first size in front": """float[1,4,6] x => float[a,b] y <int64[2] shape={0,-1}> { y = Reshape(x, shape) }""",
    "transpose with the batch last": """float[N,4,6] x => float[6,4,N] y { y = Transpose(x) }""",
    "flatten in front of the batch": """float[4,N,6] x => float[a,b] y { t = Transpose<perm=[1,0,2]>(x) y = Flatten<axis=0>(t) }""",
    "flatten of a negative axis": """float[N,4,6,2] x => float[a,b] y { y = Flatten<axis=-3>(x) }""",
    "squeeze of computed axes": """float[N,4,1] x, int64[1] axes => float[N,4] y { y = Squeeze(x, axes) }""",
    "squeeze of all axes of 1": """float[N,1,4,1] x => float[N,4] y { y = Squeeze(x) }""",
    "unsqueeze of computed axes": """float[N,4] x, int64[1] axes => float[N,4,1] y { y = Unsqueeze(x, axes) }""",
    "unsqueeze of several axes": """float[N,4] x <int64[3] axes={-1,1,2}> => float[N,1,1,4,1] y { y = Unsqueeze(x, axes) }""",
    "unsqueeze as an attribute @ 11": """float[N,4] x => float[1,N,4] y { y = Unsqueeze<axes=[0]>(x) }""",
    "concat of a batch with one row": """float[N,4] x <float[1,2] row={0.5,1.5}> => float[N,6] y { y = Concat<axis=1>(x, row) }""",
    "concat along the batch": """float[N,4] x <float[1,4] row={0.5,1.5,1,2}> => float[M,4] y { y = Concat<axis=0>(x, row) }""",
    "concat of a row that is expanded": """float[N,4] x <float[1,2] row={0.5,1.5}, int64[1] zero={0}, int64[1] two={2}> => float[N,6] y {
        s = Shape(x) n = Gather(s, zero) shape = Concat<axis=0>(n, two) wide = Expand(row, shape) y = Concat<axis=1>(wide, x) }""",
    "expand of rows and the batch": """float[N,4] x <float[1,1] row={0.5}, int64[1] zero={0}, int64[1] two={2}> => float[N,2] y {
        s = Shape(x) n = Gather(s, zero) shape = Concat<axis=0>(n, two) y = Expand(row, shape) }""",
    "expand to the batch in front": """float[N,4] x <float[4] row={0.5,1,2,3}> => float[N,4] y { s = Shape(x) y = Expand(row, s) }""",
    "expand to fewer axes": """float[N,1,4] x <int64[2] shape={3,1}> => float[N,3,4] y { y = Expand(x, shape) }""",
    "expand to the same": """float[2,4] x <int64[2] shape={2,1}> => float[2,4] y { y = Expand(x, shape) }""",
    "expand of computed sizes": """float[2,1] x, int64[2] shape => float[2,4] y { y = Expand(x, shape) }""",
    "tile by computed counts": """float[2,3] x, int64[2] counts => float[4,9] y { y = Tile(x, counts) }""",
    "tile by an open size": """float[N,3] x, int64[2] counts => float[N,9] y { y = Tile(x, counts) }""",
    "split into uneven parts": """float[N,7] x => float[N,3] a, float[N,3] b, float[N,1] c { a, b, c = Split<axis=1, num_outputs=3>(x) }""",
    "split of which one part is read": """float[N,6] x <int64[3] parts={1,2,3}> => float[N,2] b { a, b, c = Split<axis=-1>(x, parts) }""",
    "split by an attribute @ 11": """float[N,6] x => float[N,4] a, float[N,2] b { a, b = Split<axis=1, split=[4,2]>(x) }""",
    "split into one": """float[N,6] x => float[N,6] a { a = Split<axis=1, num_outputs=1>(x) }""",
    "split of the batch": """float[4,6] x => float[2,6] a, float[2,6] b { a, b = Split<axis=0>(x) }""",
    "slice of an open axis": """float[N,3,H,8] x <int64[1] a={1}, int64[1] b={-1}, int64[1] axis={2}> => float[N,3,h,8] y { y = Slice(x, a, b, axis) }""",
    "slice by sizes": """float[N,3,6] x <int64[1] zero={0}, int64[1] two={2}, int64[1] half={2}> => float[N,3,h] y {
        s = Shape(x) l = Gather(s, two) e = Div(l, half) y = Slice(x, zero, e, two) }""",
    "slice that leaves nothing": """float[N,3] x <int64[1] a={3}, int64[1] one={1}> => float[N,h] y { y = Slice(x, a, a, one) }""",
    "slice of the batch": """float[N,3] x <int64[1] a={1}, int64[1] b={2}, int64[1] zero={0}> => float[M,3] y { y = Slice(x, a, b, zero) }""",
    "gather of the batch": """float[N,3] x <int64 i={0}> => float[3] y { y = Gather<axis=0>(x, i) }""",
    "gather by computed places": """float[N,3,4] x, int64[2,5] i => float[N,2,5,4] y { y = Gather<axis=1>(x, i) }""",
    "gather by one computed place": """float[N,3,4] x, int64 i => float[N,4] y { y = Gather<axis=1>(x, i) }""",
    "embedding of ids": """int64[N,7] i <float[3,2] table={1,2,3,4,5,6}> => float[N,7,2] y { y = Gather(table, i) }""",
    "top k of a computed count": """float[N,8] x, int64[1] k => float[N,3] y, int64[N,3] i { y, i = TopK<axis=1>(x, k) }""",
    "a filled tensor of the size of another": """float[2,3] x => float[2,3] y { s = Shape(x) f = ConstantOfShape<value=float[1] {0.5}>(s) y = Add(x, f) }""",
    "a filled tensor of an open size": """float[N,3] x => float[N,3] y { s = Shape(x) f = ConstantOfShape<value=float[1] {0.5}>(s) y = Add(x, f) }""",
    "a filled tensor of a computed size": """int64[2] s => float[2,3] y { y = ConstantOfShape<value=float[1] {0.5}>(s) }""",
    "a range of a size": """float[N,5] x <int64 zero={0}, int64 one={1}, int64 place={1}> => float[N,5] y {
        s = Shape(x) n = Gather(s, place) r = Range(zero, n, one) f = Cast<to=1>(r) y = Add(x, f) }""",
    "a range of a computed number": """float[N,5] x, int64 n <int64 zero={0}, int64 one={1}> => int64[M] y { y = Range(zero, n, one) }""",
    "an identity matrix of strings' codes": """float[3,4] x => double[3,4] y { y = EyeLike<dtype=11, k=1>(x) }""",
    "an identity matrix of another type": """float[3,4] x => bfloat16[3,4] y { y = EyeLike<dtype=16>(x) }""",
    "a cast like a constant": """float[N,3] x <int32[1] like={1}> => int32[N,3] y { y = CastLike(x, like) }""",
    "sizes and counts": """float[2,3,4] x => int64 n, int64[2] s { n = Size(x) s = Shape<start=1>(x) }""",
    "a shape of an open tensor as a result": """float[N,3] x => int64[2] s { s = Shape(x) }""",
    "auto padding of an open size": """float[N,2,H,W] x <float[1,2,2,2] w={1,2,3,4,5,6,7,8}> => float[N,1,h,w2] y { y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w) }""",
    "auto padding of a fixed size": """float[N,2,5,6] x <float[1,2,2,2] w={1,2,3,4,5,6,7,8}> => float[N,1,h,w2] y { y = Conv<auto_pad="SAME_LOWER", strides=[2,2]>(x, w) }""",
    "a transposed convolution of a wanted size": """float[N,2,5,6] x <float[2,1,2,2] w={1,2,3,4,5,6,7,8}> => float[N,1,h,w2] y { y = ConvTranspose<output_shape=[9,11], strides=[2,2]>(x, w) }""",
    "a transposed convolution padded to the same": """float[N,2,5,6] x <float[2,1,3,3] w={1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}> => float[N,1,h,w2] y { y = ConvTranspose<auto_pad="SAME_UPPER", strides=[2,2]>(x, w) }""",
    "a transposed convolution of an open size padded to the same": """float[N,2,H,W] x <float[2,1,3,3] w={1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}> => float[N,1,h,w2] y { y = ConvTranspose<auto_pad="SAME_UPPER", strides=[2,2]>(x, w) }""",
    "a convolution over four axes": """float[N,1,2,2,2,2] x <float[1,1,1,1,1,1] w={2}> => float[N,1,2,2,2,2] y { y = Conv(x, w) }""",
    "statistics of every position @ 8": """float[1,2] x <float[2] s={1,2}, float[2] b={0,1}, float[2] m={0.5,1}, float[2] v={1,2}> => float[1,2] y { y = BatchNormalization<spatial=0>(x, s, b, m, v) }""",
    "statistics that are computed": """float[N,2] x, float[2] s <float[2] b={0,1}, float[2] m={0.5,1}, float[2] v={1,2}> => float[N,2] y { y = BatchNormalization<epsilon=0.01>(x, s, b, m, v) }""",
    "statistics of images that are computed": """float[N,2,3,3] x, float[2] s, float[2] m <float[2] b={0,1}, float[2] v={1,2}> => float[N,2,3,3] y { y = BatchNormalization(x, s, b, m, v) }""",
    "a computed scale of an instance": """float[N,2,3,3] x, float[2] s <float[2] b={0,1}> => float[N,2,3,3] y { y = InstanceNormalization<epsilon=0.01>(x, s, b) }""",
    "a computed scale of groups @ 21": """float[N,4,3,3] x, float[4] s <float[4] b={0,1,2,3}> => float[N,4,3,3] y { y = GroupNormalization<num_groups=2, epsilon=0.01>(x, s, b) }""",
    "groups with a scale each @ 20": """float[N,4,3,3] x <float[2] s={1,2}, float[2] b={0,1}> => float[N,4,3,3] y { y = GroupNormalization<num_groups=2>(x, s, b) }""",
    "a recurrence that starts at zeros of a size": """float[5,N,2] x <float[1,3,2] w={1,2,3,4,5,6}, float[1,3,3] r={1,2,3,4,5,6,7,8,9}, int64[1] one={1}, int64[1] three={3}> => float[5,1,N,3] y {
        s = Shape(x) n = Gather(s, one) shape = Concat<axis=0>(one, n, three) h = ConstantOfShape(shape) y = RNN<hidden_size=3>(x, w, r, , , h) }""",
    "a recurrence that starts at ones of a size": """float[5,N,2] x <float[1,3,2] w={1,2,3,4,5,6}, float[1,3,3] r={1,2,3,4,5,6,7,8,9}, int64[1] one={1}, int64[1] three={3}> => float[5,1,N,3] y {
        s = Shape(x) n = Gather(s, one) shape = Concat<axis=0>(one, n, three) h = ConstantOfShape<value=float[1] {1}>(shape) y = RNN<hidden_size=3>(x, w, r, , , h) }""",
    "a recurrence that starts at expanded zeros": """float[5,N,2] x <float[1,3,2] w={1,2,3,4,5,6}, float[1,3,3] r={1,2,3,4,5,6,7,8,9}, int64[1] one={1}, int64[1] three={3}, float[1,1,3] z={0,0,0}> => float[5,1,N,3] y {
        s = Shape(x) n = Gather(s, one) shape = Concat<axis=0>(one, n, three) h = Expand(z, shape) y = RNN<hidden_size=3>(x, w, r, , , h) }""",
    "slopes of an activation of a recurrence": """float[5,N,2] x <float[1,3,2] w={1,2,3,4,5,6}, float[1,3,3] r={1,2,3,4,5,6,7,8,9}> => float[5,1,N,3] y { y = RNN<hidden_size=3, activations=["Tanh"], activation_beta=[0.5]>(x, w, r) }""",
    "a gelu of Microsoft": """float[N,4] x => float[N,4] y { y = com.microsoft.Gelu(x) }""",
    "a fast gelu of Microsoft": """float[N,4] x => float[N,4] y { y = com.microsoft.FastGelu(x) }""",
    "a fast gelu with a bias": """float[N,4] x <float[4] b={1,2,3,4}> => float[N,4] y { y = com.microsoft.FastGelu(x, b) }""",
    "attention in the old softmax @ 11": """float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,4] v => float[1,2,3,4] y { a = MatMul(q, k) s = Softmax(a) y = MatMul(s, v) }""",
    "attention divided by a number": """float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,4] v <float d={4.0}> => float[1,2,3,4] y { a = MatMul(q, k) b = Div(a, d) s = Softmax(b) y = MatMul(s, v) }""",
    "attention without heads": """float[N,3,4] q, float[N,4,3] k, float[N,3,4] v <float d={4.0}> => float[N,3,4] y { a = MatMul(q, k) b = Mul(a, d) s = Softmax(b) y = MatMul(s, v) }""",
    "attention divided by zero": """float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,4] v <float d={0.0}> => float[1,2,3,4] y { a = MatMul(q, k) b = Mul(a, d) s = Softmax(b) y = MatMul(s, v) }""",
    "attention whose scores are read": """float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,4] v => float[1,2,3,4] y, float[1,2,3,3] s { a = MatMul(q, k) s = Softmax(a) y = MatMul(s, v) }""",
    "blocks of unequal sides": """float[N,8,3,2] x <int64[6] a={-1,1,4,2,3,2}, int64[4] b={-1,1,12,4}> => float[N,1,12,4] y { r = Reshape(x, a) p = Transpose<perm=[0,1,4,2,5,3]>(r) y = Reshape(p, b) }""",
    "blocks of other sizes": """float[N,8,3,2] x <int64[6] a={-1,2,2,2,3,2}, int64[4] b={-1,2,12,2}> => float[N,2,12,2] y { r = Reshape(x, a) p = Transpose<perm=[0,1,4,2,5,3]>(r) y = Reshape(p, b) }""",
    "blocks of a matrix": """float[N,48] x <int64[6] a={-1,2,2,2,3,2}, int64[4] b={-1,2,6,4}> => float[N,2,6,4] y { r = Reshape(x, a) p = Transpose<perm=[0,1,4,2,5,3]>(r) y = Reshape(p, b) }""",
    "a normalization of two axes": """float[N,3,4] x <int64[2] axes={-2,-1}, float e={0.001}, float two={2.0}> => float[N,3,4] y {
        m = ReduceMean(x, axes) c = Sub(x, m) q = Pow(c, two) v = ReduceMean(q, axes) s = Add(v, e) r = Sqrt(s) y = Div(c, r) }""",
    "a normalization by the root of squares": """float[N,3,4] x <int64[1] axes={-1}, float e={0.001}, float[4] w={1,2,3,4}> => float[N,3,4] y {
        q = Mul(x, x) v = ReduceMean(q, axes) s = Add(v, e) r = Sqrt(s) d = Div(x, r) y = Mul(d, w) }""",
    "a matrix and a bias of one number": """float[N,3] x <float[3,2] w={1,2,3,4,5,6}, float[1] b={0.5}> => float[N,2] y { p = MatMul(x, w) y = Add(p, b) }""",
    "a matrix and a computed bias": """float[N,3] x, float[2] b <float[3,2] w={1,2,3,4,5,6}> => float[N,2] y { p = MatMul(x, w) y = Add(b, p) }""",
    "a gemm with factors": """float[2,3] x <float[2,3] w={1,2,3,4,5,6}, float[2] b={0.5,1}> => float[2,2] y { y = Gemm<alpha=0.5, beta=2.0, transB=1>(x, w, b) }""",
    "a resize of an open size": """float[N,2,H,W] x <float[4] f={1,1,2,2}> => float[N,2,h,w] y { y = Resize<mode="linear">(x, , f) }""",
    "a resize to an open size": """float[N,2,H,W] x, int64[4] s => float[N,2,h,w] y { y = Resize<mode="linear">(x, , , s) }""",
    "a resize to the size of another": """float[N,2,4,4] x, float[N,2,8,12] z <int64[1] a={2}, int64[1] b={4}, int64[1] zero={0}, int64[1] two={2}> => float[N,2,8,12] y {
        s = Shape(x) n = Slice(s, zero, two) t = Shape(z) h = Slice(t, a, b) shape = Concat<axis=0>(n, h) y = Resize<mode="linear">(x, , , shape) }""",
    "a result that is a constant, and one that is an input": """float[N,2] x => float[2] y, float[N,2] z <float[2] c={1,2}> { y = Identity(c) z = Identity(x) }""",
    "an output that is read, and unused nodes": """float[N,2] x => float[N,2] a, float[N,2] b { a = Relu(x) b = Neg(a) c = Exp(a) }""",
    "a constant that several read": """float[N,2] x, float[N,2] z <float[2] c={1,2}> => float[N,2] y { a = Mul(x, c) b = Mul(z, c) y = Sub(a, b) }""",
    "weights of another type": """float[N,3] x <float16[3,2] w={1,2,3,4,5,6}> => float[N,2] y { c = Cast<to=1>(w) y = MatMul(x, c) }""",
    "a matrix of doubles": """double[N,3] x <double[3,2] w={1,2,3,4,5,6}> => double[N,2] y { y = MatMul(x, w) }""",
    "a node that is kept inside of another": """float[N,3] x => float[N,3] y { q = SequenceConstruct(x, x) y = SequenceAt(q, i) }""",
    "a sigmoid of another domain": """float[N,4] x => float[N,4] y { s = com.microsoft.Sigmoid(x) y = Mul(x, s) }""",
    "a sigmoid times what it reads": """float[N,4] x => float[N,4] y { s = Sigmoid(x) y = Mul(x, s) }""",
    "integers of one image": """int64[1,3,4,5] x => float[1,3,4,5] y { y = Cast<to=1>(x) }""",
    "an image of one sample": """float[1,3,4,5] x => float[1,3,4,5] y { y = Relu(x) }""",
    "an image of two samples": """float[2,3,4,5] x => float[2,3,4,5] y { y = Relu(x) }""",
    "a branch": """float[N,3] x, bool c => float[N,3] y { y = If(c) <then_branch = t () => (float[N,3] a) { a = Neg(x) }, else_branch = e () => (float[N,3] b) { b = Exp(x) }> }""",
    "softmax at the change of its axis @ 13": """float[2,3,4] x => float[2,3,4] y, float[2,3,4] z { y = Softmax(x) z = LogSoftmax<axis=1>(x) }""",
    "softmax before the change of its axis @ 12": """float[2,3,4] x, float[2,3] m => float[2,3,4] y, float[2,3] z { y = Softmax(x) z = LogSoftmax(m) }""",
    "hardmax at the change of its axis @ 13": """float[2,3,4] x => float[2,3,4] y, float[2,3,4] z { y = Hardmax(x) z = Hardmax<axis=1>(x) }""",
    "hardmax before the change of its axis @ 12": """float[2,3,4] x => float[2,3,4] y, float[2,3,4] z { y = Hardmax(x) z = Hardmax<axis=2>(x) }""",
    "bounds as inputs @ 11": """float[N,4] x <float low={-0.5}, float high={0.5}> => float[N,4] y, float[N,4] z { y = Clip(x, low, high) z = Clip(x, , high) }""",
    "bounds as attributes @ 10": """float[N,4] x => float[N,4] y, float[N,4] z { y = Clip<min=-0.5, max=0.5>(x) z = Clip<max=0.25>(x) }""",
    "a dropout with inputs @ 12": """float[N,4] x <float r={0.3}, bool t={0}> => float[N,4] y, float[N,4] z { y = Dropout(x, r, t) z = Dropout(x) }""",
    "a dropout with an attribute @ 11": """float[N,4] x => float[N,4] y { y = Dropout<ratio=0.3>(x) }""",
    "parts and largest by inputs @ 10": """float[N,6] x <int64[1] a={1}, int64[1] b={5}, int64[1] axis={1}, int64[1] k={2}> => float[N,2] y, int64[N,2] i {
        s = Slice(x, a, b, axis) y, i = TopK<axis=1>(s, k) }""",
    "parts and largest by attributes @ 9": """float[N,6] x => float[N,2] y, int64[N,2] i { s = Slice<axes=[1], starts=[1], ends=[5]>(x) y, i = TopK<axis=1, k=2>(s) }""",
    "statistics @ 14": """float[N,2,3,3] x <float[2] s={1,2}, float[2] b={0,1}, float[2] m={0.5,1}, float[2] v={1,2}> => float[N,2,3,3] y { y = BatchNormalization(x, s, b, m, v) }""",
    "statistics @ 9": """float[N,2,3,3] x <float[2] s={1,2}, float[2] b={0,1}, float[2] m={0.5,1}, float[2] v={1,2}> => float[N,2,3,3] y { y = BatchNormalization(x, s, b, m, v) }""",
    "a border by an input @ 11": """float[N,2,3,3] x <int64[8] p={0,0,1,0,0,0,2,1}, float v={0.5}> => float[N,2,6,4] y { y = Pad(x, p, v) }""",
    "a border by attributes @ 10": """float[N,2,3,3] x => float[N,2,6,4] y { y = Pad<pads=[0,0,1,0,0,0,2,1], value=0.5>(x) }""",
    "a larger image @ 11": """float[N,2,4,4] x <float[8] roi={0,0,0,0,1,1,1,1}, float[4] f={1,1,2,3}> => float[N,2,8,12] y { y = Resize<mode="linear">(x, roi, f) }""",
    "a larger image @ 10": """float[N,2,4,4] x <float[4] f={1,1,2,3}> => float[N,2,8,12] y { y = Resize<mode="nearest">(x, f) }""",
    "a larger image of one row": """float[1,2,1,4] x <int64[4] s={1,2,1,8}> => float[N,2,1,8] y { y = Resize<mode="linear", coordinate_transformation_mode="pytorch_half_pixel">(x, , , s) }""",
    "an image that shrinks to one row": """float[1,2,3,4] x <int64[4] s={1,2,1,8}> => float[N,2,1,8] y { y = Resize<mode="linear", coordinate_transformation_mode="pytorch_half_pixel">(x, , , s) }""",
    "attention at the change of the softmax @ 13": """float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,4] v => float[1,2,3,4] y { a = MatMul(q, k) s = Softmax(a) y = MatMul(s, v) }""",
    "attention before the change of the softmax @ 12": """float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,4] v => float[1,2,3,4] y { a = MatMul(q, k) s = Softmax(a) y = MatMul(s, v) }""",
    "a pooling with a border of more than half its window": """float[N,2,4,4] x => float[N,2,6,6] y { y = MaxPool<kernel_shape=[3,3], pads=[2,2,2,2]>(x) }""",
    "a pooling with a border of half its window": """float[N,2,4,4] x => float[N,2,7,7] y { y = MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>(x) }""",
    "a gemm with a factor for no bias": """float[2,3] x <float[3,2] w={1,2,3,4,5,6}> => float[2,2] y { y = Gemm<beta=0.5>(x, w) }""",
    "a gemm of a column of biases": """float[2,3] x <float[3,2] w={1,2,3,4,5,6}, float[2,1] b={0.5,1}> => float[2,2] y { y = Gemm(x, w, b) }""",
    "a gemm of a transposed input": """float[3,2] x <float[3,2] w={1,2,3,4,5,6}, float[2] b={0.5,1}> => float[2,2] y { y = Gemm<transA=1>(x, w, b) }""",
    "a transposed convolution with a computed bias": """float[N,2,3,3] x, float[1] b <float[2,1,2,2] w={1,2,3,4,5,6,7,8}> => float[N,1,4,4] y { y = ConvTranspose(x, w, b) }""",
    "a transposed convolution that is cut unevenly": """float[N,2,3,3] x <float[2,1,2,2] w={1,2,3,4,5,6,7,8}> => float[N,1,3,4] y { y = ConvTranspose<pads=[1,0,0,0]>(x, w) }""",
    "a convolution with a computed bias": """float[N,2,3,3] x, float[1] b <float[1,2,2,2] w={1,2,3,4,5,6,7,8}> => float[N,1,2,2] y { y = Conv(x, w, b) }""",
    "computed filters padded to the same": """float[N,2,5,6] x, float[1,2,2,3] w => float[N,1,3,2] y { y = Conv<auto_pad="SAME_LOWER", strides=[2,3], dilations=[1,2]>(x, w) }""",
    "a normalization with its moments": """float[N,3,4] x <float[4] s={1,2,3,4}> => float[N,3,4] y, float[N,3,1] m, float[N,3,1] d { y, m, d = LayerNormalization<epsilon=0.01>(x, s) }""",
    "a normalization of two axes with a scale of one": """float[N,3,4] x <float[4] s={1,2,3,4}, float[3,4] b={1,2,3,4,5,6,7,8,9,10,11,12}> => float[N,3,4] y { y = LayerNormalization<axis=-2>(x, s, b) }""",
    "a shape that is cast like another": """float[2,12] x <int32[2] sizes={3,8}, int64[1] like={1}> => float[a,b] y { s = CastLike(sizes, like) y = Reshape(x, s) }""",
    "a constant that is cast like an input": """float[N,3] x <int64[3] row={3,8,-1}> => float[N,3] y { s = CastLike(row, x) y = Mul(x, s) }""",
    "a kept node of an image of one": """float[1,3,4,4] x => float[1,3] y { y = Det(x) }""",
    "a kept node of an image of one whose size follows it": """float[1,3,H,4] x => float[1,3,a,b] y { y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(x, i) }""",
    "a vector times a matrix and a bias": """float[3] x <float[3,2] w={1,2,3,4,5,6}, float[2] b={0.5,1}> => float[2] y { p = MatMul(x, w) y = Add(p, b) }""",
    "sums over computed axes": """float[2,3,4] x, int64[1] axes => float[a,b,c] y { y = ReduceSum(x, axes) }""",
    "sums over computed axes of a declared type": """float[2,3,4] x, int64[1] axes => float[2,1,4] y { y = ReduceSum(x, axes) }""",
    "sums over computed axes, one of which has a size of 1": """float[2,1,4] x, int64[1] axes => float[2,1,1] y { y = ReduceSum(x, axes) }""",
    "sums over computed axes of a declared type that does not fit": """float[2,3,4] x, int64[1] axes => float[2,2,1] y { y = ReduceSum(x, axes) }""",
    "sums over computed axes that vanish": """float[2,3,4] x, int64[1] axes => float[2,4] y { y = ReduceSum<keepdims=0>(x, axes) }""",
    "an even softmax before the change of its axis @ 12": """float[2,3,1,4] x, float[2,3,1,1] z => float[2,3,1,4] y, float[2,3,1,1] w { y = Softmax(x) w = LogSoftmax(z) }""",
    "an even hardmax before the change of its axis @ 12": """float[2,3,1,4] x, float[2,3,1,1] z => float[2,3,1,4] y, float[2,3,1,1] w { y = Hardmax(x) w = Hardmax(z) }""",
    "a flatten of a vector": """float[5] x => float[5,1] y, float[1,5] z { y = Flatten(x) z = Flatten<axis=0>(x) }""",
    "a reshape to a single number": """float[1,1] x <int64[0] none={}> => float y { y = Reshape(x, none) }""",
    "a reshape that allows zeros": """float[2,12] x <int64[2] shape={4,6}> => float[4,6] y { y = Reshape<allowzero=1>(x, shape) }""",
    "a reshape with a zero behind the batch": """float[N,3,4] x <int64[3] shape={-1,0,4}, int64[3] other={0,4,3}> => float[N,3,4] y, float[N,4,3] z { y = Reshape(x, shape) z = Reshape(x, other) }""",
    "a squeeze of no axis": """float[2,3] x => float[2,3] y { y = Squeeze(x) }""",
    "a slope of an activation for one axis": """float[6] x <float[6] a={1,2,3,4,5,6}, float[1] b={0.5}> => float[6] y, float[6] z { y = PRelu(x, a) z = PRelu(x, b) }""",
    "a threshold below zero": """float[N,4] x => float[N,4] y { y = Shrink<lambd=-0.5, bias=-0.5>(x) }""",
    "rows of a table of one row": """int64[N,2] i <float[1,3] table={1,2,3}> => float[N,2,3] y { y = Gather(table, i) }""",
    "rows and columns of a constant table": """int64[2] i <float[2,3] table={1,2,3,4,5,6}, int64[2] fixed={1,0}> => float[2,2] y, float[2,3] z { y = Gather<axis=1>(table, i) z = Gather(table, fixed) }""",
    "classes with computed values": """int64[N] i, float[2] values <int64 depth={3}> => float[N,3] y { y = OneHot(i, depth, values) }""",
    "classes of real numbers": """float[N] i <int64 depth={3}, float[2] values={0.5,2}> => float[N,3] y { y = OneHot(i, depth, values) }""",
    "scales of a resize that are computed": """float[N,2,4,4] x, float[4] f => float[N,2,h,w] y { y = Resize<mode="linear">(x, , f) }""",
    "a resize that leaves nothing": """float[N,2,4,4] x <float[4] f={1,1,0.125,1}> => float[N,2,h,w] y { y = Resize<mode="linear">(x, , f) }""",
    "factors as an attribute @ 8": """float[N,2,4,4] x => float[N,2,8,12] y { y = Upsample<mode="nearest", scales=[1.0,1.0,2.0,3.0]>(x) }""",
    "slopes of an activation of a recurrence at last": """float[5,N,2] x <float[1,3,2] w={1,2,3,4,5,6}, float[1,3,3] r={1,2,3,4,5,6,7,8,9}> => float[5,1,N,3] y { y = RNN<hidden_size=3, activations=["Tanh"], activation_alpha=[0.5]>(x, w, r) }""",
    "a recurrence whose last state is read": """float[5,N,2] x <float[1,3,2] w={1,2,3,4,5,6}, float[1,3,3] r={1,2,3,4,5,6,7,8,9}> => float[1,N,3] h { _, h = RNN<hidden_size=3>(x, w, r) }""",
    "a border of whole numbers": """int32[1,2,3,3] x <int64[8] p={0,0,1,0,0,0,2,1}> => int32[1,2,6,4] y { y = Pad(x, p) }""",
    "counts of a tile that are computed": """float[2,3] x, int64[2] n => float[a,b] y { y = Tile(x, n) }""",
    "a tile of no copies": """float[2,3] x <int64[2] n={1,1}> => float[2,3] y { y = Tile(x, n) }""",
    "scores of attention @ 23": """float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v => float[1,2,3,4] y, float[1,2,3,3] s { y, a, b, s = Attention(q, k, v) }""",
    "attention with shared keys @ 23": """float[N,4,3,4] q, float[N,2,5,4] k, float[N,2,5,6] v => float[N,4,3,6] y, float[N,2,5,4] p { y, p = Attention<is_causal=1>(q, k, v) }""",
    "attention of lengths as the last input @ 24": """float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v, int64[1] n => float[1,2,3,4] y { y = Attention(q, k, v, , , , n) }""",
    "statistics of a batch of many axes": """float[N,2,1,2,1,2] x <float[2] s={1,2}, float[2] b={0,1}, float[2] m={0.5,1}, float[2] v={1,2}> => float[N,2,1,2,1,2] y { y = BatchNormalization(x, s, b, m, v) }""",
    "a sum of the batch with rows of one": """float[N,3] x <float[1,3] row={1,2,3}, float[3] low={1,2,3}> => float[N,3] y { a = Max(x, row, low) y = Sum(a, row) }""",
    "a silu whose gate is read twice": """float[N,3] x => float[N,3] y { s = Sigmoid(x) m = Mul(s, x) y = Add(m, s) }""",
    "a silu of which only the product is read": """float[N,3] x => float[N,3] y, float[N,3] m { s = Sigmoid(x) m = Mul(x, s) y = Neg(m) }""",
    "a normalization with a scale of another shape": """float[N,3,4] x <int64[1] axes={-1}, float e={0.001}, float two={2.0}, float[3,1] w={1,2,3}> => float[N,3,4] y {
        m = ReduceMean(x, axes) c = Sub(x, m) q = Pow(c, two) v = ReduceMean(q, axes) s = Add(v, e) r = Sqrt(s) d = Div(c, r) y = Mul(d, w) }""",
    "a normalization whose variance is read": """float[N,3,4] x <int64[1] axes={-1}, float e={0.001}, float two={2.0}> => float[N,3,4] y, float[N,3,1] v {
        m = ReduceMean(x, axes) c = Sub(x, m) q = Pow(c, two) v = ReduceMean(q, axes) s = Add(v, e) r = Sqrt(s) y = Div(c, r) }""",
    "a cube instead of a square": """float[N,3,4] x <int64[1] axes={-1}, float e={0.001}, float three={4.0}> => float[N,3,4] y {
        m = ReduceMean(x, axes) c = Sub(x, m) q = Pow(c, three) v = ReduceMean(q, axes) s = Add(v, e) r = Sqrt(s) y = Div(c, r) }""",
    "a gelu with another half": """float[N,3] x <float r={1.4142135}, float one={1.0}, float half={0.25}> => float[N,3] y { d = Div(x, r) e = Erf(d) a = Add(e, one) b = Mul(x, a) y = Mul(b, half) }""",
    "a gelu with another one": """float[N,3] x <float r={1.4142135}, float one={2.0}, float half={0.5}> => float[N,3] y { d = Div(x, r) e = Erf(d) a = Add(e, one) b = Mul(x, a) y = Mul(b, half) }""",
    "a gelu of another root": """float[N,3] x <float r={1.414}, float one={1.0}, float half={0.5}> => float[N,3] y { d = Div(x, r) e = Erf(d) a = Add(e, one) b = Mul(x, a) y = Mul(b, half) }""",
    "a gelu times another value": """float[N,3] x, float[N,3] z <float r={1.4142135}, float one={1.0}, float half={0.5}> => float[N,3] y { d = Div(x, r) e = Erf(d) a = Add(e, one) b = Mul(z, a) y = Mul(b, half) }""",
    "a gelu times its value twice": """float[N,3] x <float r={1.4142135}, float one={1.0}> => float[N,3] y { d = Div(x, r) e = Erf(d) a = Add(e, one) b = Mul(x, a) y = Mul(b, x) }""",
    "a gelu by tanh with another power": """float[N,3] x <float p={2.0}, float k={0.044715}, float r={0.7978846}, float one={1.0}, float half={0.5}> => float[N,3] y {
        a = Pow(x, p) b = Mul(a, k) c = Add(x, b) d = Mul(c, r) e = Tanh(d) f = Add(e, one) g = Mul(x, f) y = Mul(g, half) }""",
    "an attention with a sum of two products": """float[1,2,3,4] q, float[1,2,4,3] k, float[1,2,3,4] v => float[1,2,3,4] y { a = MatMul(q, k) b = Mul(q, q) c = MatMul(b, k) d = Add(a, c) s = Softmax(d) y = MatMul(s, v) }""",
    "a matrix times a matrix and a bias": """float[N,3] x, float[3,2] w <float[2] b={0.5,1}> => float[N,2] y { p = MatMul(x, w) y = Add(p, b) }""",
    "a product that the bias reads too": """float[N,3] x <float[3,2] w={1,2,3,4,5,6}, float[2] b={0.5,1}> => float[N,2] y, float[N,2] p { p = MatMul(x, w) y = Add(p, b) }""",
    "scores after the mask @ 23": """float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v => float[1,2,3,4] y { y = Attention<qk_matmul_output_mode=1>(q, k, v) }""",
    "nodes that are kept inside of another": """float[N,3] x, float[N,3] z => float[N,3] y, float[N,3] w { q = SequenceConstruct(x, x) r = SequenceInsert(q, z) t = SequenceErase(r) y = SequenceAt(t, i) w = SequenceAt(r, i) }""",
    "a constant of a layer and of a kept node": """int64[3] a, float[3,3] m <int64[3] w={2,3,1}> => int64[3] b, float[3,3] y, float[3,3] z { b = Add(a, w) y = ReverseSequence<batch_axis=1, time_axis=0>(m, w) z = ReverseSequence<batch_axis=0, time_axis=1>(m, w) }""",
    "a product that is added to itself": """float[N,3] x <float[3,2] w={1,2,3,4,5,6}> => float[N,2] y { p = MatMul(x, w) y = Add(p, p) }""",
}  # fmt: skip

SIZES_FROM_VALUES = {  # random values are not sizes
    "squeeze of computed axes", "squeeze of all axes of 1", "unsqueeze of computed axes", "tile by computed counts",
    "tile by an open size", "top k of a computed count", "expand of computed sizes", "a filled tensor of a computed size",
    "a range of a computed number", "a resize to an open size", "scales of a resize that are computed",
    "counts of a tile that are computed", "attention of lengths as the last input @ 24", "classes of real numbers",
    *(name for name in GROUPS if name.startswith("sums over computed axes")),
}  # fmt: skip
MODEL = re.compile(r" model='.*?'")  # compressed
BODY = re.compile(r"\{\s")
CONSTANTS = re.compile(r"<[^=>]*=\{.*?\}>")


def read(name: str, text: str) -> onnx.ModelProto:
    """The model of a text; constants may be in front of or behind the `=>`."""
    opset = int(name.partition("@")[2] or 20)
    start = BODY.search(text)
    assert start is not None
    signature, nodes = text[: start.start()], text[start.start() :]
    found = CONSTANTS.search(signature)
    constants = found[0] if found else ""
    signature = signature.replace(constants, "")
    inputs, _, outputs = signature.partition("=>")
    if "SequenceAt" in nodes:
        constants = "<int64 i={1}>"
    if "MaxUnpool" in nodes:
        inputs += ", int64[1,3,H,4] i"
    imports = f'"" : {opset}' + (', "com.microsoft" : 1' if "com.microsoft" in text else "")
    whole = f"<ir_version: 9, opset_import: [{imports}]>\nnetwork ({inputs}) => ({outputs}) {constants} {nodes}"
    return onnx.parser.parse_model(whole)


def document_lines(found: Imported, registry: Registry) -> Iterator[str]:
    for layer in found.graph:
        yield "  " + MODEL.sub(" model", layer_text(layer, registry))
    for key, array in sorted(found.weights.tensors.items()):
        yield f"  weight {key.layer}.{key.tensor}: {array.shape} {float(np.abs(array).sum()):.4f}"
    for item in found.report.outcomes:
        if item.reason or item.outcome.value != "known":
            yield f"  {item.type}: {item.outcome.value} {' '.join(item.layers)} {item.reason}"
    yield from (f"  {name} is {place}" for name, place in found.report.weights.items())
    yield from (f"  warning: {warning}" for warning in found.report.warnings)


def test_groups_of_onnx_nodes_become_the_recorded_layers(registry: Registry, tmp_path: Path) -> None:
    lines = []
    differences = []
    for name, text in GROUPS.items():
        lines.append(name)
        path = tmp_path / "network.onnx"
        path.write_bytes(read(name, text).SerializeToString())
        try:
            found = import_onnx(path, registry, ImportOptions())
        except DiagnosticError as error:
            lines.append(f"  {error}".replace(str(tmp_path), ""))
            continue
        lines += [rounded(line) for line in document_lines(found, registry)]
        if name in SIZES_FROM_VALUES:
            continue
        report = found.verified(registry).report
        if report.max_rel_difference is None:
            lines.append(f"  not compared: {report.not_compared_because.partition(':')[0]}")
        elif report.max_rel_difference > 1e-5:
            differences.append(f"{name}: {report.max_rel_difference}")
    assert not differences
    check_lines("imports/onnx_groups.txt", lines)


def open_cases() -> Iterator[NodeCase]:
    """At most three cases of each operator, with an open batch."""
    counts: dict[str, int] = {}
    for case in CASES:
        if case.feeds and all(array.ndim for array in case.feeds.values()) and not case.open_batch:
            counts[case.op] = counts.get(case.op, 0) + 1
            if counts[case.op] in (1, 3, 6):
                yield replace(case, open_batch=True)


def test_single_nodes_with_an_open_batch_become_the_recorded_layers(registry: Registry) -> None:
    lines = []
    for case in open_cases():
        try:
            model = case.model()
        except onnx.shape_inference.InferenceError:
            continue
        lines.append(str(case))
        try:
            found = import_proto(model, Path("node.onnx"), registry, ImportOptions())
        except DiagnosticError as error:
            lines.append(f"  {error}")
        else:
            lines += [rounded(line) for line in document_lines(found, registry)]
    check_lines("imports/onnx_open_nodes.txt", lines)

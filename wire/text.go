// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Path leads to one text of an object, in both encodings: the names of the members in
// JSON and the numbers of the fields in protobuf, from the outside in. Both stand in the
// generated.proto of the kind's package.
type Path struct {
	Names   string // "spec.nodeName"
	Numbers [4]int32

	// Equal is the text that [Encoding.MayHave] looks for at the end of the path; empty: anything. Other methods take no notice of it.
	Equal string
}

// NodeName is the field with the Node that a Pod is bound to. Source:
// k8s.io/api/core/v1/generated.proto.
var NodeName = Path{Names: "spec.nodeName", Numbers: [4]int32{2, 10}}

// Spec is the spec of an object, in all kinds that have one.
var Spec = Path{Names: "spec", Numbers: [4]int32{2}}

// Without returns the encoding of an object without one of its top-level fields, where that saves
// decoding: from protobuf it cuts the field out, and JSON it returns as it is. The result points into raw
// where it can.
func (e Encoding) Without(raw []byte, field Path) ([]byte, error) {
	if e != Protobuf {
		return raw, nil
	}
	var rest []byte
	cut := false
	m := message{data: raw}
	for m.next() {
		switch {
		case int32(m.number) == field.Numbers[0]:
			if !cut {
				rest, cut = append(make([]byte, 0, len(raw)-(m.at-m.from)), raw[:m.from]...), true
			}
		case cut:
			rest = append(rest, raw[m.from:m.at]...)
		}
	}
	if m.err != nil {
		return nil, fmt.Errorf("reading all but %s: %w", field.Names, m.err)
	}
	if !cut {
		return raw, nil
	}
	return rest, nil
}

// Text reads the text at a path without decoding the rest of the object. It is empty if
// the object has none. The result points into raw where it can.
func (e Encoding) Text(raw []byte, p Path) (value []byte, err error) {
	if e == Protobuf {
		value, err = textProtobuf(raw, p.Numbers[:])
	} else {
		value, err = textJSON(new(scanner), raw, p.Names)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p.Names, err)
	}
	return value, nil
}

func textProtobuf(raw []byte, numbers []int32) (value []byte, err error) {
	m := message{data: raw}
	for m.next() {
		if int32(m.number) != numbers[0] || !m.want(protowire.BytesType) {
			continue
		}
		if len(numbers) == 1 || numbers[1] == 0 {
			value = m.value // of several the last is meant
			continue
		}
		// A message that is there twice is one with the fields of both.
		inner, err := textProtobuf(m.value, numbers[1:])
		if err != nil {
			return nil, err
		}
		if inner != nil {
			value = inner
		}
	}
	return value, m.err
}

// MayHave reports whether an object may have anything, or the text that a path names, at one of some paths, which may lead through lists.
// It is false only if the object certainly has nothing such there. For JSON it is always true: to find out costs as
// much as to decode the object.
func (e Encoding) MayHave(raw []byte, paths ...Path) bool {
	for some := range slices.Chunk(paths, WhichMost) {
		if e.Which(raw, some) != 0 {
			return true
		}
	}
	return false
}

// WhichMost is how many paths [Encoding.Which] looks for.
const WhichMost = 64

// Which is [Encoding.MayHave] for each of the first WhichMost paths: bit i of the result is that of path i. It walks over the object once.
func (e Encoding) Which(raw []byte, paths []Path) uint64 {
	paths = paths[:min(len(paths), WhichMost)]
	all := ^uint64(0) >> (WhichMost - len(paths))
	if e != Protobuf {
		return all
	}
	return which(raw, paths, all, 0)
}

// which walks once, whatever the number of paths: nine walks over the volumes of a Pod took twice as long as to unpack it.
// among are the paths that lead to this message, and depth is how far.
func which(raw []byte, paths []Path, among uint64, depth int) (found uint64) {
	m := message{data: raw}
	for found != among && m.next() {
		deeper := uint64(0)
		for rest := among &^ found; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			switch p := &paths[i].Numbers; {
			case p[depth] != int32(m.number):
			case depth < len(p)-1 && p[depth+1] != 0:
				deeper |= 1 << i
			case paths[i].Equal == "" || m.want(protowire.BytesType) && string(m.value) == paths[i].Equal:
				found |= 1 << i
			}
		}
		if deeper != 0 && m.want(protowire.BytesType) {
			found |= which(m.value, paths, deeper, depth+1)
		}
	}
	if m.err != nil {
		return among
	}
	return found
}

func textJSON(scan *scanner, raw []byte, names string) (value []byte, err error) {
	name, rest, deeper := strings.Cut(names, ".")
	var seen once
	m := walk(scan, raw, 0)
	for m.next() {
		if string(m.name) != name {
			m.skip()
			continue
		}
		seen.see(&m, 0)
		switch {
		case m.peek() == 'n':
			m.null()
		case !deeper:
			value = m.textOrNull()
		default:
			if value, err = textJSON(scan, m.skip(), rest); err != nil {
				return nil, err
			}
		}
	}
	m.end()
	return value, m.err
}

// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"github.com/setpoint-io/setpoint/watch/event"
)

// The longest common subsequence of n and m elements costs n times m. Beyond these limits,
// for scalars and for anything else, differences in several places of a long list become one
// from the first place to the last.
const (
	maxScalarCells = 1 << 18
	maxTreeCells   = 1 << 14
)

// sequence compares two lists by position: what is common and in the same order stays,
// and between that, elements are replaced one by one and the rest added or removed.
func (c *comparison) sequence(from, to []any, n *node) {
	equal, limit := sameness(from, to)
	i, j := 0, 0
	for _, same := range Common(len(from), len(to), limit, equal) {
		c.gap(from, to, i, same[0], j, same[1], n)
		i, j = same[0]+1, same[1]+1
	}
	c.gap(from, to, i, len(from), j, len(to), n)
}

// gap compares from[i:iEnd] with to[j:jEnd], which have nothing in common.
func (c *comparison) gap(from, to []any, i, iEnd, j, jEnd int, n *node) {
	for ; i < iEnd && j < jEnd; i, j = i+1, j+1 {
		e := Element{Kind: Item, Old: i, New: j}
		switch {
		case akin(from[i], to[j]):
			c.below(e, from[i], to[j], n.item())
		case !Equal(from[i], to[j]):
			c.addAt(e, event.Replace, from[i], to[j])
		}
	}
	for ; i < iEnd; i++ {
		c.addAt(Element{Kind: Item, Old: i, New: -1}, event.Remove, from[i], nil)
	}
	for ; j < jEnd; j++ {
		c.addAt(Element{Kind: Item, Old: -1, New: j}, event.Add, nil, to[j])
	}
}

// akin reports whether two elements may be one that was changed. Objects that have no
// value in common are two.
func akin(a, b any) bool {
	switch a := a.(type) {
	case []any:
		_, ok := b.([]any)
		return ok
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; ok && Equal(v, w) {
				return true
			}
		}
	}
	return false
}

// Common returns the positions of a longest common subsequence of two lists with n and m
// elements, as pairs. Between what they have in common at their beginnings and at their ends, it
// takes time and memory, four bytes each, for the product of the lengths. If that is more than
// limit, it returns the beginnings and the ends alone.
func Common(n, m, limit int, equal func(i, j int) bool) [][2]int {
	var pairs [][2]int
	head := 0
	for ; head < min(n, m) && equal(head, head); head++ {
		pairs = append(pairs, [2]int{head, head})
	}
	tail := 0
	for tail < min(n, m)-head && equal(n-1-tail, m-1-tail) {
		tail++
	}
	if rows, columns := n-head-tail, m-head-tail; rows > 0 && columns > 0 && rows <= limit/columns {
		for _, same := range subsequence(rows, columns, func(i, j int) bool { return equal(head+i, head+j) }) {
			pairs = append(pairs, [2]int{head + same[0], head + same[1]})
		}
	}
	for ; tail > 0; tail-- {
		pairs = append(pairs, [2]int{n - tail, m - tail})
	}
	return pairs
}

func subsequence(n, m int, equal func(i, j int) bool) [][2]int {
	// length[i*width+j] is the length of what the lists from i and from j have in common.
	width := m + 1
	length := make([]int32, (n+1)*width)
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if equal(i, j) {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case equal(i, j):
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// sameness returns how elements of two lists are compared, and how many comparisons are
// worth it: scalars by a number that is given to each value once, others as trees.
func sameness(a, b []any) (equal func(i, j int) bool, limit int) {
	numbers := make(map[any]int32)
	as, ok := numbered(a, numbers)
	bs, scalars := numbered(b, numbers)
	if ok && scalars {
		return func(i, j int) bool { return as[i] == bs[j] }, maxScalarCells
	}
	return func(i, j int) bool { return Equal(a[i], b[j]) }, maxTreeCells
}

// numbered fails if an element is no scalar.
func numbered(items []any, numbers map[any]int32) ([]int32, bool) {
	out := make([]int32, len(items))
	for i, item := range items {
		id, ok := identity(item)
		if !ok {
			return nil, false
		}
		if _, known := numbers[id]; !known {
			numbers[id] = int32(len(numbers))
		}
		out[i] = numbers[id]
	}
	return out, true
}
